import type { Session } from '../../session/session.ts';
import type { SessionsEngine } from '../sessions/engine.ts';
import type { RepoLookup } from '../sessions/repo.ts';
import { withRepo } from '../sessions/service.ts';
import type { Agent, Observe } from '../vocabulary.ts';

/** Agents of the socket by runtime, as far as adapters watch them. */
const AGENT_OF: Readonly<Record<string, Agent>> = { 'claude-code': 'claude', codex: 'codex' };

export interface Discovery {
  /** Compares the registry's sessions with those before and tells the engine. */
  look(sessions: readonly Session[]): void;
}

/**
 * Tells the `sessions` engine of owners that adapters have proven and no hook has told of: a session with a living one
 * is announced, however old its file is, and ends when that proof turns into one of death. Files that appear
 * and grow are told by the discovery feeds (`watchers.ts`); neither ever says a state. `onNew` is called
 * when the registry has come to know a session that the engine does not: a file was noticed, and need not wait for the
 * next poll.
 */
export function createDiscovery(
  engine: SessionsEngine,
  repos: RepoLookup,
  onNew: () => void = () => {},
): Discovery {
  const state = { lived: new Set<string>(), known: new Set<string>() };

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

  return {
    look(sessions) {
      const lives = new Set<string>();
      const known = new Set<string>();
      for (const session of sessions) {
        const agent = AGENT_OF[session.ref.runtimeId];
        if (!agent) continue;
        const id = session.ref.sessionId;
        known.add(id);
        const { life } = session.own;
        if (life === 'alive') lives.add(id);
        if (life === 'alive' && !engine.entry(id)) announce(session, agent);
        if (life === 'dead' && state.lived.has(id))
          engine.end({ session_id: id, reason: 'owner gone' }, 'local');
      }
      for (const id of state.lived) {
        // A record that left with its owner (S-627); one that hooks alone know stays as it is.
        if (!known.has(id)) engine.end({ session_id: id, reason: 'record gone' }, 'local');
      }
      const isNew = [...known].some((id) => !state.known.has(id) && !engine.entry(id));
      state.lived = lives;
      state.known = known;
      if (isNew) onNew();
    },
  };
}
