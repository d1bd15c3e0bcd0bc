import { posix, win32 } from 'node:path';
import type { AdapterContext } from '../adapter.ts';

/** Where one OpenCode keeps its sessions. */
export interface OpencodeHome {
  /** The data folder. */
  readonly data: string;
  /** `opencode.db` in it (1.x), or what `OPENCODE_DB` names. */
  readonly database: string;
  /** The layout of older versions. */
  readonly storage: string;
}

type Candidates = readonly [OpencodeHome, ...OpencodeHome[]];
type HomeContext = Pick<AdapterContext, 'env' | 'home' | 'platform'>;

/**
 * Folders in which OpenCode's data may lie, most explicit first (`targets.md` §8). A folder that the user named is
 * the only one; relative values are ignored, as the XDG specification asks. `OPENCODE_DB` is the database itself, from
 * the data folder where it is relative (1.18.33); one in memory leaves nothing to read.
 */
export function homeCandidates({ env, home, platform }: HomeContext): Candidates {
  const path = platform === 'win32' ? win32 : posix;
  const under = (base: string | undefined): string | undefined =>
    base && path.isAbsolute(base) ? path.join(base, 'opencode') : undefined;
  const named = env['OPENCODE_DATA_DIR'];
  if (named && path.isAbsolute(named)) return [homeIn(named, path, env)];
  const folders = [
    under(env['XDG_DATA_HOME']),
    platform === 'win32' ? under(env['APPDATA']) : undefined,
    platform === 'win32' ? under(env['LOCALAPPDATA']) : undefined,
  ].flatMap((folder) => folder ?? []);
  const usual = path.join(home, '.local', 'share', 'opencode');
  const [first = usual, ...rest] = [...new Set([...folders, usual])];
  return [homeIn(first, path, env), ...rest.map((folder) => homeIn(folder, path, env))];
}

function homeIn(data: string, path: typeof posix, env: HomeContext['env']): OpencodeHome {
  const named = env['OPENCODE_DB'];
  const file = named && named !== ':memory:' ? named : 'opencode.db';
  const database = path.isAbsolute(file) ? file : path.join(data, file);
  return { data, database, storage: path.join(data, 'storage') };
}

/** The first candidate that holds anything; the first of all where none does, so that it can be watched for. */
export function findHome(context: HomeContext, exists: (path: string) => boolean): OpencodeHome {
  const candidates = homeCandidates(context);
  const [first] = candidates;
  return candidates.find((home) => exists(home.database) || exists(home.storage)) ?? first;
}
