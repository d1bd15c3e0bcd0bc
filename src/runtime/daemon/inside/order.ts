import { INSIDE } from '../../limits.ts';
import type { SessionRef } from '../../session/session.ts';
import { sessionKey } from '../../session/session.ts';
import type { InsideAnswer, OrderView } from './schema.ts';

/** What a program is asked to do with one of its sessions. */
export type Wish =
  | { readonly kind: 'prompt'; readonly text: Buffer; readonly model?: string }
  | { readonly kind: 'abort' }
  | { readonly kind: 'reply'; readonly requestId: string; readonly decision: string };

/** An order and what has become of it. Kept in memory only, and for a minute after its end. */
export interface Order {
  readonly id: string;
  readonly session: SessionRef;
  readonly wish: Wish;
  /** The attachment it was given to; another one never gets it. */
  readonly attachment: string;
  readonly pid: number;
  /** `taken`: its text was fetched, so that nobody can say any more that it was not delivered. */
  readonly state: OrderView['state'];
  readonly result?: Partial<Omit<InsideAnswer, 'attachment' | 'order' | 'state' | 'version'>>;
  /** Epoch milliseconds of the newest change. */
  readonly at: number;
}

/** The same order again is the same order; another wish under its id is a mistake of the sender. */
export function isSame(a: Order, b: { readonly session: SessionRef; readonly wish: Wish }): boolean {
  return sessionKey(a.session) === sessionKey(b.session) && Bun.deepEquals(a.wish, b.wish);
}

export function isOpen({ state }: Order): boolean {
  return state !== 'done' && state !== 'refused';
}

/** The order after an answer of the program; unchanged for one that comes too late or goes back. */
export function answered(order: Order, answer: InsideAnswer, now: number): Order {
  if (!isOpen(order) || (order.state === 'accepted' && answer.state === 'accepted')) return order;
  const { attachment: _attachment, order: _order, version: _version, state, ...said } = answer;
  const result = Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined));
  return { ...order, state, result: { ...order.result, ...result }, at: now };
}

/** Nobody took it in time: it is withdrawn, and what had been fetched may have been done. */
export function expired(order: Order, now: number): Order {
  const detail =
    order.state === 'taken'
      ? `process ${order.pid} took it and has not said what came of it`
      : `process ${order.pid} did not answer within ${INSIDE.acceptMs / 1_000} s`;
  const next =
    order.state === 'taken'
      ? 'Look at its terminal before you send it again.'
      : 'Look at its terminal, and send it again.';
  return { ...order, state: 'refused', result: { kind: 'timedOut', detail, next }, at: now };
}

/** The program has closed the connection: it ended, or the extension was loaded anew. */
export function lost(order: Order, now: number): Order {
  if (!isOpen(order)) return order;
  const { state, pid } = order;
  if (state === 'accepted') {
    const error = `process ${pid} is no longer connected, so the end of the turn was not seen`;
    return { ...order, state: 'done', result: { ...order.result, confirmed: false, error }, at: now };
  }
  const detail =
    state === 'taken'
      ? `process ${pid} took it and left before it said what came of it`
      : `process ${pid} left before it took it`;
  return {
    ...order,
    state: 'refused',
    result: { kind: 'refused', detail, next: 'Look at the session, then send it again.' },
    at: now,
  };
}

/** How the program sees an order. The text is fetched in parts, so that frames stay small. */
export function orderFrame({ id, session, wish }: Order): Record<string, unknown> {
  const base = { order: id, kind: wish.kind, sessionId: session.sessionId };
  switch (wish.kind) {
    case 'prompt':
      return {
        ...base,
        parts: Math.max(1, Math.ceil(wish.text.length / INSIDE.partBytes)),
        ...(wish.model === undefined ? {} : { model: wish.model }),
      };
    case 'abort':
      return base;
    case 'reply':
      return { ...base, requestId: wish.requestId, decision: wish.decision };
  }
}
