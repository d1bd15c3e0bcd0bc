import type { Registry } from '../../session/registry.ts';
import { type Reported, reportedClaim } from '../../session/reported.ts';
import type { SessionRef, Sighting } from '../../session/session.ts';
import { claimsOf, factsOf, RUNTIME_OF } from '../sessions/claims.ts';
import type { SessionsEngine } from '../sessions/engine.ts';
import type { Entry } from '../sessions/entry.ts';
import { LOCAL_STORE } from './view.ts';

/**
 * Carries what the socket's reports add up to into the one registry, as claims: each session under a scope of
 * its own, so that a session the engine forgets takes only its own claims back. Returns the function that ends it.
 */
export function feedReports(
  engine: SessionsEngine,
  registry: Registry,
  now: () => number,
  changed: () => void,
): () => void {
  return engine.onReport((id) => {
    const entry = engine.entry(id);
    const scope = `hooks:${id}`;
    // Whole, so that a wait which is no longer told of is withdrawn.
    registry.replace(scope, entry ? sightingsOf(entry) : [], now());
    changed();
  });
}

/** Nothing for a session that only a watcher has announced: it came from the registry. */
function sightingsOf(entry: Readonly<Entry>): readonly Sighting[] {
  const claims = claimsOf(entry);
  if (claims.length === 0) return [];
  // A pid that a hook brings is no proof, and what was merely seen is no activity: adapters say both better.
  const { pids: _pids, lastActivityAt: _seen, ...facts } = factsOf(entry);
  const own: Sighting = {
    session: refOf(entry, entry.id),
    facts: { ...facts, lastActivityAt: Math.max(...claims.map((claim) => claim.at)) },
    claims,
  };
  return [own, ...waitsOf(entry)];
}

/**
 * Codex's sub-agents are threads of their own: their waits stand at them, and are shown at the parent by folding
 * . Claude Code's have no session that could hold a claim.
 */
function waitsOf(entry: Readonly<Entry>): readonly Sighting[] {
  const { hooks } = entry;
  if (entry.agent !== 'codex' || !hooks) return [];
  return [...hooks.agentWaits].map(([agentId, phase]): Sighting => {
    const reported: Reported = { ...hooks, phase, turn: {}, agentWaits: new Map(), backgroundWork: 0 };
    return {
      session: refOf(entry, agentId),
      facts: { lineage: { parentId: entry.id } },
      claims: [reportedClaim('codex.hooks', reported)],
    };
  });
}

function refOf({ agent }: Readonly<Entry>, sessionId: string): SessionRef {
  return { runtimeId: RUNTIME_OF[agent], instanceId: LOCAL_STORE, sessionId };
}
