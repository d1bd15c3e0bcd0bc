/**
 * The one writer of files: our own private ones, and (with `keep`) settings of others that `install/` edits.
 *
 * - Private from birth: the temporary file is created 0600 and given its final mode through its descriptor,
 *   so neither a umask nor a rewrite opens it up (C1). Folders that are made are 0700.
 * - Atomic: written beside the target, flushed to disk, renamed over it. A failure leaves the old file and no
 *   temporary one.
 * - A link stays a link: the target at the end of the chain is replaced, also when it does not exist yet (H9).
 * - Nothing is written when the bytes are the same, so times and watchers stay quiet (H10).
 */
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readFileSync,
  readlinkSync,
  renameSync,
  type Stats,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { ensureHome } from '../store/home.ts';
import { errorCode } from './file-system.ts';

export { type BoundedRead, readBounded } from './read-bounded.ts';

/** Mode of every file of ours. */
export const PRIVATE_FILE_MODE = 0o600;
/** How long a rename over a file that a virus scanner or an editor holds is retried on Windows, milliseconds. */
export const RENAME_PATIENCE_MS = 1000;
const LINKS_FOLLOWED = 40;

/** What differs between systems, and what tests make fail. */
export interface WriterPort {
  readonly platform: NodeJS.Platform;
  rename(from: string, to: string): void;
  /** Blocks; only used between attempts on Windows. */
  pause(milliseconds: number): void;
  fsync(fd: number): void;
}

export const systemWriter: WriterPort = {
  platform: process.platform,
  rename: renameSync,
  pause: (milliseconds) => Bun.sleepSync(milliseconds),
  fsync: fsyncSync,
};

export interface WriteOptions {
  /** Keep mode and owner of the file that is there (someone else's settings); default is 0600 and our own. */
  readonly keep?: boolean;
  /**
   * What the file must hold for the write to go ahead: its bytes as the caller read them, or `null` for no
   * file (H12). Someone else's change since then is a `conflict`, not lost.
   */
  readonly expected?: Uint8Array | string | null;
  /** `false` for caches, which may be lost in a power cut: saves waiting for the disk. Default `true`. */
  readonly durable?: boolean;
  readonly port?: WriterPort;
}

export type WriteResult =
  /** `path` is the file itself, at the end of any links. */
  | { readonly kind: 'written'; readonly path: string }
  | { readonly kind: 'unchanged'; readonly path: string }
  | { readonly kind: 'conflict'; readonly path: string }
  /** Nothing was changed. `code` is the system's, or `ELOOP` and `ENOTFILE` of ours. */
  | { readonly kind: 'failed'; readonly path: string; readonly code: string };

/** Writes a whole file; see the rules at the top. Never throws. */
export function writePrivate(
  path: string,
  content: string | Uint8Array,
  options: WriteOptions = {},
): WriteResult {
  const port = options.port ?? systemWriter;
  const bytes = toBytes(content);
  try {
    const target = followLinks(path);
    const current = readCurrent(target);
    if (options.expected !== undefined && !holds(current?.bytes, options.expected)) {
      return { kind: 'conflict', path: target };
    }
    if (current?.bytes.equals(bytes)) {
      if (options.keep !== true) closeToOthers(target, current.stats, port.platform);
      return { kind: 'unchanged', path: target };
    }
    const folder = ensureFolder(dirname(target), port.platform);
    if (folder !== undefined) return { kind: 'failed', path: target, code: folder };
    const { expected } = options;
    replace(target, bytes, {
      like: options.keep === true ? current?.stats : undefined,
      durable: options.durable !== false,
      isStill: () => expected === undefined || holds(readCurrent(target)?.bytes, expected),
      port,
    });
    return { kind: 'written', path: target };
  } catch (error) {
    if (error instanceof ChangedMeanwhile) return { kind: 'conflict', path: error.message };
    return { kind: 'failed', path, code: errorCode(error) };
  }
}

export interface AppendOptions {
  /** At this size, in bytes, the file becomes `<name>.1` (one is kept) and a new one is begun. */
  readonly rotateAt?: number;
  readonly port?: WriterPort;
}

/**
 * Appends to a log of ours, private from birth. One write call for one text, so that lines of several
 * processes do not mix. Returns the system's code where it failed: a log that cannot be written is no reason
 * to stop.
 */
export function appendPrivate(path: string, text: string, options: AppendOptions = {}): string | undefined {
  const port = options.port ?? systemWriter;
  try {
    const folder = ensureFolder(dirname(path), port.platform);
    if (folder !== undefined) return folder;
    if (options.rotateAt !== undefined) rotate(path, Buffer.byteLength(text), options.rotateAt, port);
    const fd = openSync(path, 'a', PRIVATE_FILE_MODE);
    try {
      const stats = fstatSync(fd);
      if (!stats.isFile()) return 'ENOTFILE';
      if (port.platform !== 'win32' && (stats.mode & 0o077) !== 0) fchmodSync(fd, PRIVATE_FILE_MODE);
      writeSync(fd, text);
    } finally {
      closeSync(fd);
    }
    return undefined;
  } catch (error) {
    return errorCode(error);
  }
}

/**
 * The file at the end of a chain of links, whether it exists or not (H9). Throws the system's error where a
 * folder on the way may not be entered, `ELOOP` for a circle.
 */
export function followLinks(path: string): string {
  let at = resolve(path);
  for (let hops = 0; hops < LINKS_FOLLOWED; hops += 1) {
    const stats = lstatSync(at, { throwIfNoEntry: false });
    if (stats === undefined || !stats.isSymbolicLink()) return at;
    at = resolve(dirname(at), readlinkSync(at));
  }
  throw new Refusal('ELOOP');
}

/** A reason of ours not to write, with a code as the system's errors have one. */
class Refusal extends Error {
  readonly code: string;

  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

/** The target is no longer what the caller expects; the message is its path. */
class ChangedMeanwhile extends Error {}

interface Current {
  readonly bytes: Buffer;
  readonly stats: Stats;
}

function readCurrent(target: string): Current | undefined {
  const stats = statSync(target, { throwIfNoEntry: false });
  if (stats === undefined) return undefined;
  if (!stats.isFile()) throw new Refusal('ENOTFILE');
  return { bytes: readFileSync(target), stats };
}

function holds(current: Buffer | undefined, expected: Uint8Array | string | null): boolean {
  if (expected === null || current === undefined) return expected === null && current === undefined;
  return current.equals(toBytes(expected));
}

/** A folder that exists keeps its mode: it may be someone else's. Returns the code where it cannot be made. */
function ensureFolder(folder: string, platform: NodeJS.Platform): string | undefined {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return undefined;
  const made = ensureHome(folder, platform);
  return made.kind === 'unavailable' ? made.code : undefined;
}

interface Replacing {
  /** Whose mode and owner the new file gets; `undefined` for 0600 and our own. */
  readonly like: Stats | undefined;
  readonly durable: boolean;
  /** Asked last, since writing and flushing took time in which someone else may have written (H12). */
  isStill(): boolean;
  readonly port: WriterPort;
}

function replace(target: string, bytes: Buffer, { like, durable, isStill, port }: Replacing): void {
  const temporary = join(
    dirname(target),
    `.${basename(target)}.${process.pid}.${crypto.randomUUID().slice(0, 8)}.tmp`,
  );
  const fd = openSync(temporary, 'wx', PRIVATE_FILE_MODE);
  try {
    try {
      writeAll(fd, bytes);
      if (port.platform !== 'win32') setAccess(fd, like);
      if (durable) port.fsync(fd);
    } finally {
      closeSync(fd);
    }
    if (!isStill()) throw new ChangedMeanwhile(target);
    renameOver(temporary, target, port);
  } catch (error) {
    discard(temporary);
    throw error;
  }
  if (durable && port.platform !== 'win32') syncFolder(dirname(target), port);
}

function writeAll(fd: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, bytes.length - at);
}

/** The final mode, set through the descriptor: a umask does not count there. Throws if an owner cannot be kept. */
function setAccess(fd: number, like: Stats | undefined): void {
  if (like === undefined) {
    fchmodSync(fd, PRIVATE_FILE_MODE);
    return;
  }
  const mine = fstatSync(fd);
  const keepsOwner = mine.uid === like.uid && mine.gid === like.gid;
  if (!keepsOwner) fchownSync(fd, like.uid, like.gid);
  fchmodSync(fd, like.mode & 0o7777);
}

function renameOver(from: string, to: string, port: WriterPort): void {
  if (port.platform !== 'win32') {
    port.rename(from, to);
    return;
  }
  // On Windows a file that a scanner or an editor has open for a moment cannot be replaced until it is closed.
  let waited = 0;
  for (let wait = 5; ; wait *= 2) {
    try {
      port.rename(from, to);
      return;
    } catch (error) {
      if (!['EPERM', 'EBUSY', 'EACCES'].includes(errorCode(error)) || waited >= RENAME_PATIENCE_MS)
        throw error;
      port.pause(wait);
      waited += wait;
    }
  }
}

function discard(temporary: string): void {
  try {
    unlinkSync(temporary);
  } catch {
    // It is gone already, or the folder is: what made the write fail is what the caller must hear.
  }
}

function syncFolder(folder: string, port: WriterPort): void {
  try {
    const fd = openSync(folder, constants.O_RDONLY);
    try {
      port.fsync(fd);
    } finally {
      closeSync(fd);
    }
  } catch {
    // Some file systems refuse to flush a folder. The new content is whole either way, at worst under the old name.
  }
}

function closeToOthers(target: string, stats: Stats, platform: NodeJS.Platform): void {
  if (platform !== 'win32' && (stats.mode & 0o077) !== 0) chmodSync(target, PRIVATE_FILE_MODE);
}

function rotate(path: string, adding: number, limit: number, port: WriterPort): void {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined || stats.size === 0 || stats.size + adding <= limit) return;
  renameOver(path, `${path}.1`, port);
}

function toBytes(content: string | Uint8Array): Buffer {
  if (typeof content === 'string') return Buffer.from(content, 'utf8');
  return Buffer.from(content.buffer, content.byteOffset, content.byteLength);
}
