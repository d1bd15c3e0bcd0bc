import { SESSIONS } from '../../limits.ts';
import type { Session } from '../../session/session.ts';
import type { SessionsEngine } from '../sessions/engine.ts';
import type { RepoLookup } from '../sessions/repo.ts';
import { withRepo } from '../sessions/service.ts';
import type { Agent, Observe } from '../vocabulary.ts';

/** Agents of the socket by runtime, as far as adapters watch them. */
const AGENT_OF: Readonly<Record<string, Agent>> = { 'claude-code': 'claude', codex: 'codex' };

interface Followed {
  readonly lastActivityAt: number;
  /** A living owner was proven; only such a session can be ended from here (S-625). */
  readonly lived: boolean;
  readonly agent: Agent;
}

export interface Discovery {
  /** Compares the registry's sessions with those before and tells the engine. */
  look(sessions: readonly Session[], now: number): DiscoverySummary;
}

export interface DiscoverySummary {
  readonly announced: number;
  readonly grown: number;
  readonly ended: number;
  /** Sessions that were not told of: quiet for too long, or their owner is gone. */
  readonly quiet: number;
}

/**
 * Tells the `sessions` engine of sessions that adapters have found and no hook has (feeds 2 and 6b). The adapters have
 * read the rows, so that growth is only ever a sign of life here: never a state.
 */
export function createDiscovery(engine: SessionsEngine, repos: RepoLookup): Discovery {
  const state = { followed: new Map<string, Followed>() };

  const announce = (session: Session, agent: Agent): void => {
    const { ref, facts } = session;
    const sighting: Observe = {
      session_id: ref.sessionId,
      event: 'transcript_discovered',
      agent,
      cwd: facts.workDir,
      transcript_path: facts.file,
      model: facts.model,
    };
    // The lookup comes before the engine is asked (S-013). It never rejects.
    withRepo(sighting, repos).then((whole) => engine.observe(whole, 'local'));
  };

  const end = (id: string, why: string): void => {
    engine.end({ session_id: id, reason: why }, 'local');
  };

  return {
    look(sessions, now) {
      const count = { announced: 0, grown: 0, ended: 0, quiet: 0 };
      const next = new Map<string, Followed>();
      for (const session of sessions) {
        const agent = AGENT_OF[session.ref.runtimeId];
        if (!agent) continue;
        const id = session.ref.sessionId;
        const before = state.followed.get(id);
        const { life } = session.own;
        const lastActivityAt = session.facts.lastActivityAt ?? 0;
        const recent = now - lastActivityAt <= SESSIONS.ttlMs;
        if (life === 'dead' && before?.lived) {
          end(id, 'owner gone');
          count.ended += 1;
        }
        next.set(id, { lastActivityAt, agent, lived: life === 'alive' });
        if (life === 'dead' || (life !== 'alive' && !recent)) {
          count.quiet += 1;
        } else if (!engine.entry(id)) {
          announce(session, agent);
          count.announced += 1;
        } else if (before && lastActivityAt > before.lastActivityAt) {
          announce(session, agent);
          count.grown += 1;
        }
      }
      for (const [id, before] of state.followed) {
        if (next.has(id) || !engine.entry(id)) continue;
        // A record that left the tree (S-627); one that hooks alone know stays as it is.
        if (before.lived) end(id, 'record gone');
      }
      state.followed = next;
      return count;
    },
  };
}
