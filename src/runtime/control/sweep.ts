import { checkProcess } from '../process/identity.ts';
import { killTree } from '../process/kill-tree.ts';
import { systemHost } from '../process/spawn.ts';
import type { KillReport, ProcessHost } from '../process/types.ts';
import { type SessionRef, sessionKey } from '../session/session.ts';
import type { ActingContext } from './context.ts';
import { lockSession } from './push-lock.ts';
import { openQueue, queuedSessions } from './queue.ts';
import { type HostRecord, listRecords, recordOf, removeRecord } from './record.ts';

/** A process of a runtime that a host of ours had started before it was killed. */
export interface Orphan {
  readonly session: SessionRef;
  readonly pid: number;
  readonly ended: boolean;
}

/**
 * Ends what the hosts that were killed have left, and removes their records. A child whose host is gone can't be
 * answered, aborted or followed by anybody (K1), though Claude Code ends such a turn by itself within seconds. A
 * session whose lock is held has a living host, and is left alone.
 */
export async function sweepHosts(context: ActingContext): Promise<readonly Orphan[]> {
  const orphans: Orphan[] = [];
  for (const record of listRecords(context.connectorHome)) {
    const lock = await lockSession(context, record.session);
    if (lock.kind !== 'held') continue;
    const orphan = await endOrphan(context, record.session);
    if (orphan) orphans.push(orphan);
    lock.release();
  }
  return orphans;
}

/** Messages of a session that wait, and that nobody is there to deliver. */
export interface LeftMessages {
  readonly session: SessionRef;
  readonly count: number;
}

/**
 * The messages whose host was killed while they waited. They go out with the next message to their session; what is
 * older than a day is deleted here.
 */
export async function leftMessages(context: ActingContext): Promise<readonly LeftMessages[]> {
  const left: LeftMessages[] = [];
  for (const session of queuedSessions(context.connectorHome)) {
    const queue = openQueue(context.connectorHome, session);
    const count = await locked(context, session, () => {
      for (const { id, expiresAt } of queue.list()) if (expiresAt <= context.now()) queue.remove(id);
      return queue.list().length;
    });
    if (count) left.push({ session, count });
  }
  return left;
}

/** Deletes the messages that nobody is there to deliver; how many there were. */
export async function withdrawLeft(context: ActingContext, session: SessionRef): Promise<number> {
  const queue = openQueue(context.connectorHome, session);
  const messages = queue.list();
  if (messages.length === 0) return 0;
  const count = await locked(context, session, () => {
    for (const { id } of messages) queue.remove(id);
    return messages.length;
  });
  return count ?? 0;
}

/** Undefined when a living host of ours has the session: what lies there is its own. */
async function locked<T>(context: ActingContext, session: SessionRef, use: () => T): Promise<T | undefined> {
  const lock = await lockSession(context, session);
  if (lock.kind !== 'held') return undefined;
  try {
    return use();
  } finally {
    lock.release();
  }
}

/**
 * Ends the process that the former host of one session has left. Only for the holder of the session's lock.
 * A pid counts with its start alone: one that belongs to somebody else by now is never signalled.
 */
export async function endOrphan(
  context: Pick<ActingContext, 'connectorHome' | 'platform' | 'log'>,
  session: SessionRef,
): Promise<Orphan | undefined> {
  const record = recordOf(context.connectorHome, session);
  if (!record) return undefined;
  const host = { ...systemHost, platform: context.platform };
  const report = await endChild(record, host);
  if (!report || report.gone) removeRecord(context.connectorHome, session);
  if (!report || !record.child) return undefined;
  context.log.warn(`ended process ${record.child.pid}, left by a killed host of ${sessionKey(session)}`);
  return { session, pid: record.child.pid, ended: report.gone };
}

async function endChild(record: HostRecord, host: ProcessHost): Promise<KillReport | undefined> {
  const { child } = record;
  // Without a start time nobody can tell whose the pid is by now.
  if (!child || child.startToken === null) return undefined;
  if ((await checkProcess(child, host)) !== 'same') return undefined;
  return killTree(child, {}, host);
}
