import { ConnectorError } from '../runtime/errors.ts';
import type { Session, SessionRef } from '../runtime/session/session.ts';
import { oneLine } from '../runtime/session/text.ts';
import type { SessionsView } from './collect.ts';

/** Shortest id that a list shows; below that nothing is gained. */
const SHORTEST_SHOWN = 8;

function refsOf(sessions: readonly Session[]): SessionRef[] {
  return sessions.flatMap((session) => [session.ref, ...session.subAgents]);
}

/**
 * Finds the one session that a shortened id means: the id's beginning, or `runtime:` and the beginning.
 * Sub-agents are found too.
 *
 * @throws ConnectorError `notFound` or `ambiguous`, naming the candidates
 */
export function resolveSession(monitor: Pick<SessionsView, 'registry'>, text: string): Session {
  const wanted = text.trim();
  const refs = refsOf(monitor.registry.sessions());
  const exact = refs.filter(
    (ref) => ref.sessionId === wanted || `${ref.runtimeId}:${ref.instanceId}:${ref.sessionId}` === wanted,
  );
  const candidates = exact.length > 0 ? exact : refs.filter((ref) => wanted !== '' && matches(ref, wanted));
  const [only, second] = candidates;
  if (only && !second) {
    const session = monitor.registry.find(only);
    if (session) return session;
  }
  if (!only) {
    throw new ConnectorError(
      'notFound',
      `no session’s id begins with "${oneLine(wanted)}"`,
      'All ids: shadowob-connector session-list --all',
    );
  }
  const names = candidates.slice(0, 5).map((ref) => `${ref.runtimeId}:${ref.sessionId}`);
  throw new ConnectorError(
    'ambiguous',
    `"${oneLine(wanted)}" could be any of ${candidates.length} sessions: ${names.join(', ')}${candidates.length > 5 ? ', …' : ''}`,
    'Give more of the id, or put its runtime before it: runtime:id',
  );
}

function matches(ref: SessionRef, wanted: string): boolean {
  const lower = wanted.toLowerCase();
  const id = ref.sessionId.toLowerCase();
  return id.startsWith(lower) || `${ref.runtimeId}:${id}`.startsWith(lower);
}

/** The shortest beginning of each id that means only it among all sessions of the list. */
export function shortIds(sessions: readonly Session[]): (ref: SessionRef) => string {
  const sorted = [...new Set(refsOf(sessions).map((ref) => ref.sessionId))].sort();
  const lengths = new Map<string, number>();
  for (const [i, id] of sorted.entries()) {
    const shared = Math.max(common(id, sorted[i - 1]), common(id, sorted[i + 1]));
    lengths.set(id, Math.max(SHORTEST_SHOWN, shared + 1));
  }
  return (ref) => ref.sessionId.slice(0, lengths.get(ref.sessionId) ?? ref.sessionId.length);
}

function common(a: string, b: string | undefined): number {
  if (b === undefined) return 0;
  let at = 0;
  while (at < a.length && a[at] === b[at]) at += 1;
  return at;
}
