import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { systemFiles } from '../../../runtime/files/file-system.ts';
import { identityFromProc } from '../../../runtime/process/identity.ts';
import type { ProcessHost, ProcessIdentity } from '../../../runtime/process/types.ts';
import type { AdapterContext } from '../../adapter.ts';
import { codexHome } from '../homes.ts';
import { readThreadLocks, type ThreadLocks } from '../locks.ts';
import {
  findDaemonUnlocked,
  findLockHoldingServers,
  isAppServer,
  type ServerAddress,
} from '../server-find.ts';
import { walkRollouts } from '../walk.ts';

/** What a process that holds a thread is there for. */
export type OwnerKind =
  /** `codex exec` and its like: it ends with its turn, and aborts whatever was queued (`exec-second-writer`). */
  | 'exec'
  /** A terminal program without the shared server (`--no-daemon`). */
  | 'terminal'
  /** An app-server that only its own client can reach: an editor's. */
  | 'client'
  /** A version without thread locks and without a queue (0.104). */
  | 'old';

/** Who has a thread now. */
export type Owner =
  | { readonly kind: 'nobody' }
  /** An app-server with a socket; `threads`: all that it holds, this one included. */
  | { readonly kind: 'server'; readonly address: ServerAddress; readonly threads: readonly string[] }
  | {
      readonly kind: 'process';
      readonly by: OwnerKind;
      readonly identity: ProcessIdentity;
      readonly threads: readonly string[];
    }
  /** Its process can't be seen from here: a container's, or another computer's. */
  | { readonly kind: 'elsewhere' }
  /** Locks can't be read on this system; `address`: a server that may have it. */
  | { readonly kind: 'unknown'; readonly address?: ServerAddress };

/** The locks of all threads, and how to ask about them. */
export function lookAtLocks(context: AdapterContext, host: ProcessHost): ThreadLocks {
  return readThreadLocks(codexHome(context), context.files ?? systemFiles, host);
}

/** Who has this thread, without touching its lock. */
export function ownerOf(context: AdapterContext, threadId: string, host: ProcessHost): Owner {
  const locks = lookAtLocks(context, host);
  if (!locks.readable) {
    const [address] = reachableServers(context, host, locks);
    return { kind: 'unknown', ...(address ? { address } : {}) };
  }
  const lock = locks.of(threadId.toLowerCase());
  if (lock.kind !== 'held') return withoutLock(context, threadId, host);
  if (lock.pid === undefined) return { kind: 'elsewhere' };
  const address = findLockHoldingServers(locks, host).find((one) => one.pid === lock.pid);
  if (address) return { kind: 'server', address, threads: heldBy(locks, lock.pid) };
  const identity = identityFromProc(lock.pid, host.procRoot) ?? { pid: lock.pid, startToken: null };
  return {
    kind: 'process',
    by: kindOf(lock.pid, host.procRoot),
    identity,
    threads: heldBy(locks, lock.pid),
  };
}

/**
 * Versions before 0.171 take no lock, and their terminal keeps the file open that it writes. Only programs that are
 * called Codex are looked at.
 */
function withoutLock(context: AdapterContext, threadId: string, host: ProcessHost): Owner {
  const { rollouts } = walkRollouts(codexHome(context), context.files ?? systemFiles, context.platform);
  const paths = new Set(
    rollouts.filter((file) => file.threadId === threadId.toLowerCase()).map(({ path }) => path),
  );
  const pid =
    paths.size === 0 ? undefined : codexPids(host.procRoot).find((one) => hasOpen(one, paths, host));
  if (pid === undefined) return { kind: 'nobody' };
  const identity = identityFromProc(pid, host.procRoot) ?? { pid, startToken: null };
  return { kind: 'process', by: 'old', identity, threads: [threadId.toLowerCase()] };
}

function codexPids(procRoot: string): readonly number[] {
  return namesIn(procRoot).flatMap((name) => {
    const pid = Number(name);
    if (!Number.isInteger(pid)) return [];
    const [program = '', script = ''] = readText(`${procRoot}/${pid}/cmdline`).split('\0');
    return [program, script].some((word) => /(?:^|[\\/])codex(?:\.js|\.exe)?$/.test(word)) ? [pid] : [];
  });
}

function hasOpen(pid: number, paths: ReadonlySet<string>, { procRoot }: ProcessHost): boolean {
  const folder = `${procRoot}/${pid}/fd`;
  return namesIn(folder).some((fd) => paths.has(linkOf(`${folder}/${fd}`)));
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    // Closed between the listing and this look.
    return '';
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    // It has just gone, or is another user's.
    return [];
  }
}

function heldBy(locks: ThreadLocks, pid: number): readonly string[] {
  return [...locks.held].filter(([, lock]) => lock.pid === pid).map(([id]) => id);
}

/** The servers that may be connected to: each holds a thread, so it has had its first client. */
export function reachableServers(
  context: AdapterContext,
  host: ProcessHost,
  locks: ThreadLocks = lookAtLocks(context, host),
): readonly ServerAddress[] {
  if (locks.readable) return findLockHoldingServers(locks, host);
  const home = codexHome(context);
  const { rollouts } = walkRollouts(home, context.files ?? systemFiles, context.platform);
  const newest = rollouts.reduce((latest, file) => Math.max(latest, file.stat.mtimeMs), 0);
  const address = findDaemonUnlocked(home, newest > 0 ? newest : undefined, host);
  return address ? [address] : [];
}

/** Commands that run one turn, or a tool, and leave. */
const HEADLESS: ReadonlySet<string> = new Set(['exec', 'e', 'review', 'mcp-server']);

function kindOf(pid: number, procRoot: string): OwnerKind {
  if (isAppServer(pid, procRoot)) return 'client';
  return wordsOf(pid, procRoot).some((word) => HEADLESS.has(word)) ? 'exec' : 'terminal';
}

function wordsOf(pid: number, procRoot: string): readonly string[] {
  return readText(`${procRoot}/${pid}/cmdline`).split('\0').slice(1);
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // It has just gone; the next look finds nobody.
    return '';
  }
}
