import { answerAtHost, pendingAtHosts } from '../../../runtime/control/through-host.ts';
import type { ApprovalAnswer, ApprovalResult, PendingRequest, Refusal } from '../../../runtime/control.ts';
import { CONTROL } from '../../../runtime/limits.ts';
import type { ProcessHost } from '../../../runtime/process/types.ts';
import type { SessionRef } from '../../../runtime/session/session.ts';
import type { ControlContext } from '../../adapter.ts';
import { listOf, objectOf, textOf } from '../fields.ts';
import type { ServerAddress } from '../server-find.ts';
import { INSTANCE_ID, RUNTIME_ID } from '../sightings.ts';
import { type AskBook, createAskBook } from './ask-book.ts';
import { reachableServers } from './owner.ts';
import { missingAnswer, stale, unreachable, wrongAnswer } from './refusals.ts';
import type { Rpc } from './rpc.ts';
import { linkServer, type ServerLink } from './socket.ts';
import { joinThread } from './thread.ts';

/** Everything that waits now, asked of the servers and of our hosts: new on every call (A6). */
export async function pendingRequests(
  context: ControlContext,
  host: ProcessHost,
  only?: SessionRef,
): Promise<readonly PendingRequest[]> {
  const [hosted, listed] = await Promise.all([
    pendingAtHosts(context, RUNTIME_ID, only),
    atServers(context, host, async ({ pending }) => pending),
  ]);
  // A host knows until when its request may be answered.
  const known = new Set(hosted.map(({ requestId }) => requestId));
  const others = listed.flat().filter(({ requestId }) => !known.has(requestId));
  return [...hosted, ...others.filter(({ session }) => !only || session.sessionId === only.sessionId)];
}

/** Answers one request by its id: through the host that follows it, or over a connection of our own. */
export async function answerRequest(
  context: ControlContext,
  host: ProcessHost,
  answer: ApprovalAnswer,
): Promise<ApprovalResult> {
  const hosted = await answerAtHost(context, answer);
  const unknownThere = hosted?.kind === 'refused' && hosted.refusal.kind === 'notFound';
  if (hosted && !unknownThere) return hosted;
  const results = await atServers(context, host, async (look) => answerAt(look, answer));
  return results.find((one) => one !== undefined) ?? { kind: 'refused', refusal: stale(answer.requestId) };
}

async function answerAt(
  { pending, book, rpc }: Look,
  answer: ApprovalAnswer,
): Promise<ApprovalResult | undefined> {
  const request = pending.find(({ requestId }) => requestId === answer.requestId);
  if (!request || request.session.sessionId !== answer.session.sessionId) return undefined;
  const refusal = refusalFor(request, answer);
  if (refusal) return { kind: 'refused', refusal };
  const state = await book.answer(rpc, request.requestId, answer);
  switch (state) {
    case 'applied':
      return { kind: 'applied', detail: 'Codex has the answer' };
    case 'sent':
      return { kind: 'sent', detail: 'Codex has not confirmed it yet' };
    case 'gone':
      return { kind: 'refused', refusal: unreachable('it closed the connection before it had the answer') };
  }
}

function refusalFor(request: PendingRequest, { decision, answers }: ApprovalAnswer): Refusal | undefined {
  if (!request.allows.includes(decision)) return wrongAnswer(request, decision);
  if (decision !== 'answer') return undefined;
  const missing = request.questions?.find(({ id }) => (answers?.[id] ?? []).length === 0);
  return missing && missingAnswer(request.requestId, missing);
}

/** What waits at one server, on a connection on which it can be answered. */
interface Look {
  readonly rpc: Rpc;
  readonly book: AskBook;
  readonly pending: readonly PendingRequest[];
}

/** Looks at every reachable server; one that doesn't answer has nothing. */
async function atServers<T>(
  context: ControlContext,
  host: ProcessHost,
  use: (look: Look) => Promise<T>,
): Promise<readonly T[]> {
  const results = await Promise.all(
    reachableServers(context, host).map((address) => atServer(context, address, use)),
  );
  return results.flatMap((result) => (result === undefined ? [] : [result.value]));
}

async function atServer<T>(
  context: ControlContext,
  address: ServerAddress,
  use: (look: Look) => Promise<T>,
): Promise<{ readonly value: T } | undefined> {
  const book = createAskBook();
  const asked = createArrivals();
  const linked = await linkServer(address.path, {
    notified: (method, params) => void book.learn(method, params),
    asked(request) {
      const ask = book.take(request);
      if (ask) asked.came(ask.pending.session.sessionId);
    },
    lost: () => {},
  });
  if (linked.kind !== 'linked') {
    context.log.debug(`app-server ${address.path}: ${linked.reason}`);
    return undefined;
  }
  try {
    const parents = await joinWaiting(linked, book, asked);
    const pending = book.list().map((ask): PendingRequest => {
      const own = ask.pending.session.sessionId;
      return {
        ...ask.pending,
        session: { ...ask.pending.session, instanceId: INSTANCE_ID, sessionId: parents.get(own) ?? own },
      };
    });
    return { value: await use({ rpc: linked.rpc, book, pending }) };
  } finally {
    linked.close();
  }
}

/** Threads of one server that are looked at; a person has far fewer open. */
const MAX_THREADS = 256;

/**
 * Joins the threads that wait, which makes the server send their requests again; the others are left alone. Gives the
 * parents of sub-agents' threads, whose requests are shown there (R-14).
 */
async function joinWaiting(
  { rpc }: ServerLink,
  book: AskBook,
  asked: Arrivals,
): Promise<ReadonlyMap<string, string>> {
  const loaded = await rpc.call('thread/loaded/list', {}, CONTROL.ackMs);
  const ids = loaded.kind === 'result' ? listOf(loaded.result, 'data') : [];
  const parents = new Map<string, string>();
  await Promise.all(
    ids.slice(0, MAX_THREADS).map(async (threadId) => {
      if (typeof threadId !== 'string') return;
      const read = await rpc.call('thread/read', { threadId }, CONTROL.ackMs);
      const thread = read.kind === 'result' ? objectOf(read.result, 'thread') : undefined;
      const flags = listOf(objectOf(thread, 'status'), 'activeFlags');
      if (!flags.includes('waitingOnApproval') && !flags.includes('waitingOnUserInput')) return;
      const parentId = textOf(thread, 'parentThreadId');
      if (parentId !== undefined) parents.set(threadId, parentId);
      const joined = await joinThread(rpc, threadId);
      // The request comes right after the answer.
      await asked.of(threadId, CONTROL.ackMs);
      if (joined.kind === 'joined') book.learnItems(joined.active?.items ?? []);
    }),
  );
  return parents;
}

interface Arrivals {
  came(threadId: string): void;
  /** Resolves once a request of the thread is here, or the time is over. */
  of(threadId: string, limitMs: number): Promise<void>;
}

function createArrivals(): Arrivals {
  const here = new Map<string, PromiseWithResolvers<void>>();
  const entry = (threadId: string): PromiseWithResolvers<void> => {
    const known = here.get(threadId) ?? Promise.withResolvers<void>();
    here.set(threadId, known);
    return known;
  };
  return {
    came: (threadId) => entry(threadId).resolve(),
    async of(threadId, limitMs) {
      const { promise: late, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, limitMs);
      await Promise.race([entry(threadId).promise, late]);
      clearTimeout(timer);
    },
  };
}
