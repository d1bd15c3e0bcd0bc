/**
 * The connector home: the one folder that we write in (R-30, design §8).
 *
 * Reading never creates it: a command that only reads works with a missing or unwritable home, it then has
 * no index. What writes a file of ours calls {@link ensureHome} first.
 */
import { chmodSync, mkdirSync, statSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { errorCode } from '../files/file-system.ts';

/** Mode of every folder of ours. */
export const PRIVATE_FOLDER_MODE = 0o700;

/**
 * `SHADOWOB_CONNECTOR_HOME`, else `$SHADOWOB_HOME/connector`, else `~/.shadowob/connector`. An empty
 * variable counts as unset; a relative one is taken from the current folder.
 */
export function connectorHome(env: Readonly<Record<string, string | undefined>>, userHome: string): string {
  const own = env['SHADOWOB_CONNECTOR_HOME'];
  if (own) return absolute(own);
  return join(shadowHome(env, userHome), 'connector');
}

/** `SHADOWOB_HOME`, else `~/.shadowob`: the parent folder, where the device identity lies. */
export function shadowHome(env: Readonly<Record<string, string | undefined>>, userHome: string): string {
  const named = env['SHADOWOB_HOME'];
  return named ? absolute(named) : join(userHome, '.shadowob');
}

export type HomeState =
  | { readonly kind: 'ready' }
  /** It could not be made or is no folder; `code` is the system's (`EACCES`, `EROFS`, `EEXIST`, …). */
  | { readonly kind: 'unavailable'; readonly code: string };

/**
 * Makes a folder of ours (the home, or one below it) with mode 0700 whatever the umask, and takes access away
 * from others where an older one has it (C1). Parents that exist are left as they are. Never throws.
 */
export function ensureHome(folder: string, platform: NodeJS.Platform = process.platform): HomeState {
  try {
    mkdirSync(folder, { recursive: true, mode: PRIVATE_FOLDER_MODE });
    // A POSIX mode says nothing on Windows, where the profile folder's access list is inherited.
    if (platform !== 'win32' && (statSync(folder).mode & 0o077) !== 0) chmodSync(folder, PRIVATE_FOLDER_MODE);
    return { kind: 'ready' };
  } catch (error) {
    return { kind: 'unavailable', code: errorCode(error) };
  }
}

function absolute(path: string): string {
  return isAbsolute(path) ? path : resolve(path);
}
