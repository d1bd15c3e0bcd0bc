import { socketState } from '../../session/project.ts';
import type { Session } from '../../session/session.ts';
import { sessionKey } from '../../session/session.ts';
import type { OwnerProof } from '../sessions/apply.ts';
import { RUNTIME_OF } from '../sessions/claims.ts';
import type { Entry } from '../sessions/entry.ts';
import type { WireState } from '../vocabulary.ts';

/** The instance that Claude's and Codex's sessions on this computer lie in. */
export const LOCAL_STORE = 'transcripts';

/** What the one registry last showed, by session: what the socket's services read between two of its changes. */
export interface RegistryView {
  /** Takes the registry's sessions in; true when a row of any of them looks different, came or left. */
  take(sessions: readonly Session[], now: number): boolean;
  sessions(): readonly Session[];
  /** Moves with every such difference. */
  revision(): number;
  /** When it last moved, epoch milliseconds. */
  changedAt(): number;
  /** The session of an agent of the `sessions` socket. */
  ofEntry(entry: Pick<Entry, 'agent' | 'id'>): Session | undefined;
}

/** An empty view. */
export function createRegistryView(): RegistryView {
  const state = { byKey: new Map<string, Session>(), all: [] as readonly Session[], revision: 0, at: 0 };
  return {
    take(sessions, now) {
      const next = new Map(sessions.map((session) => [sessionKey(session.ref).toLowerCase(), session]));
      const moved =
        next.size !== state.byKey.size ||
        [...next].some(([key, session]) => {
          const before = state.byKey.get(key);
          return !before || !looksSame(before, session);
        });
      state.byKey = next;
      state.all = sessions;
      if (moved || state.at === 0) state.at = now;
      if (moved) state.revision += 1;
      return moved;
    },
    sessions: () => state.all,
    revision: () => state.revision,
    changedAt: () => state.at,
    ofEntry: ({ agent, id }) => state.byKey.get(`${RUNTIME_OF[agent]}:${LOCAL_STORE}:${id}`.toLowerCase()),
  };
}

/** Whether both make the same row; the time of an evidence alone is no difference (S-121). */
function looksSame(a: Session, b: Session): boolean {
  return (
    Bun.deepEquals(a.shown.state, b.shown.state) &&
    a.shown.life === b.shown.life &&
    a.shown.evidence?.source === b.shown.evidence?.source &&
    a.shown.error === b.shown.error &&
    a.shown.backgroundWork === b.shown.backgroundWork &&
    a.shownFrom === b.shownFrom &&
    a.subAgents.length === b.subAgents.length &&
    (a.facts === b.facts || Bun.deepEquals(a.facts, b.facts))
  );
}

/** Owners that adapters have proven: a live file with its process, a held lock, a server that runs it. */
export function proofOf(session: Session | undefined): OwnerProof | undefined {
  if (session?.own.life !== 'alive') return undefined;
  return { alive: true, pids: new Set(session.facts.pids ?? []) };
}

/**
 * The word of the `sessions` socket for a session that reports and other feeds speak of. S-103 stands where nothing
 * else has decided: a stream, a hook, a reminder, an end, a start that only another report may leave (S-104).
 */
export function fusedWord(
  own: WireState,
  entry: Pick<Entry, 'stream' | 'hooks'>,
  session: Session | undefined,
): WireState {
  if (!session || entry.stream) return own;
  const { shown } = session;
  if (shown.state.kind === 'unknown' || shown.evidence?.source.endsWith('.hooks')) return own;
  const word = socketState(shown.state);
  if (own === 'ended') return shown.life === 'alive' && word !== 'idle' ? word : own;
  if (word === 'ended') return shown.life === 'dead' ? word : own;
  if (own === 'starting' && word === 'idle') return own;
  // The reminder of a minute's rest is a wait on this socket alone.
  return entry.hooks?.reminder && word === 'idle' ? own : word;
}
