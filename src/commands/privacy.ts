import { existsSync } from 'node:fs';
import { configPathIn } from '../runtime/config/path.ts';
import type { TitlePrivacy } from '../runtime/config/schema.ts';
import type { ScanProblem } from '../runtime/feed.ts';
import { connectorHome } from '../runtime/store/home.ts';
import type { World } from './world.ts';

/** How the owner wants titles and paths to be shown, and whether that choice could be read. */
export interface Privacy {
  readonly titles: TitlePrivacy;
  /** Who has chosen to hide titles must hear that the choice does not hold. */
  readonly problems: readonly ScanProblem[];
}

/** Reads the owner's choice. Nothing is loaded for it where there are no settings. */
export async function privacyOf(world: Pick<World, 'env' | 'home'>): Promise<Privacy> {
  const home = connectorHome(world.env, world.home);
  const path = configPathIn(home);
  if (!existsSync(path)) return { titles: 'full', problems: [] };
  const { readConfig } = await import('../runtime/config/read.ts');
  const { config, problem } = readConfig(home);
  const problems = problem === undefined ? [] : [{ subject: 'settings', reason: problem, skipped: 0 }];
  return { titles: config.privacy.titles, problems };
}
