import { FFIType } from 'bun:ffi';
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  statSync,
  writeSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { errorCode } from '../files/file-system.ts';
import { endpointOf } from './endpoint.ts';
import { openLibc } from './libc.ts';

/**
 * The one lock that says which process is the service (R-34, D1, D2, D10). The system holds it for as long as the
 * process lives and drops it with the process, however that ends; a pid in a file is only for error texts. A
 * service that is slow to answer still holds it.
 */
export interface HeldLock {
  readonly kind: 'held';
  readonly path: string;
  /** Whether its file is still the one at the path: without it another process would hold a lock of the same name. */
  inPlace(): boolean;
  /** Lets it go. Also happens by itself when the process ends. */
  release(): void;
}

export type LockResult =
  | HeldLock
  /** Another process holds it; `holder` is what it wrote about itself, unproven. */
  | { readonly kind: 'busy'; readonly holder: LockHolder | undefined }
  /** The system can't lock here; `reason` is one line for the user. */
  | { readonly kind: 'unavailable'; readonly reason: string };

/** What the holder wrote into the lock file: information, never proof (D2). */
export interface LockHolder {
  readonly pid: number;
  readonly version: string;
  /** RFC 3339. */
  readonly since: string;
}

/** `flock(2)`: 0 when taken, -1 when another open file holds it. */
export type Flock = (fd: number, operation: number) => number;

export interface LockOptions {
  readonly path: string;
  readonly holder: LockHolder;
  readonly platform?: NodeJS.Platform;
  /** Replaces the C library's function. */
  readonly flock?: Flock | undefined;
  /** Replaces the exclusive pipe of Windows; see {@link holdPipe}. */
  readonly holdPipe?: typeof holdPipe;
}

const LOCK_EX = 2;
const LOCK_NB = 4;
const OPEN_FLAGS = constants.O_RDWR | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0);

/**
 * Takes the lock, at once or not at all. The file is made 0600, is never deleted (two processes could then hold
 * locks on two files of one name), and its descriptor is not inherited by children, or a child that outlives the
 * service would keep the lock.
 */
export async function acquireLock(options: LockOptions): Promise<LockResult> {
  const platform = options.platform ?? process.platform;
  if (platform === 'win32') return lockOnWindows(options);
  const flock = 'flock' in options ? options.flock : systemFlock();
  if (!flock) return { kind: 'unavailable', reason: 'the C library with flock was not found' };
  try {
    return lockFile(options, flock);
  } catch (error) {
    return { kind: 'unavailable', reason: `${options.path}: ${errorCode(error)}` };
  }
}

function systemFlock(): Flock | undefined {
  return openLibc({ flock: { args: [FFIType.i32, FFIType.i32], returns: FFIType.i32 } })?.flock;
}

function lockFile(options: LockOptions, flock: Flock): LockResult {
  const fd = openSync(options.path, OPEN_FLAGS, 0o600);
  if (flock(fd, LOCK_EX | LOCK_NB) !== 0) {
    closeSync(fd);
    return { kind: 'busy', holder: readHolder(options.path) };
  }
  fchmodSync(fd, 0o600);
  ftruncateSync(fd, 0);
  writeSync(fd, `${JSON.stringify(options.holder)}\n`, 0);
  const { path } = options;
  const { ino, dev } = fstatSync(fd);
  const inPlace = (): boolean => {
    try {
      const there = statSync(path);
      return there.ino === ino && there.dev === dev;
    } catch (error) {
      // Whatever else keeps the file from being looked at does not prove that it is gone.
      return !['ENOENT', 'ENOTDIR'].includes(errorCode(error));
    }
  };
  return { kind: 'held', path, inPlace, release: once(() => closeSync(fd)) };
}

/** Between two looks whether a lock is free, milliseconds. */
const LOOK_MS = 5;

/**
 * The same lock for work of milliseconds that may not be interrupted: waits for it, and blocks meanwhile. Windows has
 * none of this kind, its pipe can only be awaited.
 */
export function waitForLock(
  path: string,
  patienceMs: number,
  flock: Flock | undefined = systemFlock(),
): { readonly kind: 'held'; readonly release: () => void } | { readonly kind: 'busy' | 'unavailable' } {
  if (!flock) return { kind: 'unavailable' };
  try {
    const fd = openSync(path, OPEN_FLAGS, 0o600);
    for (let waited = 0; flock(fd, LOCK_EX | LOCK_NB) !== 0; waited += LOOK_MS) {
      if (waited >= patienceMs) {
        closeSync(fd);
        return { kind: 'busy' };
      }
      Bun.sleepSync(LOOK_MS);
    }
    return { kind: 'held', release: once(() => closeSync(fd)) };
  } catch {
    // No folder for it, or a read-only one: whoever then writes there hears of it.
    return { kind: 'unavailable' };
  }
}

async function lockOnWindows(options: LockOptions): Promise<LockResult> {
  const hold = options.holdPipe ?? holdPipe;
  const held = await hold(endpointOf(options.path, 'win32').path);
  if (held.kind !== 'held') return held.kind === 'busy' ? { kind: 'busy', holder: undefined } : held;
  // A pipe has no file that could be removed.
  return { kind: 'held', path: options.path, inPlace: () => true, release: once(held.release) };
}

type PipeResult =
  | { readonly kind: 'held'; readonly release: () => void }
  | { readonly kind: 'busy' }
  | { readonly kind: 'unavailable'; readonly reason: string };

/**
 * Windows: the first instance of a pipe name can exist only once in the system, and goes with its process. Nobody
 * talks through it. A socket address of another system works alike while its process lives, which is what the
 * tests use.
 */
export function holdPipe(address: string): Promise<PipeResult> {
  const { promise, resolve } = Promise.withResolvers<PipeResult>();
  const server = createServer((socket) => socket.destroy());
  server.once('error', (error) => {
    const code = errorCode(error);
    const taken = code === 'EADDRINUSE' || code === 'EACCES' || code === 'EPERM';
    resolve(taken ? { kind: 'busy' } : { kind: 'unavailable', reason: `${address}: ${code}` });
  });
  server.listen(address, () => resolve({ kind: 'held', release: () => server.close() }));
  server.unref();
  return promise;
}

/** What the holder wrote; `undefined` for an empty, foreign or half-written file. */
export function readHolder(path: string): LockHolder | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (typeof value !== 'object' || value === null) return undefined;
    if (!('pid' in value) || !('version' in value) || !('since' in value)) return undefined;
    const { pid, version, since } = value;
    const fits = Number.isInteger(pid) && typeof version === 'string' && typeof since === 'string';
    return fits ? { pid: Number(pid), version, since } : undefined;
  } catch {
    // Read while the holder writes, or not ours: the lock itself is what counts.
    return undefined;
  }
}

function once(run: () => void): () => void {
  const state = { done: false };
  return () => {
    if (state.done) return;
    state.done = true;
    run();
  };
}
