import { existsSync } from 'node:fs';
import { configPathIn } from '../runtime/config/path.ts';
import type { TitlePrivacy } from '../runtime/config/schema.ts';
import { connectorHome } from '../runtime/store/home.ts';
import type { World } from './world.ts';

/** How the owner wants titles and paths to be shown. Nothing is loaded for it where there are no settings. */
export async function titlesOf(world: Pick<World, 'env' | 'home' | 'log'>): Promise<TitlePrivacy> {
  const home = connectorHome(world.env, world.home);
  if (!existsSync(configPathIn(home))) return 'full';
  const { readConfig } = await import('../runtime/config/read.ts');
  const { config, problem } = readConfig(home);
  // Who has chosen to hide titles must hear that the choice does not hold.
  if (problem !== undefined) world.log.warn(problem);
  return config.privacy.titles;
}
