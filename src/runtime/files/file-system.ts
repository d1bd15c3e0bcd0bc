/**
 * The few file operations that scans need, behind one port, so that tests count the work (R-27: "0 files
 * opened" is a count) and can change a file between two calls.
 *
 * Everything is synchronous: a one-shot command has nothing else to do meanwhile, and a `stat` through a
 * promise costs several times the system call (2,000 of them: 3 ms this way).
 */
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readdirSync,
  readSync,
  type Stats,
  statSync,
} from 'node:fs';
import type { FileStamp } from '../store/session-index.ts';

/** What a `stat` says: a stamp, and what kind of thing it is. Times keep the fraction that the system gives. */
export interface FileStat extends FileStamp {
  readonly kind: 'file' | 'folder' | 'other';
}

/** An entry of a folder; `link` is not followed. */
export interface FolderEntry {
  readonly name: string;
  readonly kind: 'file' | 'folder' | 'link' | 'other';
}

/**
 * Why a file or folder gave nothing:
 * `missing`; `not-a-file` (a FIFO, socket, device or folder, never opened); `changed` (truncated under the
 * reader twice); `unreadable` with the system's code (`EACCES`, `EIO`, …).
 */
export type FileProblem =
  | { readonly kind: 'missing' }
  | { readonly kind: 'not-a-file' }
  | { readonly kind: 'changed' }
  | { readonly kind: 'unreadable'; readonly code: string };

/** Raw operations; each throws the system's error. */
export interface FileSystemPort {
  stat(path: string): FileStat;
  /** Names only: a third cheaper than with kinds, which counts in a folder of 100,000 (G1). */
  names(folder: string): string[];
  entries(folder: string): FolderEntry[];
  /** Opens for reading without ever waiting: a FIFO has no writer, a network drive may be slow to lock. */
  open(path: string): number;
  fstat(fd: number): FileStat;
  /** Returns the number of bytes read; 0 at the end of the file. */
  read(fd: number, into: Uint8Array, offset: number, length: number, position: number): number;
  close(fd: number): void;
}

// O_NONBLOCK does not exist on Windows, where there are no FIFOs in the file system either.
const READ_FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** The real file system. */
export const systemFiles: FileSystemPort = {
  stat: (path) => toFileStat(statSync(path)),
  names: (folder) => readdirSync(folder),
  entries: (folder) =>
    readdirSync(folder, { withFileTypes: true }).map((entry) => ({
      name: entry.name,
      kind: entry.isFile()
        ? 'file'
        : entry.isDirectory()
          ? 'folder'
          : entry.isSymbolicLink()
            ? 'link'
            : 'other',
    })),
  open: (path) => openSync(path, READ_FLAGS),
  fstat: (fd) => toFileStat(fstatSync(fd)),
  read: (fd, into, offset, length, position) => readSync(fd, into, offset, length, position),
  close: (fd) => closeSync(fd),
};

/** How much work was done through a counting port. */
export interface FileWork {
  /** Files opened for reading. */
  opened: number;
  bytesRead: number;
  /** `stat` calls by path (`fstat` comes free with an open file and is not counted). */
  stats: number;
  /** Folders listed. */
  listed: number;
}

/** A port that counts what goes through it. */
export function countFiles(port: FileSystemPort = systemFiles): { files: FileSystemPort; work: FileWork } {
  const work: FileWork = { opened: 0, bytesRead: 0, stats: 0, listed: 0 };
  const files: FileSystemPort = {
    ...port,
    stat(path) {
      work.stats += 1;
      return port.stat(path);
    },
    names(folder) {
      work.listed += 1;
      return port.names(folder);
    },
    entries(folder) {
      work.listed += 1;
      return port.entries(folder);
    },
    open(path) {
      work.opened += 1;
      return port.open(path);
    },
    read(fd, into, offset, length, position) {
      const count = port.read(fd, into, offset, length, position);
      work.bytesRead += count;
      return count;
    },
  };
  return { files, work };
}

/** The code of a system error, or `'unknown'`. */
export function errorCode(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('code' in error)) return 'unknown';
  return typeof error.code === 'string' ? error.code : 'unknown';
}

/** A thrown system error as a problem. */
export function toProblem(error: unknown): FileProblem {
  const code = errorCode(error);
  if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'missing' };
  // ENXIO: a socket, or a FIFO that is opened without waiting; EISDIR: how Windows refuses a folder.
  if (code === 'ENXIO' || code === 'EISDIR' || code === 'EOPNOTSUPP') return { kind: 'not-a-file' };
  return { kind: 'unreadable', code };
}

/** A `stat` that does not throw. */
export function tryStat(files: FileSystemPort, path: string): FileStat | FileProblem {
  try {
    return files.stat(path);
  } catch (error) {
    return toProblem(error);
  }
}

/** Why an answer of {@link tryStat} is not a regular file; `undefined` if it is one. */
export function notAFile(answer: FileStat | FileProblem): FileProblem | undefined {
  if (!('size' in answer)) return answer;
  return answer.kind === 'file' ? undefined : { kind: 'not-a-file' };
}

/** The names in a folder; empty if it is missing, unreadable or no folder (the problem is then given). */
export function tryNames(
  files: FileSystemPort,
  folder: string,
): { readonly names: readonly string[]; readonly problem?: FileProblem } {
  try {
    return { names: files.names(folder) };
  } catch (error) {
    return { names: [], problem: toProblem(error) };
  }
}

/** Whether two stamps are of the same content, as far as a `stat` can tell. */
export function sameContent(a: FileStamp, b: FileStamp): boolean {
  return a.size === b.size && a.mtimeMs === b.mtimeMs && a.ino === b.ino && a.dev === b.dev;
}

function toFileStat(stats: Stats): FileStat {
  return {
    kind: stats.isFile() ? 'file' : stats.isDirectory() ? 'folder' : 'other',
    size: stats.size,
    mtimeMs: stats.mtimeMs,
    ino: stats.ino,
    dev: stats.dev,
  };
}
