import type { Registry } from '../../session/registry.ts';
import type { Sighting } from '../../session/session.ts';
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
    const sighting = entry && sightingOf(entry);
    if (sighting) registry.apply(scope, [sighting], now());
    else registry.withdraw(scope, now());
    changed();
  });
}

/** Nothing for a session that only a watcher has announced: it came from the registry. */
function sightingOf(entry: Readonly<Entry>): Sighting | undefined {
  const claims = claimsOf(entry);
  if (claims.length === 0) return undefined;
  // A pid that a hook brings is no proof, and what was merely seen is no activity: adapters say both better.
  const { pids: _pids, lastActivityAt: _seen, ...facts } = factsOf(entry);
  return {
    session: { runtimeId: RUNTIME_OF[entry.agent], instanceId: LOCAL_STORE, sessionId: entry.id },
    facts: { ...facts, lastActivityAt: Math.max(...claims.map((claim) => claim.at)) },
    claims,
  };
}
