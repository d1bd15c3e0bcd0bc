import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { numberOf, parseFields, textOf } from './fields.ts';
import type { CodexHome } from './homes.ts';
import type { CodexHost } from './host.ts';
import type { ThreadLocks } from './locks.ts';

/** An app-server that may be listened to. */
export interface ServerAddress {
  /** The socket's real path. */
  readonly path: string;
  readonly pid?: number;
}

/** Tells servers apart in claims and scopes. */
export function ownerName(address: ServerAddress): string {
  return address.pid === undefined ? address.path : String(address.pid);
}

/**
 * The app-servers that hold a thread's writer lock now, with the sockets they listen on. Only these may be
 * connected to: a server that has a thread has had its first client, so that we never become the `originator` of
 * what it records. Reads `/proc` only; elsewhere see {@link findDaemonUnlocked}.
 */
export function findLockHoldingServers(locks: ThreadLocks, host: CodexHost): readonly ServerAddress[] {
  const pids = new Set([...locks.held.values()].flatMap((lock) => lock.pid ?? []));
  return [...pids].flatMap((pid) =>
    isAppServer(pid, host.procRoot)
      ? listeningSockets(pid, host.procRoot).map((path) => ({ path, pid }))
      : [],
  );
}

/**
 * The managed daemon, on a system whose locks can't be read: its pid must live, and a rollout must have moved since
 * it started. `undefined` otherwise.
 */
export function findDaemonUnlocked(
  home: CodexHome,
  newestRolloutMs: number | undefined,
  host: CodexHost,
): ServerAddress | undefined {
  if (host.platform === 'win32') return undefined;
  const path = realSocket(home.socket);
  const daemon = parseFields(readText(home.daemonPid) ?? '');
  const pid = numberOf(daemon, 'pid');
  const startedAt = Date.parse(textOf(daemon, 'processStartTime') ?? '');
  if (!path || pid === undefined || Number.isNaN(startedAt) || newestRolloutMs === undefined)
    return undefined;
  if (newestRolloutMs <= startedAt || !answersSignal(pid, host)) return undefined;
  return { path, pid };
}

/** `undefined` for a dangling link: the daemon's folder in the temporary ones is gone. */
export function realSocket(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    // No daemon was ever started, or it is gone with its folder.
    return undefined;
  }
}

/** Whether this process runs threads for clients, rather than for its own terminal or for one `exec`. */
export function isAppServer(pid: number, procRoot: string): boolean {
  const words = (readText(`${procRoot}/${pid}/cmdline`) ?? '').split('\0');
  return words.slice(1).includes('app-server');
}

const LISTENING = 0x10000;

/** Absolute paths of the unix sockets that a process listens on, in its own network namespace. */
function listeningSockets(pid: number, procRoot: string): readonly string[] {
  const inodes = socketInodes(pid, procRoot);
  return (readText(`${procRoot}/${pid}/net/unix`) ?? '').split('\n').flatMap((line) => {
    const [, , , flags, , , inode, path] = line.trim().split(/\s+/);
    if (flags === undefined || inode === undefined || !path?.startsWith('/')) return [];
    return (Number.parseInt(flags, 16) & LISTENING) !== 0 && inodes.has(inode) ? [path] : [];
  });
}

function socketInodes(pid: number, procRoot: string): ReadonlySet<string> {
  try {
    const folder = `${procRoot}/${pid}/fd`;
    const links = readdirSync(folder).map((fd) => readlinkQuietly(`${folder}/${fd}`));
    return new Set(links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []));
  } catch {
    // Another user's server: it can't be connected to either.
    return new Set();
  }
}

function readlinkQuietly(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    // Closed between the listing and this look.
    return '';
  }
}

function answersSignal(pid: number, host: CodexHost): boolean {
  try {
    host.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // Gone, or not ours to read.
    return undefined;
  }
}
