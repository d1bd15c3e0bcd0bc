import type { ControlEvent } from '../control.ts';
import { CONTROL } from '../limits.ts';

/** What happened to one message since event `from`. */
export interface TicketNews {
  readonly events: readonly ControlEvent[];
  /** Where to ask from next. */
  readonly next: number;
  /** Nothing comes after these. */
  readonly ended: boolean;
  /** Events that were asked for and are no longer kept. */
  readonly dropped: number;
}

/** The events of one message, kept until those who follow have them. */
export interface Ticket {
  readonly id: string;
  emit(event: ControlEvent): void;
  /** News at once, or as soon as there is some, or nothing after `holdMs`. */
  follow(from: number, holdMs: number, signal: AbortSignal): Promise<TicketNews>;
  /** The follower has gone and comes back for nothing. */
  leave(): void;
  readonly ended: boolean;
  /** Resolves once nobody is owed the end of it. */
  readonly delivered: Promise<void>;
}

const ENDS: ReadonlySet<ControlEvent['type']> = new Set(['done', 'refused', 'left']);

/**
 * A ticket without any event yet.
 *
 * @param owed somebody is about to ask for its events, so its end waits for them
 */
export function createTicket(id: string, owed: boolean): Ticket {
  const kept: ControlEvent[] = [];
  const { promise: delivered, resolve: markDelivered } = Promise.withResolvers<void>();
  const state = { first: 0, ended: false, owed, bells: new Set<() => void>() };

  const news = (from: number): TicketNews => {
    const begin = Math.max(from, state.first);
    const events = fitting(kept.slice(begin - state.first));
    const next = begin + events.length;
    const ended = state.ended && next >= state.first + kept.length;
    if (ended) markDelivered();
    return { events, next, ended, dropped: begin - from };
  };

  const leave = (): void => {
    state.owed = false;
    if (state.ended) markDelivered();
  };

  return {
    id,
    emit(event) {
      if (state.ended) return;
      state.ended = ENDS.has(event.type);
      kept.push(event);
      if (kept.length > CONTROL.events) {
        kept.shift();
        state.first += 1;
      }
      for (const ring of state.bells) ring();
      if (state.ended && !state.owed) markDelivered();
    },
    async follow(from, holdMs, signal) {
      state.owed = true;
      const now = news(from);
      if (now.events.length > 0 || now.ended) return now;
      const { promise, resolve } = Promise.withResolvers<void>();
      const ring = (): void => resolve();
      const timer = setTimeout(ring, holdMs);
      signal.addEventListener('abort', ring, { once: true });
      state.bells.add(ring);
      await promise;
      state.bells.delete(ring);
      signal.removeEventListener('abort', ring);
      clearTimeout(timer);
      if (signal.aborted) leave();
      return news(from);
    },
    leave,
    get ended() {
      return state.ended;
    },
    delivered,
  };
}

/** As many events as one reply holds; at least one, whose texts are bounded where it was made. */
function fitting(events: readonly ControlEvent[]): readonly ControlEvent[] {
  const budget = { left: CONTROL.replyBytes };
  const count = events.findIndex((event) => {
    budget.left -= Buffer.byteLength(JSON.stringify(event));
    return budget.left < 0;
  });
  return count < 0 ? events : events.slice(0, Math.max(1, count));
}
