import { INSIDE, TEXT } from '../../limits.ts';
import type { SessionRef } from '../../session/session.ts';
import type { Scheduler } from '../clock.ts';
import { type ServiceLog, silent } from '../log.ts';
import { RequestError } from '../protocol.ts';
import { answered, expired, isOpen, isSame, lost, type Order, type Wish } from './order.ts';
import type {
  Ability,
  Attach,
  AttachedView,
  InsideAnswer,
  InsideRequest,
  OrderView,
  Report,
} from './schema.ts';

/** A program with our extension in it, for as long as its connection stands. */
export interface Attachment extends Attach {
  readonly id: string;
  readonly sessions: readonly string[];
  readonly requests: readonly InsideRequest[];
  /** Order of the newest report, to choose between two programs that hold one session. */
  readonly reported: number;
}

/** What the desk tells its owner. */
export interface DeskEvents {
  /** It has come, says other sessions than before, or has events of its runtime to read. */
  changed(attachment: Attachment, events: readonly unknown[]): void;
  gone(attachment: Attachment): void;
}

export interface DeskOptions {
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly scheduler: Scheduler;
  readonly log?: ServiceLog;
  readonly events: DeskEvents;
  readonly newId?: () => string;
}

/**
 * Where orders for programs that our extension runs in are laid down, taken and answered. It answers nothing by itself:
 * a permission is replied to only by an order that names its id and whose request the program still lists (R-35, A2).
 * Everything is in memory.
 */
export interface Desk {
  /** False: as many programs are attached as may be. */
  hasRoom(): boolean;
  attach(hello: Attach): { readonly id: string; leave(): void };
  report(report: Report): void;
  /** Orders that an attachment has not finished yet, oldest first. */
  ordersOf(attachment: string): readonly Order[];
  /** One part of an order's text. Throws for an order that is withdrawn or somebody else's. */
  take(attachment: string, order: string, part: number): Buffer;
  answer(answer: InsideAnswer): void;
  /** Lays down a part of a text for an order that is to come. */
  part(order: string, index: number, bytes: Buffer): void;
  /** Lays an order down; the same id again changes nothing. Throws where no program could take it. */
  order(id: string, session: SessionRef, wish: WishOfCommand): Order;
  find(order: string): OrderView | undefined;
  attached(filter: {
    readonly runtimeId?: string | undefined;
    readonly sessionId?: string | undefined;
  }): readonly AttachedView[];
  /** Moves with everything that a frame could show. */
  version(): number;
  onChange(listener: () => void): () => void;
  /** Ends all timers. */
  stop(): void;
}

export type WishOfCommand =
  | { readonly kind: 'prompt'; readonly parts: number; readonly model?: string }
  | Exclude<Wish, { readonly kind: 'prompt' }>;

const ABILITY: Readonly<Record<Wish['kind'], Ability>> = {
  prompt: 'prompt',
  abort: 'abort',
  reply: 'approve',
};

/** An empty desk. */
export function createDesk(options: DeskOptions): Desk {
  const { now, scheduler, events } = options;
  const log = options.log ?? silent;
  const newId = options.newId ?? (() => crypto.randomUUID());
  const attachments = new Map<string, Attachment>();
  const orders = new Map<string, Order>();
  const texts = createTexts(now);
  const listeners = new Set<() => void>();
  const timers = new Map<string, () => void>();
  const state = { version: 0, reports: 0 };

  const moved = (): void => {
    state.version += 1;
    for (const listener of listeners) listener();
  };

  const put = (order: Order): void => {
    const before = orders.get(order.id);
    if (before === order) return;
    orders.set(order.id, order);
    // An accepted one is a turn, and that lasts as long as it lasts.
    if (order.state === 'accepted' || !isOpen(order)) {
      timers.get(order.id)?.();
      timers.delete(order.id);
    }
    log('debug', 'inside_order', { kind: order.wish.kind, state: order.state, pid: order.pid });
    moved();
  };

  const forget = (): void => {
    for (const [id, order] of orders) {
      if (isOpen(order)) continue;
      if (now() - order.at > INSIDE.keepMs || orders.size >= INSIDE.orders) orders.delete(id);
    }
  };

  const holderOf = (session: SessionRef): Attachment | undefined =>
    [...attachments.values()]
      .filter(
        ({ runtimeId, instanceId, sessions }) =>
          runtimeId === session.runtimeId &&
          instanceId === session.instanceId &&
          sessions.includes(session.sessionId),
      )
      .sort((a, b) => b.reported - a.reported)[0];

  const attachmentOf = (id: string): Attachment => {
    const found = attachments.get(id);
    if (found) return found;
    throw new RequestError('unknown attachment: attach again');
  };

  const orderOf = (attachment: string, id: string): Order => {
    const order = orders.get(id);
    if (order && order.attachment === attachmentOf(attachment).id) return order;
    throw new RequestError('unknown order: it was withdrawn, or is somebody else’s');
  };

  return {
    hasRoom: () => attachments.size < INSIDE.attachments,
    attach(hello) {
      const id = newId();
      const attachment = { ...hello, id, sessions: [], requests: [], reported: 0 };
      attachments.set(id, attachment);
      log('info', 'inside_attached', { runtime: hello.runtimeId, pid: hello.pid });
      return {
        id,
        leave() {
          const last = attachments.get(id);
          if (!last) return;
          attachments.delete(id);
          for (const order of orders.values()) if (order.attachment === id) put(lost(order, now()));
          log('info', 'inside_left', { runtime: hello.runtimeId, pid: hello.pid });
          events.gone(last);
          moved();
        },
      };
    },
    report(report) {
      const before = attachmentOf(report.attachment);
      state.reports += 1;
      const next = {
        ...before,
        sessions: report.sessions ?? before.sessions,
        requests: report.requests ?? before.requests,
        reported: report.sessions ? state.reports : before.reported,
      };
      attachments.set(before.id, next);
      events.changed(next, report.events ?? []);
      if (report.sessions || report.requests) moved();
    },
    ordersOf: (attachment) =>
      [...orders.values()].filter((order) => order.attachment === attachment && isOpen(order)),
    take(attachment, id, part) {
      const order = orderOf(attachment, id);
      if (!isOpen(order) || order.wish.kind !== 'prompt') throw new RequestError('unknown order: it is over');
      const { text } = order.wish;
      const from = part * INSIDE.partBytes;
      if (from > 0 && from >= text.length) throw new RequestError('no such part');
      put(order.state === 'waiting' ? { ...order, state: 'taken', at: now() } : order);
      return text.subarray(from, from + INSIDE.partBytes);
    },
    answer(answer) {
      put(answered(orderOf(answer.attachment, answer.order), answer, now()));
    },
    part: texts.put,
    order(id, session, wanted) {
      forget();
      const known = orders.get(id);
      const wish = known && wanted.kind === 'prompt' ? known.wish : wishOf(id, wanted, texts);
      if (known) {
        if (isSame(known, { session, wish })) return known;
        throw new RequestError('another order has this id');
      }
      const holder = holderOf(session);
      if (!holder) throw new RequestError(`no extension of ours holds session ${session.sessionId}`);
      if (!holder.can.includes(ABILITY[wish.kind])) {
        throw new RequestError(`unsupported: the program can’t be asked to ${ABILITY[wish.kind]}`);
      }
      if (wish.kind === 'reply') checkRequest(holder, session, wish.requestId, wish.decision);
      const open = [...orders.values()].filter((order) => order.attachment === holder.id && isOpen(order));
      if (open.length >= INSIDE.openOrders) throw new RequestError('too many orders wait for this program');
      const order: Order = {
        id,
        session,
        wish,
        attachment: holder.id,
        pid: holder.pid,
        state: 'waiting',
        at: now(),
      };
      timers.set(
        id,
        scheduler.after(INSIDE.acceptMs, () => {
          const late = orders.get(id);
          if (late && (late.state === 'waiting' || late.state === 'taken')) put(expired(late, now()));
        }),
      );
      put(order);
      return order;
    },
    find(id) {
      const order = orders.get(id);
      if (!order) return undefined;
      const requests = attachments.get(order.attachment)?.requests ?? [];
      return {
        ...order.result,
        order: id,
        state: order.state,
        pid: order.pid,
        requests: requests.filter(({ sessionId }) => sessionId === order.session.sessionId),
      } as OrderView;
    },
    attached: ({ runtimeId, sessionId }) =>
      [...attachments.values()]
        .filter((one) => runtimeId === undefined || one.runtimeId === runtimeId)
        .filter((one) => sessionId === undefined || one.sessions.includes(sessionId))
        .sort((a, b) => b.reported - a.reported)
        .map(({ id: _id, reported: _reported, version: _version, ...view }) => ({
          ...view,
          sessions: [...view.sessions],
          requests: [...view.requests],
        })),
    version: () => state.version,
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    stop() {
      for (const cancel of timers.values()) cancel();
      timers.clear();
    },
  };
}

function wishOf(id: string, wanted: WishOfCommand, texts: Texts): Wish {
  if (wanted.kind !== 'prompt') return wanted;
  const { model } = wanted;
  return { kind: 'prompt', text: texts.whole(id, wanted.parts), ...(model === undefined ? {} : { model }) };
}

/** An answer goes to a request that the program lists at this moment, and to no other (A2). */
function checkRequest(holder: Attachment, session: SessionRef, requestId: string, decision: string): void {
  const request = holder.requests.find((one) => one.requestId === requestId);
  if (!request || request.sessionId !== session.sessionId) {
    throw new RequestError(`no request ${requestId} waits for an answer`);
  }
  if (!request.allows.some((one) => one === decision)) {
    throw new RequestError(`this request takes ${request.allows.join(', ')}, not ${decision}`);
  }
}

/** Texts that come in parts, before the order that they are for. */
interface Texts {
  put(order: string, index: number, bytes: Buffer): void;
  /** The whole text, which is then forgotten. Throws where a part is missing or the text is too long. */
  whole(order: string, parts: number): Buffer;
}

function createTexts(now: () => number): Texts {
  const held = new Map<string, { readonly parts: Map<number, Buffer>; readonly at: number }>();
  return {
    put(order, index, bytes) {
      for (const [id, { at }] of held) if (now() - at > INSIDE.keepMs) held.delete(id);
      const known = held.get(order) ?? { parts: new Map<number, Buffer>(), at: now() };
      if (!held.has(order) && held.size >= INSIDE.texts)
        throw new RequestError('too many texts wait for their order');
      known.parts.set(index, bytes);
      held.set(order, known);
    },
    whole(order, parts) {
      const known = held.get(order);
      const pieces = Array.from({ length: parts }, (_, index) => known?.parts.get(index));
      held.delete(order);
      if (pieces.some((piece) => piece === undefined))
        throw new RequestError('a part of the text is missing');
      const text = Buffer.concat(pieces.flatMap((piece) => piece ?? []));
      if (text.length <= TEXT.messageBytes) return text;
      throw new RequestError(`the text is over ${TEXT.messageBytes} bytes`);
    },
  };
}
