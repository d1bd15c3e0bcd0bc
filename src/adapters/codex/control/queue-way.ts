import type { Message, TurnSink } from '../../../runtime/control/driver.ts';
import type { Refusal, TurnEnd } from '../../../runtime/control.ts';
import { CONTROL } from '../../../runtime/limits.ts';
import type { SessionRef } from '../../../runtime/session/session.ts';
import type { ControlContext } from '../../adapter.ts';
import { asFields, listOf, objectOf, textOf } from '../fields.ts';
import { readHistory } from '../history.ts';
import type { Turn } from '../turn.ts';
import type { Owner } from './owner.ts';
import { codexRefused, leftBehind, notTaken, takenBack } from './refusals.ts';
import { recordedTurn } from './rest.ts';
import type { Rpc } from './rpc.ts';

/** Where a message is left with Codex itself, for a program that has the thread open without a server of ours to ask. */
export interface QueueOptions {
  readonly context: ControlContext;
  readonly session: SessionRef;
  readonly owner: Owner;
  readonly message: Message;
  readonly sink: Pick<TurnSink, 'accepted' | 'progress' | 'note'>;
  readonly accepted: () => void;
  /** How long the owner may take; default `CONTROL.queueTakenMs`. */
  readonly takenMs?: number;
  /** Aborted when the host is told to end. */
  readonly signal: AbortSignal;
}

export type Queued =
  | { readonly kind: 'done'; readonly end: TurnEnd }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/**
 * Leaves the message in Codex's own queue (the one of `codex queue`, whose text would be on a command line), and waits
 * until the program that has the thread takes it: it looks every 10 s (0.171). Accepted is when the message has left
 * the queue and a new turn is on record; done, when that turn's end is. What is not taken is taken back.
 */
export async function sendByQueue(rpc: Rpc, options: QueueOptions): Promise<Queued> {
  const { context, session, owner, message } = options;
  const threadId = session.sessionId;
  const before = recordedTurn(context, threadId);
  const added = await rpc.call(
    'thread/queue/add',
    {
      threadId,
      input: [{ type: 'text', text: message.text, text_elements: [] }],
      clientUserMessageId: message.id,
    },
    CONTROL.ackMs,
  );
  if (added.kind !== 'result') return refused(codexRefused(added.message, threadId));
  const id = textOf(objectOf(added.result, 'queuedSubmission'), 'id') ?? '';
  options.sink.note(
    'left in Codex’s own queue, which the program that has the session looks into every 10 s',
  );
  const taken = await waitFor(takenMs(options), options.signal, async () => {
    if (!(await hasLeft(rpc, threadId, id))) return undefined;
    const turn = recordedTurn(context, threadId);
    return isNew(turn, before) ? turn : undefined;
  });
  if (!taken) return refused(await takeBack(rpc, id, options));
  options.accepted();
  options.sink.progress('running');
  const ended = await waitFor(Number.POSITIVE_INFINITY, options.signal, async () => {
    const turn = recordedTurn(context, threadId);
    return turn.id === taken.id && turn.phase === 'open' ? undefined : turn;
  });
  return { kind: 'done', end: endOf(ended, taken, options, owner) };
}

const POLL_MS = 250;

async function waitFor<T>(
  limitMs: number,
  signal: AbortSignal,
  probe: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const end = performance.now() + limitMs;
  while (!signal.aborted && performance.now() < end) {
    const found = await probe();
    if (found !== undefined) return found;
    await Bun.sleep(POLL_MS);
  }
  return undefined;
}

async function hasLeft(rpc: Rpc, threadId: string, id: string): Promise<boolean> {
  const listed = await rpc.call('thread/queue/list', { threadId }, CONTROL.ackMs);
  if (listed.kind !== 'result') return false;
  return !listOf(listed.result, 'data').some((one) => textOf(asFields(one), 'id') === id);
}

/** Another turn than before: a turn's id is never used again. */
function isNew(turn: Turn, before: Turn): boolean {
  return turn.phase !== 'none' && turn.id !== undefined && turn.id !== before.id;
}

function takenMs({ takenMs: own }: QueueOptions): number {
  return own ?? CONTROL.queueTakenMs;
}

async function takeBack(rpc: Rpc, id: string, options: QueueOptions): Promise<Refusal> {
  const { session, owner } = options;
  const params = { threadId: session.sessionId, queuedSubmissionId: id };
  const deleted = await rpc.call('thread/queue/delete', params, CONTROL.ackMs);
  const gone = deleted.kind === 'result' && deleted.result['deleted'] !== false;
  if (gone && options.signal.aborted) return takenBack(owner);
  return gone ? notTaken(owner, takenMs(options) / 1_000, session.sessionId) : leftBehind(owner);
}

function endOf(
  ended: Turn | undefined,
  taken: Turn,
  { context, session }: QueueOptions,
  owner: Owner,
): TurnEnd {
  const notes = owner.kind === 'process' ? [`process ${owner.identity.pid} ran it`] : [];
  if (!ended)
    return { outcome: 'failed', error: 'its end was not seen: this process was ended first', notes };
  if (ended.id !== taken.id)
    return { outcome: 'failed', error: 'its end was not seen: another turn has begun since', notes };
  const error = ended.error === undefined ? {} : { error: ended.error };
  switch (ended.end) {
    case 'completed': {
      const { entries } = readHistory(context, session, { entries: 1, bytes: CONTROL.finalBytes });
      const last = entries.at(-1);
      return { outcome: 'completed', ...(last?.role === 'assistant' ? { text: last.text } : {}), notes };
    }
    case 'stopped':
      return { outcome: 'stopped', ...error, notes };
    default:
      return { outcome: 'failed', ...error, notes };
  }
}

function refused(refusal: Refusal): Queued {
  return { kind: 'refused', refusal };
}
