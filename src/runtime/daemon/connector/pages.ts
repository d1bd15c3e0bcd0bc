import { WIRE } from '../../limits.ts';
import type { Fused, Session } from '../../session/session.ts';

/**
 * A session on its way to a command of the same build: without its chain of evidence, and without `shown` where that
 * is the session's own.
 */
export interface WireSession extends Omit<Session, 'own' | 'shown'> {
  readonly own: Omit<Fused, 'chain'>;
  readonly shown?: Omit<Fused, 'chain'>;
}

/** Room that a page leaves for what stands around its sessions. */
const ENVELOPE_BYTES = 64 * 1024;
/** Pages of one look are kept for its client this long, milliseconds, and so many looks at one time. */
const KEEP_MS = 10_000;
const LOOKS = 8;

export interface Page {
  readonly sessions: readonly WireSession[];
  /** Asks for the next page of the same moment. */
  readonly next?: string;
}

export interface Pages {
  /** The first page of all sessions as they are now. */
  first(sessions: readonly Session[], now: number): Page;
  /** A later page of the same moment; undefined when it is no longer kept. */
  after(cursor: string, now: number): Page | undefined;
}

/** Cuts sessions into pages below the line limit (S-304); all pages of one look are of one moment. */
export function createPages(roomBytes: number = WIRE.lineBytes - ENVELOPE_BYTES): Pages {
  const kept = new Map<string, { readonly rest: readonly WireSession[]; readonly at: number }>();
  const state = { count: 0 };

  const cut = (all: readonly WireSession[], now: number): Page => {
    const fit = fitting(all, roomBytes);
    if (fit === all.length) return { sessions: all };
    state.count += 1;
    const next = String(state.count);
    for (const [cursor, { at }] of kept) if (now - at > KEEP_MS || kept.size >= LOOKS) kept.delete(cursor);
    kept.set(next, { rest: all.slice(fit), at: now });
    return { sessions: all.slice(0, fit), next };
  };

  return {
    first: (sessions, now) => cut(sessions.map(toWire), now),
    after(cursor, now) {
      const page = kept.get(cursor);
      kept.delete(cursor);
      return page && cut(page.rest, now);
    },
  };
}

function fitting(sessions: readonly WireSession[], roomBytes: number): number {
  const state = { left: roomBytes };
  const tooMuch = sessions.findIndex((session) => {
    state.left -= Buffer.byteLength(JSON.stringify(session)) + 1;
    return state.left < 0;
  });
  return tooMuch < 0 ? sessions.length : Math.max(1, tooMuch);
}

function toWire(session: Session): WireSession {
  const { own, shown, ...rest } = session;
  const { chain: _chain, ...ownBare } = own;
  if (shown === own) return { ...rest, own: ownBare };
  const { chain: _shownChain, ...shownBare } = shown;
  return { ...rest, own: ownBare, shown: shownBare };
}

/** The session again; its chain is empty. */
export function fromWire(wire: WireSession): Session {
  const { own, shown, ...rest } = wire;
  const whole: Fused = { ...own, chain: [] };
  return { ...rest, own: whole, shown: shown ? { ...shown, chain: [] } : whole };
}

/** Whether a value is a session as this build sends it; what its same build has made is not taken apart further. */
export function isWireSession(value: unknown): value is WireSession {
  if (typeof value !== 'object' || value === null) return false;
  const { ref, facts, own, subAgents } = value as Partial<Record<keyof WireSession, unknown>>;
  const isRef = typeof ref === 'object' && ref !== null && 'sessionId' in ref && 'runtimeId' in ref;
  const isOwn = typeof own === 'object' && own !== null && 'state' in own && 'life' in own;
  return isRef && isOwn && typeof facts === 'object' && facts !== null && Array.isArray(subAgents);
}
