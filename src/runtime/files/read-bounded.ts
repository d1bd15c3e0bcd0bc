import { closeSync, constants, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { type FileProblem, toProblem } from './file-system.ts';

export type BoundedRead =
  | { readonly kind: 'read'; readonly bytes: Buffer; readonly mode: number }
  | { readonly kind: 'too-large'; readonly size: number }
  | FileProblem;

/** Reads a whole file of at most `bound` bytes; a FIFO, device or folder is not opened. Never throws. */
export function readBounded(path: string, bound: number): BoundedRead {
  try {
    if (!statSync(path).isFile()) return { kind: 'not-a-file' };
    const fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    try {
      const stats = fstatSync(fd);
      if (!stats.isFile()) return { kind: 'not-a-file' };
      if (stats.size > bound) return { kind: 'too-large', size: stats.size };
      const bytes = readUpTo(fd, stats.size, bound);
      if (bytes.length > bound) return { kind: 'too-large', size: bytes.length };
      return { kind: 'read', bytes, mode: stats.mode & 0o777 };
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    return toProblem(error);
  }
}

/**
 * The whole file, or `bound + 1` bytes of it. Read to its end and not to its size: it may grow meanwhile, and
 * files of `/proc` say 0.
 */
function readUpTo(fd: number, size: number, bound: number): Buffer {
  const chunks: Buffer[] = [];
  let length = 0;
  while (length <= bound) {
    const chunk = Buffer.allocUnsafe(Math.min(bound + 1 - length, Math.max(size + 1 - length, 4096)));
    const count = readSync(fd, chunk, 0, chunk.length, length);
    if (count === 0) break;
    chunks.push(chunk.subarray(0, count));
    length += count;
  }
  return Buffer.concat(chunks);
}
