import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { type FileStat, type FileSystemPort, tryNames, tryStat } from '../../runtime/files/file-system.ts';
import { identityFromProc } from '../../runtime/process/identity.ts';
import { readBootClock } from '../../runtime/process/proc-stat.ts';
import type { Claim } from '../../runtime/session/evidence.ts';
import { type CodexHome, joinPath } from './homes.ts';
import type { CodexHost } from './host.ts';
import { isAtLeast } from './version.ts';

/**
 * A thread's writer lock. Codex holds it (`flock`) from the thread's start to its clean end, then removes the file;
 * after a kill the file stays and the lock is gone (CX §1). It proves life, never activity.
 *
 * `held`: by this process; the pid is unknown if it lives in another pid namespace. `free`: the file is there and
 * nobody holds it. `absent`: there is no file, but the folder exists. `unknown`: can't be told here.
 */
export type ThreadLock =
  | {
      readonly kind: 'held';
      readonly pid?: number;
      /** When the holder was started, epoch milliseconds, good to 20 ms. */
      readonly startedAt?: number;
    }
  | { readonly kind: 'free' }
  | { readonly kind: 'absent' }
  | { readonly kind: 'unknown' };

export interface ThreadLocks {
  of(threadId: string): ThreadLock;
  /** Every thread whose lock is held. */
  readonly held: ReadonlyMap<string, ThreadLock & { kind: 'held' }>;
  /** Whether locks can be read at all on this system. */
  readonly readable: boolean;
}

const UNKNOWN: ThreadLock = { kind: 'unknown' };
const LOCK_NAME = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.lock$/i;

/**
 * Reads all thread locks without ever taking one: a probe that takes a lock, even for a moment, can make Codex fail
 * (R-22). Linux compares `/proc/locks` with the lock files' inodes; on other systems every lock is `unknown`.
 */
export function readThreadLocks(home: CodexHome, files: FileSystemPort, host: CodexHost): ThreadLocks {
  const none: ThreadLocks = { of: () => UNKNOWN, held: new Map(), readable: false };
  if (host.platform !== 'linux') return none;
  const { names, problem } = tryNames(files, home.locks);
  if (problem) return none;
  const table = readProcLocks(host.procRoot);
  if (!table) return none;
  const held = new Map<string, ThreadLock & { kind: 'held' }>();
  const free = new Set<string>();
  const clock = readBootClock(host.now(), host.procRoot);
  for (const name of names) {
    // `.coordination.lock` is only held while another one is being taken.
    const id = LOCK_NAME.exec(name)?.[1]?.toLowerCase();
    if (id === undefined) continue;
    const path = joinPath(host.platform, home.locks, name);
    const stat = tryStat(files, path);
    const owner = 'size' in stat ? ownerOf(stat, path, table, host) : undefined;
    if (!owner) free.add(id);
    else held.set(id, { kind: 'held', ...holder(owner, clock) });
  }
  return {
    of: (id) => held.get(id) ?? (free.has(id) ? { kind: 'free' } : { kind: 'absent' }),
    held,
    readable: true,
  };
}

interface Owner {
  readonly pid: number | undefined;
  readonly startTicks: string | undefined;
}

function holder(owner: Owner, clock: ReturnType<typeof readBootClock>): { pid?: number; startedAt?: number } {
  const startedAt = owner.startTicks === undefined ? null : clock.epochMs(owner.startTicks);
  return {
    ...(owner.pid === undefined ? {} : { pid: owner.pid }),
    ...(startedAt === null ? {} : { startedAt }),
  };
}

/** One granted lock of `/proc/locks`. */
export interface ProcLock {
  readonly pid: number;
  readonly major: number;
  readonly minor: number;
  readonly ino: number;
}

/** Parses `/proc/locks`; processes that only wait for a lock (`->`) hold nothing and are left out. */
export function parseProcLocks(text: string): readonly ProcLock[] {
  const form = /^\d+:\s+(?:FLOCK|OFDLCK|POSIX)\s+\S+\s+WRITE\s+(-?\d+)\s+([0-9a-f]+):([0-9a-f]+):(\d+)\s/i;
  return text.split('\n').flatMap((line): ProcLock[] => {
    const [, pid, major, minor, ino] = form.exec(line) ?? [];
    if (pid === undefined || major === undefined || minor === undefined || ino === undefined) return [];
    return [
      {
        pid: Number(pid),
        major: Number.parseInt(major, 16),
        minor: Number.parseInt(minor, 16),
        ino: Number(ino),
      },
    ];
  });
}

/**
 * Read twice: the system gives the list in pieces, and a lock that goes between two of them lets another one slip
 * through. One that has gone meanwhile does no harm, since its holder must still have the file open.
 */
function readProcLocks(procRoot: string): ReadonlyMap<number, readonly ProcLock[]> | undefined {
  const read = () => readFileSync(`${procRoot}/locks`, 'utf8');
  try {
    return Map.groupBy(parseProcLocks(`${read()}\n${read()}`), (lock) => lock.ino);
  } catch {
    // Hidden by a sandbox: then nothing is known of any lock, which is an answer of its own.
    return undefined;
  }
}

/** Who holds this file's lock: a live process, or one that this pid namespace can't show (pid 0 or less). */
function ownerOf(
  stat: FileStat,
  path: string,
  table: ReadonlyMap<number, readonly ProcLock[]>,
  host: CodexHost,
): Owner | undefined {
  for (const lock of table.get(stat.ino) ?? []) {
    if (lock.pid <= 0) {
      if (sameDevice(stat.dev, lock)) return { pid: undefined, startTicks: undefined };
      continue;
    }
    const identity = identityFromProc(lock.pid, host.procRoot);
    if (!identity) continue;
    // Some file systems (btrfs, overlays) show another device number here than `stat` does.
    if (!sameDevice(stat.dev, lock) && !hasOpen(lock.pid, path, host.procRoot)) continue;
    return { pid: lock.pid, startTicks: identity.startToken ?? undefined };
  }
  return undefined;
}

/** `st_dev` as user space sees it, against the kernel's major and minor numbers. */
function sameDevice(dev: number, lock: ProcLock): boolean {
  const big = BigInt(dev);
  const major = Number(((big >> 8n) & 0xfffn) | ((big >> 32n) & 0xfffff000n));
  const minor = Number((big & 0xffn) | ((big >> 12n) & 0xffffff00n));
  return major === lock.major && minor === lock.minor;
}

function hasOpen(pid: number, path: string, procRoot: string): boolean {
  try {
    const folder = `${procRoot}/${pid}/fd`;
    return readdirSync(folder).some((fd) => readlinkSync(`${folder}/${fd}`) === path);
  } catch {
    // Another user's process, or it has just gone: not proven.
    return false;
  }
}

/** Whether a rollout's version takes locks; with an older one a missing lock proves nothing (0.104). */
export interface LockUser {
  readonly modern: boolean;
  readonly cliVersion?: string | undefined;
  readonly historyMode?: string | undefined;
}

/** The oldest version that was seen to take locks; 0.104 did not. */
const LOCKS_SINCE = 171;

export function takesLocks(user: LockUser): boolean {
  if (user.modern || user.historyMode === 'paginated') return true;
  return isAtLeast(user.cliVersion, LOCKS_SINCE);
}

/**
 * The lock as a claim about life alone. A held lock proves a live owner; a free or missing one that its owner is
 * gone, if that owner would have held it.
 *
 * @param lastActivityAt dates a lock that is gone, which itself has no date
 */
export function lockClaim(
  lock: ThreadLock,
  user: LockUser,
  now: number,
  lastActivityAt: number,
): Claim | undefined {
  const at = lock.kind === 'held' ? now : lastActivityAt;
  const base = { feed: 'codex.lock', confidence: 'inferred', at, says: { kind: 'silent' } } as const;
  switch (lock.kind) {
    case 'held': {
      const owner = lock.pid === undefined ? {} : { owner: String(lock.pid) };
      const who = lock.pid === undefined ? 'a process outside this container' : `process ${lock.pid}`;
      return { ...base, ...owner, life: 'alive', detail: `writer lock held by ${who}` };
    }
    case 'free':
    case 'absent': {
      const detail = lock.kind === 'free' ? 'writer lock file is there, nobody holds it' : 'no writer lock';
      if (!takesLocks(user)) return { ...base, detail: `${detail}; this version may not take one` };
      return { ...base, life: 'dead', detail };
    }
    case 'unknown':
      return undefined;
  }
}
