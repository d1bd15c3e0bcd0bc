import type { ServiceLog } from '../daemon/log.ts';
import type { SessionRef } from '../session/session.ts';
import type { ActingContext } from './context.ts';
import { lockSession } from './push-lock.ts';
import { openQueue, type QueuedMessage, queuedSessions } from './queue.ts';
import { type HostReached, reachHost } from './start-host.ts';

export interface DeliveryOptions {
  readonly context: ActingContext;
  /** Its owner lives and is in the middle of a turn: nothing is begun before it rests or leaves. */
  readonly isBusy: (session: SessionRef) => boolean;
  readonly log: ServiceLog;
  /** Starts or finds the session's host; replaced in tests. */
  readonly reach?: typeof reachHost;
}

/** What became of the waiting messages' sessions in one look. */
export interface DeliverySummary {
  /** Sessions that messages wait for. */
  readonly sessions: number;
  /** A host was started for these. */
  readonly started: number;
  /** A living process of ours delivers these already. */
  readonly tended: number;
  readonly busy: number;
  /** No host could be started; tried again at the next look. */
  readonly failed: number;
  /** Messages that waited too long, or that may have arrived already, and were deleted. */
  readonly deleted: number;
}

/**
 * Delivers messages whose sending command and whose host are gone: a host is started for each such session once
 * its owner leaves or rests, and takes up what lies there in order. Whether the owner is really out of the way is the
 * host's to look at; it holds the session's lock.
 */
export async function deliverLeft(options: DeliveryOptions): Promise<DeliverySummary> {
  const { context, log } = options;
  const count = { sessions: 0, started: 0, tended: 0, busy: 0, failed: 0, deleted: 0 };
  for (const session of queuedSessions(context.connectorHome)) {
    count.sessions += 1;
    const lock = await lockSession(context, session);
    if (lock.kind !== 'held') {
      count.tended += 1;
      continue;
    }
    const left = tidy(context, session);
    lock.release();
    count.deleted += left.deleted;
    if (!left.order) continue;
    if (options.isBusy(session)) {
      count.busy += 1;
      continue;
    }
    const reached = await (options.reach ?? reachHost)(context, left.order);
    const outcome = close(reached);
    if (outcome === 'started') count.started += 1;
    else count.failed += 1;
    log(outcome === 'started' ? 'info' : 'warn', 'message_delivery', {
      session: session.sessionId,
      messages: left.messages,
      outcome,
      ...(reached.kind === 'refused' ? { reason: reached.refusal.reason } : {}),
    });
  }
  return count;
}

interface Left {
  readonly messages: number;
  readonly deleted: number;
  readonly order: QueuedMessage['order'];
}

/** Deletes what must not be sent any more. Only for the holder of the session's lock. */
function tidy(context: ActingContext, session: SessionRef): Left {
  const queue = openQueue(context.connectorHome, session);
  const all = queue.list();
  const over = all.filter(({ attempted, expiresAt }) => attempted || expiresAt <= context.now());
  for (const { id } of over) queue.remove(id);
  const messages = all.filter((one) => !over.includes(one));
  return { messages: messages.length, deleted: over.length, order: messages.find((one) => one.order)?.order };
}

function close(reached: HostReached): 'started' | 'refused' {
  if (reached.kind === 'refused') return 'refused';
  reached.client.close();
  return 'started';
}
