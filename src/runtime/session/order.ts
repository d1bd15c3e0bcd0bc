import { needsUser } from './project.ts';
import type { Session } from './session.ts';
import { sessionKey } from './session.ts';

/** Ranks by need: who waits for the user, who works, who is there, and all the rest. */
function need(session: Session): number {
  if (needsUser(session.shown)) return 0;
  if (session.shown.state.kind === 'working') return 1;
  if (session.shown.state.kind === 'starting') return 2;
  return session.shown.life === 'alive' ? 3 : 4;
}

/** Sessions that wait for the user first, the longest wait on top; then by the newest activity. */
export function byNeed(a: Session, b: Session): number {
  const rank = need(a) - need(b);
  if (rank !== 0) return rank;
  const newestFirst = (b.facts.lastActivityAt ?? 0) - (a.facts.lastActivityAt ?? 0);
  const ordered = need(a) === 0 ? (a.shown.evidence?.at ?? 0) - (b.shown.evidence?.at ?? 0) : newestFirst;
  return ordered !== 0 ? ordered : compareText(sessionKey(a.ref), sessionKey(b.ref));
}

/** Newest and live first, for a list that must be cut. */
export function byLifeAndTime(a: Session, b: Session): number {
  const live = Number(b.shown.life === 'alive') - Number(a.shown.life === 'alive');
  return live !== 0
    ? live
    : (b.facts.lastActivityAt ?? 0) - (a.facts.lastActivityAt ?? 0) ||
        compareText(sessionKey(a.ref), sessionKey(b.ref));
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
