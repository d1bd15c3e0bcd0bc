import { fstatSync, statSync } from 'node:fs';
import { devNull } from 'node:os';

/**
 * Whether a descriptor is a terminal. `node:tty` brings sockets and streams along and takes 5 ms of a start
 * (Bun 1.4.5), `process.stdin` as much again: it is loaded only for what could be one.
 */
export function isTerminal(fd: 0 | 1 | 2, platform: NodeJS.Platform = process.platform): boolean {
  return couldBeTerminal(fd, platform) && process.getBuiltinModule('node:tty').isatty(fd);
}

function couldBeTerminal(fd: number, platform: NodeJS.Platform): boolean {
  // What `fstat` says of a Windows console depends on its version.
  if (platform === 'win32') return true;
  try {
    const stat = fstatSync(fd);
    return stat.isCharacterDevice() && stat.rdev !== statSync(devNull).rdev;
  } catch {
    // Closed by whoever started us: nobody sits there.
    return false;
  }
}
