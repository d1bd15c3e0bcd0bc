import type {
  AbortResult,
  ApprovalAnswer,
  ApprovalResult,
  ControlEvent,
  PendingRequest,
  Refusal,
} from '../control.ts';
import { reasonOf } from '../errors.ts';
import { CONTROL, TEXT } from '../limits.ts';
import { systemHost } from '../process/spawn.ts';
import { listProcesses } from '../process/table.ts';
import { type SessionRef, sessionKey } from '../session/session.ts';
import { connectHost, type HostClient, HostError } from './client.ts';
import type { ActingContext } from './context.ts';
import type { HostSpec, Message } from './driver.ts';
import { placesOf } from './places.ts';
import { listRecords } from './record.ts';
import { reachHost } from './start-host.ts';
import { readAbort, readApproval, readNews, readOpened, readPending, readSubmitted } from './wire.ts';

/** How a message is followed. */
export interface FollowOptions {
  /** Milliseconds from `queued`, and anew from `accepted`; absent: until one of the two. */
  readonly followMs?: number;
  /** Aborted when the caller leaves: the turn goes on. */
  readonly signal: AbortSignal;
}

/**
 * Hands a message to the session's host, starting one where none runs, and yields its events. Ends after `done`,
 * `left` or `refused`; without `followMs` also after `accepted`, and after `queued`, since the host delivers it then
 * without anybody waiting.
 */
export async function* sendThroughHost(
  context: ActingContext,
  spec: HostSpec,
  message: Message,
  options: FollowOptions,
): AsyncGenerator<ControlEvent, void> {
  const deadline = performance.now() + CONTROL.hostStartMs;
  for (;;) {
    const reached = await reachHost(context, spec);
    if (reached.kind === 'refused') {
      yield { type: 'refused', at: context.now(), ...reached.refusal };
      return;
    }
    const { client } = reached;
    try {
      const taken = readSubmitted(await submit(client, message));
      if (taken.kind === 'refused') {
        yield { type: 'refused', at: context.now(), ...taken.refusal };
        return;
      }
      if (taken.kind === 'ticket') {
        yield* follow(context, client, taken.ticket, options);
        return;
      }
    } catch (thrown) {
      if (!(thrown instanceof HostError)) throw thrown;
      // The same id again is the same message, so nothing is sent twice.
      if (performance.now() >= deadline) {
        yield { type: 'refused', at: context.now(), ...lostBefore(thrown) };
        return;
      }
    } finally {
      client.close();
    }
  }
}

async function submit(client: HostClient, message: Message): Promise<unknown> {
  const { text, ...rest } = message;
  const bytes = Buffer.from(text, 'utf8');
  const count = Math.max(1, Math.ceil(bytes.length / TEXT.partBytes));
  for (let index = 0; index < count; index += 1) {
    const part = bytes.subarray(index * TEXT.partBytes, (index + 1) * TEXT.partBytes);
    await client.call('part', { id: message.id, index, bytes: part.toString('base64') });
  }
  return client.call('submit', { ...rest, parts: count });
}

async function* follow(
  context: ActingContext,
  client: HostClient,
  ticket: string,
  { followMs, signal }: FollowOptions,
): AsyncGenerator<ControlEvent, void> {
  const left = Promise.withResolvers<'caller left'>();
  const onAbort = (): void => left.resolve('caller left');
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  const seen = { until: Number.POSITIVE_INFINITY, from: 0, accepted: false, asking: false };
  try {
    for (;;) {
      const holdMs = Math.max(0, Math.min(CONTROL.holdMs, seen.until - performance.now()));
      seen.asking = true;
      const news = await Promise.race([
        ask(client, { ticket, from: seen.from, holdMs: Math.floor(holdMs) }),
        left.promise,
      ]);
      if (news === 'caller left') {
        yield { type: 'left', at: context.now(), reason: 'caller left' };
        return;
      }
      seen.asking = false;
      if (news === 'host lost') {
        yield seen.accepted
          ? { type: 'left', at: context.now(), reason: 'host lost' }
          : { type: 'refused', at: context.now(), ...lostBefore(undefined) };
        return;
      }
      seen.from = news.next;
      for (const event of news.events) {
        yield event;
        const rests = event.type === 'accepted' || event.type === 'queued';
        if (!rests) continue;
        seen.accepted ||= event.type === 'accepted';
        if (followMs === undefined) return;
        seen.until = performance.now() + followMs;
      }
      if (news.ended) return;
      if (performance.now() >= seen.until) {
        yield { type: 'left', at: context.now(), reason: 'followed long enough' };
        return;
      }
    }
  } finally {
    signal.removeEventListener('abort', onAbort);
    // A question that is still open is answered by the closed connection alone.
    if (!seen.asking) await say(client, 'leave', { ticket });
  }
}

async function ask(
  client: HostClient,
  payload: { ticket: string; from: number; holdMs: number },
): Promise<ReturnType<typeof readNews> | 'host lost'> {
  try {
    return readNews(await client.call('follow', payload, payload.holdMs + CONTROL.hostStartMs));
  } catch (thrown) {
    if (thrown instanceof HostError) return 'host lost';
    throw thrown;
  }
}

/** Tells a host something that changes nothing for us. */
async function say(client: HostClient, op: string, payload: unknown): Promise<void> {
  try {
    await client.call(op, payload);
  } catch {
    // The host has ended, or is answering our last question still: it then sees the connection close.
  }
}

function lostBefore(thrown: unknown): Refusal {
  const why = thrown === undefined ? '' : `: ${reasonOf(thrown)}`;
  return {
    reason: `the process for this session ended before the runtime took the message${why}`,
    kind: 'refused',
    next: 'Look at the session, then send it again.',
  };
}

/** Starts the session's process without a message. A refusal says why it can't. */
export async function openThroughHost(
  context: ActingContext,
  spec: HostSpec,
  message: Pick<Message, 'approvals' | 'model'>,
): Promise<Refusal | undefined> {
  const reached = await reachHost(context, spec);
  if (reached.kind === 'refused') return reached.refusal;
  try {
    const result = readOpened(await reached.client.call('open', message, CONTROL.acceptMs));
    return result.kind === 'refused' ? result.refusal : undefined;
  } catch (thrown) {
    if (thrown instanceof HostError) return lostBefore(thrown);
    throw thrown;
  } finally {
    reached.client.close();
  }
}

/** Everything that waits for an answer at the hosts of one runtime; a host that does not answer has nothing. */
export async function pendingAtHosts(
  context: ActingContext,
  runtimeId: string,
  only?: SessionRef,
): Promise<readonly PendingRequest[]> {
  const wanted = listRecords(context.connectorHome)
    .map((record) => record.session)
    .filter((ref) => ref.runtimeId === runtimeId && (!only || sessionKey(ref) === sessionKey(only)));
  const lists = await Promise.all(
    wanted.map((ref) => withHost(context, ref, async (client) => readPending(await client.call('pending')))),
  );
  return lists.flatMap((list) => list ?? []);
}

/** Gives an answer to the session's host; undefined when we run no host for it. */
export async function answerAtHost(
  context: ActingContext,
  answer: ApprovalAnswer,
): Promise<ApprovalResult | undefined> {
  return withHost(context, answer.session, async (client) =>
    readApproval(await client.call('answer', answer, CONTROL.ackMs + CONTROL.hostStartMs)),
  );
}

/** Stops the turn, or the process, of a session that a host of ours runs; undefined when we run none. */
export async function abortAtHost(
  context: ActingContext,
  session: SessionRef,
  kill: boolean,
): Promise<AbortResult | undefined> {
  const result = await withHost(context, session, async (client) =>
    readAbort(await client.call('abort', { kill }, CONTROL.interruptMs + CONTROL.hostStartMs)),
  );
  return result?.kind === 'survived' ? { ...result, survivors: await named(result.survivors) } : result;
}

/** Puts the command line beside each pid, so that the user knows what still runs (K1). */
export async function named(
  survivors: readonly { readonly pid: number }[],
): Promise<readonly { readonly pid: number; readonly command: string }[]> {
  const pids = new Set(survivors.map(({ pid }) => pid));
  const { rows } = await listProcesses({ brief: (brief) => pids.has(brief.pid) }, systemHost);
  return survivors.map(({ pid }) => {
    const row = rows.find((one) => one.pid === pid);
    return { pid, command: row ? row.argv.join(' ') || row.comm : '' };
  });
}

async function withHost<T>(
  context: ActingContext,
  session: SessionRef,
  use: (client: HostClient) => Promise<T>,
): Promise<T | undefined> {
  const client = await connectHost(placesOf(context.connectorHome, session).socket, context.platform);
  if (!client) return undefined;
  try {
    return await use(client);
  } catch (thrown) {
    // It ended while we asked: then nothing of it waits, or runs, any more.
    if (thrown instanceof HostError) return undefined;
    throw thrown;
  } finally {
    client.close();
  }
}
