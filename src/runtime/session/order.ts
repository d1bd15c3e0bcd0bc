import { needsUser } from './project.ts';
import type { Session } from './session.ts';

/** Ranks by need: who waits for the user, who works, who is there, and all the rest. */
function need(session: Session): number {
  if (needsUser(session.shown)) return 0;
  if (session.shown.state.kind === 'working') return 1;
  if (session.shown.state.kind === 'starting') return 2;
  return session.shown.life === 'alive' ? 3 : 4;
}

/** Sessions that wait for the user first, the longest wait on top; then by the newest activity. */
export function byNeed(a: Session, b: Session): number {
  const need0 = need(a);
  const rank = need0 - need(b);
  if (rank !== 0) return rank;
  if (need0 === 0) return (a.shown.evidence?.at ?? 0) - (b.shown.evidence?.at ?? 0) || byKey(a, b);
  return byTime(a, b);
}

/** Sorts by need. Each session is ranked once, since a comparison is made ten times a session. */
export function sortByNeed(sessions: readonly Session[]): Session[] {
  const groups: Session[][] = [[], [], [], [], []];
  for (const session of sessions) groups[need(session)]?.push(session);
  return groups.flatMap((group, i) => group.sort(i === 0 ? byNeed : byTime));
}

function byTime(a: Session, b: Session): number {
  return (b.facts.lastActivityAt ?? 0) - (a.facts.lastActivityAt ?? 0) || byKey(a, b);
}

/** Part by part: a key is text, and making one for each comparison took 300 MB in a list of 107,000. */
function byKey(a: Session, b: Session): number {
  return (
    compareText(a.ref.runtimeId, b.ref.runtimeId) ||
    compareText(a.ref.instanceId, b.ref.instanceId) ||
    compareText(a.ref.sessionId, b.ref.sessionId)
  );
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
