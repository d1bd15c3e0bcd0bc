import { recordOf } from '../../../runtime/control/record.ts';
import { abortAtHost, named } from '../../../runtime/control/through-host.ts';
import type { AbortRequest, AbortResult, Refusal } from '../../../runtime/control.ts';
import { CONTROL } from '../../../runtime/limits.ts';
import { checkProcess, identityFromProc } from '../../../runtime/process/identity.ts';
import { killTree } from '../../../runtime/process/kill-tree.ts';
import { listBriefs } from '../../../runtime/process/table.ts';
import type { ProcessHost, ProcessIdentity } from '../../../runtime/process/types.ts';
import type { ControlContext } from '../../adapter.ts';
import { type Fields, objectOf, textOf } from '../fields.ts';
import type { ServerAddress } from '../server-find.ts';
import { type Owner, ownerOf } from './owner.ts';
import {
  byKeyboard,
  codexRefused,
  doesNotStop,
  NO_TURN,
  NOBODY,
  notOurs,
  sharedServer,
  unreachable,
} from './refusals.ts';
import { linkServer } from './socket.ts';
import { joinThread } from './thread.ts';

/**
 * Stops a thread's turn, or with `kill` the processes that run it. A process of ours is asked first; then, by who has
 * the thread: a server stops the turn, `codex exec` ends on SIGINT, and a terminal has its keyboard alone. A
 * server that holds other threads is never ended (K1).
 */
export async function abortSession(
  context: ControlContext,
  host: ProcessHost,
  request: AbortRequest,
): Promise<AbortResult> {
  const { session, kill } = request;
  const before = ownerOf(context, session.sessionId, host);
  // A host that only follows a turn at somebody else's server, or queue, has nothing of its own to end.
  const isForeign = before.kind === 'server';
  const runsChild = await isOurs(before, recordOf(context.connectorHome, session)?.child, host);
  const hosted = await abortAtHost(context, session, kill && !isForeign);
  if (hosted && isLast(hosted, { kill, runsChild })) return hosted;
  const owner = ownerOf(context, session.sessionId, host);
  const isKnown = owner.kind === 'server' || owner.kind === 'process';
  if (hosted?.kind === 'stopped' && !isKnown) return hosted;
  if (owner.kind === 'nobody') return hosted ?? refused(NOBODY);
  return kill ? killOwner(owner, session.sessionId, host) : stopAt(owner, session.sessionId, context, host);
}

/** Whether a host's answer is the whole answer: it has stopped the turn, or has the thread itself and no turn. */
function isLast(
  hosted: AbortResult,
  { kill, runsChild }: { readonly kill: boolean; readonly runsChild: boolean },
): boolean {
  if (hosted.kind === 'stopped') return !kill;
  if (hosted.kind === 'survived') return true;
  return runsChild && !kill;
}

/** Whether the process that has the thread is our host's child, or a process of its group: a launcher starts another. */
async function isOurs(owner: Owner, child: ProcessIdentity | undefined, host: ProcessHost): Promise<boolean> {
  if (child === undefined || owner.kind === 'server' || owner.kind === 'elsewhere') return false;
  // Where locks can't be read, or it has just ended: what our own record says is all there is.
  if (owner.kind !== 'process') return true;
  const briefs = await listBriefs(host);
  return briefs?.find(({ pid }) => pid === owner.identity.pid)?.pgid === child.pid;
}

async function stopAt(
  owner: Owner,
  threadId: string,
  context: ControlContext,
  host: ProcessHost,
): Promise<AbortResult> {
  switch (owner.kind) {
    case 'server':
      return stopAtServer(owner.address, threadId);
    case 'unknown':
      return owner.address ? stopAtServer(owner.address, threadId) : refused(NOBODY);
    case 'process':
      if (owner.by !== 'exec' || context.platform === 'win32') return refused(byKeyboard(owner, threadId));
      return interrupt(owner.identity, host, threadId);
    case 'elsewhere':
      return refused(notOurs(owner));
    case 'nobody':
      return refused(NOBODY);
  }
}

async function stopAtServer(address: ServerAddress, threadId: string): Promise<AbortResult> {
  const ended = Promise.withResolvers<void>();
  const state = { turnId: '' };
  const linked = await linkServer(address.path, {
    notified(method, params: Fields) {
      if (method !== 'turn/completed' || textOf(params, 'threadId') !== threadId) return;
      if (textOf(objectOf(params, 'turn'), 'id') === state.turnId) ended.resolve();
    },
    // Whoever runs the turn answers what it asks for.
    asked: () => {},
    lost: () => {},
  });
  if (linked.kind !== 'linked') return refused(unreachable(linked.reason));
  try {
    const joined = await joinThread(linked.rpc, threadId);
    if (joined.kind !== 'joined') return refused(codexRefused(joined.message, threadId));
    const turnId = joined.active?.turnId;
    if (turnId === undefined) return refused(NO_TURN);
    state.turnId = turnId;
    const answer = await linked.rpc.call('turn/interrupt', { threadId, turnId }, CONTROL.interruptMs);
    if (answer.kind === 'refused' && answer.message.includes('no active turn')) return refused(NO_TURN);
    if (answer.kind === 'refused') return refused(codexRefused(answer.message, threadId));
    const timer = Promise.withResolvers<'late'>();
    const late = setTimeout(() => timer.resolve('late'), CONTROL.interruptMs);
    const how = await Promise.race([ended.promise, timer.promise]);
    clearTimeout(late);
    return how === 'late'
      ? refused(doesNotStop(threadId))
      : { kind: 'stopped', detail: 'the turn was stopped' };
  } finally {
    linked.close();
  }
}

/** `codex exec` ends its turn on record, and then itself (0.171). */
async function interrupt(
  identity: ProcessIdentity,
  host: ProcessHost,
  threadId: string,
): Promise<AbortResult> {
  if ((await checkProcess(identity, host)) === 'gone') return refused(NOBODY);
  host.kill(identity.pid, 'SIGINT');
  const end = performance.now() + CONTROL.interruptMs;
  while (performance.now() < end) {
    if ((await checkProcess(identity, host)) === 'gone') {
      return { kind: 'stopped', detail: `process ${identity.pid} stopped its turn and ended` };
    }
    await Bun.sleep(POLL_MS);
  }
  return refused(doesNotStop(threadId));
}

/** How often it is looked whether an interrupted process has ended. */
const POLL_MS = 50;

async function killOwner(owner: Owner, threadId: string, host: ProcessHost): Promise<AbortResult> {
  switch (owner.kind) {
    case 'server': {
      const others = owner.threads.filter((id) => id !== threadId.toLowerCase()).length;
      if (others > 0) return refused(sharedServer(owner, others, threadId));
      const { pid } = owner.address;
      return pid === undefined ? refused(notOurs(owner)) : killAll(identityOf(pid, host), host);
    }
    case 'process': {
      const others = owner.threads.filter((id) => id !== threadId.toLowerCase()).length;
      if (others > 0) return refused(sharedServer(owner, others, threadId));
      return killAll(owner.identity, host);
    }
    case 'elsewhere':
    case 'unknown':
      return refused(notOurs(owner));
    case 'nobody':
      return refused(NOBODY);
  }
}

function identityOf(pid: number, host: ProcessHost): ProcessIdentity {
  return identityFromProc(pid, host.procRoot) ?? { pid, startToken: null };
}

async function killAll(identity: ProcessIdentity, host: ProcessHost): Promise<AbortResult> {
  const report = await killTree(identity, {}, host);
  if (report.gone)
    return { kind: 'stopped', detail: `process ${identity.pid} and all that it started are gone` };
  return { kind: 'survived', survivors: await named(report.survivors) };
}

function refused(refusal: Refusal): AbortResult {
  return { kind: 'refused', refusal };
}
