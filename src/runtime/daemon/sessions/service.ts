import { readPayload } from '../protocol.ts';
import type { Service } from '../service.ts';
import type { Observe } from '../vocabulary.ts';
import type { SessionsEngine } from './engine.ts';
import type { RepoLookup } from './repo.ts';
import { fitRows, type ListBody, summaryOf } from './rows.ts';

/**
 * The `sessions` service on the socket (S-312 … S-325): the engine behind the wire. Only the repository lookup does
 * I/O, and it comes before the engine is asked, never between reading and writing an entry (S-1xx).
 */
export function createSessionsService(engine: SessionsEngine, repos: RepoLookup): Service {
  const body = (): ListBody => fitRows(engine.list().sessions);
  return {
    name: 'sessions',
    ops: {
      async observe(payload) {
        engine.observe(await withRepo(readPayload.observe(payload), repos), 'socket');
        return { ok: true };
      },
      end: (payload) => ({ ended: engine.end(readPayload.end(payload), 'socket').known }),
      window(payload) {
        engine.window(readPayload.window(payload));
        return { ok: true };
      },
      'window-unregister': (payload) => ({
        removed: engine.windowUnregister(readPayload.windowUnregister(payload).key),
      }),
      list: body,
    },
    subscriptions: {
      subscribe: () => ({ version: engine.version, onChange: engine.onChange, sample: body }),
    },
    status() {
      const { sessions } = body();
      const heard = [...engine.heard()].map(([agent, at]) => [agent, new Date(at).toISOString()]);
      return {
        healthy: true,
        summary: summaryOf(sessions),
        detail: { sessions, heard: Object.fromEntries(heard) },
      };
    },
    creditOutage: (ms) => engine.creditOutage(ms),
  };
}

/** Names the repository of a sighting that brings a folder and no name (S-013). */
export async function withRepo(observe: Observe, repos: RepoLookup): Promise<Observe> {
  if (observe.cwd === undefined || observe.repo !== undefined) return observe;
  const repo = await repos.nameOf(observe.cwd);
  return repo === undefined ? observe : { ...observe, repo };
}
