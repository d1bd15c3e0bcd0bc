import {
  closeSync,
  constants,
  fstatSync,
  linkSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  type Stats,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { errorCode } from '../../files/file-system.ts';

/** What a look at a journal tells; links are never followed (S-520). */
export interface JournalStat {
  readonly kind: 'file' | 'folder' | 'link' | 'other';
  readonly size: number;
  readonly mtimeMs: number;
  readonly ino: number;
}

/** The few file operations of the journal watcher; replaced in tests to force races. Each throws the system's error. */
export interface JournalFiles {
  /** Names in a folder; empty when it is missing. */
  names(folder: string): readonly string[];
  /** `undefined` when there is nothing. */
  stat(path: string): JournalStat | undefined;
  /** Bytes from an offset, at most `length`, and the file they came from. Opens no link and waits for no FIFO. */
  read(path: string, offset: number, length: number): { readonly bytes: Buffer; readonly stat: JournalStat };
  /** Appends with one write; makes the file 0600 if it is missing. */
  append(path: string, bytes: Uint8Array): void;
  /** Makes a file with this content, 0600; fails where one exists. */
  create(path: string, bytes: Uint8Array): void;
  /** Gives a file a second name; false when that name is taken, or the file system has no second names. */
  link(from: string, to: string): boolean;
  rename(from: string, to: string): void;
  remove(path: string): void;
}

const NOFOLLOW = constants.O_NOFOLLOW ?? 0;
const READ = constants.O_RDONLY | NOFOLLOW | (constants.O_NONBLOCK ?? 0);
const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | NOFOLLOW;
const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | NOFOLLOW;

/** The real file system. */
export const systemJournalFiles: JournalFiles = {
  names(folder) {
    try {
      return readdirSync(folder);
    } catch (error) {
      if (isMissing(error)) return [];
      throw error;
    }
  },
  stat(path) {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    return stats && toStat(stats);
  },
  read(path, offset, length) {
    const fd = openSync(path, READ);
    try {
      const stat = toStat(fstatSync(fd));
      const bytes = Buffer.allocUnsafe(Math.max(0, Math.min(length, stat.size - offset)));
      return { bytes: bytes.subarray(0, readAll(fd, bytes, offset)), stat };
    } finally {
      closeSync(fd);
    }
  },
  append: (path, bytes) => write(path, APPEND, bytes),
  create: (path, bytes) => write(path, CREATE, bytes),
  link(from, to) {
    try {
      linkSync(from, to);
      return true;
    } catch (error) {
      if (['EEXIST', 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'].includes(errorCode(error)))
        return false;
      throw error;
    }
  },
  rename: renameSync,
  remove(path) {
    try {
      unlinkSync(path);
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  },
};

function toStat(stats: Stats): JournalStat {
  const kind = stats.isFile()
    ? 'file'
    : stats.isDirectory()
      ? 'folder'
      : stats.isSymbolicLink()
        ? 'link'
        : 'other';
  return { kind, size: stats.size, mtimeMs: stats.mtimeMs, ino: stats.ino };
}

function readAll(fd: number, into: Buffer, offset: number): number {
  let total = 0;
  while (total < into.length) {
    const count = readSync(fd, into, total, into.length - total, offset + total);
    if (count === 0) break;
    total += count;
  }
  return total;
}

function write(path: string, flags: number, bytes: Uint8Array): void {
  const fd = openSync(path, flags, 0o600);
  try {
    if (writeSync(fd, bytes) !== bytes.length) throw new Error('the disk is full');
  } finally {
    closeSync(fd);
  }
}

function isMissing(error: unknown): boolean {
  const code = errorCode(error);
  return code === 'ENOENT' || code === 'ENOTDIR';
}
