import { systemFiles } from '../../runtime/files/file-system.ts';
import { systemHost } from '../../runtime/process/spawn.ts';
import type { ProcessHost } from '../../runtime/process/types.ts';
import type { Adapter, AdapterContext } from '../adapter.ts';
import { findEndpoints } from './endpoints.ts';
import { historyOfDatabase, historyOfServer } from './history.ts';
import { createInsideReader } from './inside.ts';
import { createLiveServers, type LiveServers } from './live-servers.ts';
import { homeOf, scanOpencode } from './scan.ts';
import { createServerApi, type ServerApi } from './server-api.ts';
import { LOCAL_INSTANCE, RUNTIME_ID } from './sightings.ts';
import { watchOpencode } from './watch.ts';

/**
 * All that we know of OpenCode's sessions (1.18.33 was recorded): its database, its servers with their event
 * streams, and the processes that have the database open. All but `control` only reads; it never starts, answers or
 * signals anything.
 *
 * @param host the system's processes; tests give their own
 */
export function createOpencode(host: ProcessHost = systemHost): Adapter {
  const live = createLiveServers();
  return {
    id: RUNTIME_ID,
    scan(context, options) {
      live.setNamed(options?.endpoint);
      return scanOpencode(context, hostFor(host, context), live, options);
    },
    inside: (context, sink, program) => createInsideReader(sink, program, context.now),
    watch: (context, sink) => watchOpencode(context, hostFor(host, context), live, sink),
    async history(context, session, bounds) {
      if (session.instanceId !== LOCAL_INSTANCE) {
        const api = apiOf(session.instanceId, context, live);
        return api
          ? historyOfServer(api, session.sessionId, bounds)
          : { entries: [], more: false, skipped: 0 };
      }
      return historyOfDatabase(homeOf(context).database, session.sessionId, bounds, {
        files: context.files ?? systemFiles,
        platform: context.platform,
      });
    },
    control: async () => (await import('./control/index.ts')).opencodeControl,
  };
}

/** Only servers that the user named, or that are connected, are asked: an id alone gets no password. */
function apiOf(url: string, context: AdapterContext, live: LiveServers): ServerApi | undefined {
  const connected = live.connected().find(({ server }) => server.endpoint.url === url);
  if (connected) return connected.server.api;
  const { endpoints } = findEndpoints(context, live.named(), { servers: [] });
  const endpoint = endpoints.find((candidate) => candidate.url === url);
  return endpoint && createServerApi(endpoint, context.now, context.signal);
}

function hostFor(host: ProcessHost, context: AdapterContext): ProcessHost {
  return host.platform === context.platform ? host : { ...host, platform: context.platform };
}

/** The OpenCode adapter. */
export const opencode: Adapter = createOpencode();
