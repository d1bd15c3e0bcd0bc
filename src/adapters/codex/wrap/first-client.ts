import { type FileSystemPort, tryNames, tryStat } from '../../../runtime/files/file-system.ts';
import { type CodexHome, joinPath } from '../homes.ts';
import type { CodexHost } from '../host.ts';
import { readThreadLocks } from '../locks.ts';
import { findLockHoldingServers } from '../server-find.ts';

/**
 * Whether the server behind this socket has a thread already: then the terminal was its first client, and its name is
 * what the records carry. Where locks can't be read, a record that was written since the server's start says
 * the same.
 *
 * @param socket the socket's real path
 * @param startedAt epoch milliseconds
 */
export function hasThread(
  home: CodexHome,
  socket: string,
  startedAt: number,
  files: FileSystemPort,
  host: CodexHost,
): boolean {
  const locks = readThreadLocks(home, files, host);
  if (locks.readable) return findLockHoldingServers(locks, host).some(({ path }) => path === socket);
  return newestRollout(home, files, host.platform) > startedAt;
}

/** When the newest record of the newest day was written, epoch milliseconds; 0 without any. */
function newestRollout(home: CodexHome, files: FileSystemPort, platform: NodeJS.Platform): number {
  const newest = (folder: string, depth: number): number => {
    const names = tryNames(files, folder).names.toSorted();
    if (depth === 0)
      return Math.max(0, ...names.map((name) => mtime(joinPath(platform, folder, name), files)));
    const last = names.filter((name) => /^\d+$/.test(name)).at(-1);
    return last === undefined ? 0 : newest(joinPath(platform, folder, last), depth - 1);
  };
  return newest(home.sessions, 3);
}

function mtime(path: string, files: FileSystemPort): number {
  const stat = tryStat(files, path);
  return 'size' in stat ? stat.mtimeMs : 0;
}
