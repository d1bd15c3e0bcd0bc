import type { Capability, RuntimeInstance, ScanProblem } from '../../runtime/feed.ts';
import type { ServerView } from './server-view.ts';
import { explainRefusal, type FoundServers, type Server } from './servers.ts';
import { LOCAL_INSTANCE, RUNTIME_ID } from './sightings.ts';
import type { StoreRead } from './store.ts';

/** What OpenCode's server lets one do (`runtimes` facts of 1.18.33: prompt_async, abort, permission and question replies). */
export const SERVER_CAPABILITIES: readonly Capability[] = [
  'sessionList',
  'sessionHistory',
  'liveWatch',
  'sendMessage',
  'sendAsync',
  'abort',
  'approval',
  'nativeStatus',
];
/** What the files alone let one do. */
const STORE_CAPABILITIES: readonly Capability[] = ['sessionList', 'sessionHistory'];

/** The row of this computer's store, with the server that runs it where there is one. */
export function localInstance(
  source: StoreRead['source'],
  servers: readonly Server[],
  found: Pick<FoundServers, 'refused' | 'invalid'>,
): RuntimeInstance {
  const [first] = servers;
  const base = { runtimeId: RUNTIME_ID, instanceId: LOCAL_INSTANCE, label: 'OpenCode' };
  if (first) {
    return {
      ...base,
      status: 'running',
      endpoint: first.endpoint.url,
      capabilities: SERVER_CAPABILITIES,
      metadata: { version: first.version, ...(servers.length > 1 ? { servers: servers.length } : {}) },
    };
  }
  const refused = found.refused.find((one) => explainRefusal(one) !== undefined);
  const error =
    found.invalid === undefined ? refused && explainRefusal(refused) : notAnAddress(found.invalid);
  return {
    ...base,
    status:
      source === 'none' ? (refused?.failure.kind === 'needs-password' ? 'error' : 'missing') : 'available',
    ...(refused ? { endpoint: refused.endpoint.url } : {}),
    ...(error ? { error } : {}),
    capabilities: source === 'none' ? [] : STORE_CAPABILITIES,
  };
}

/** The row of a server whose store isn't on this computer: only there the address is the instance. */
export function remoteInstance(server: Server): RuntimeInstance {
  return {
    runtimeId: RUNTIME_ID,
    instanceId: server.endpoint.url,
    label: 'OpenCode',
    status: 'running',
    endpoint: server.endpoint.url,
    capabilities: SERVER_CAPABILITIES,
    metadata: { version: server.version },
  };
}

function notAnAddress(given: string): string {
  return `not an address of a server: ${given}`;
}

/** Servers that can't be used, and answers that did not come. */
export function serverProblems(
  found: Pick<FoundServers, 'refused' | 'invalid'>,
  views: readonly ServerView[],
): readonly ScanProblem[] {
  const refused = found.refused.flatMap((one) => {
    const reason = explainRefusal(one);
    return reason ? [{ subject: one.endpoint.url, reason, skipped: 0 }] : [];
  });
  const invalid =
    found.invalid === undefined
      ? []
      : [{ subject: found.invalid, reason: 'it is not an address of a server', skipped: 0 }];
  return [...invalid, ...refused, ...views.flatMap(problemsOfView)];
}

export function problemsOfView(view: ServerView): readonly ScanProblem[] {
  const subject = view.endpoint.url;
  const [failure] = view.failures;
  return [
    ...(failure ? [{ subject, reason: failure.reason, skipped: view.failures.length }] : []),
    ...(view.skipped > 0
      ? [{ subject, reason: 'entries of its answers that do not fit', skipped: view.skipped }]
      : []),
  ];
}
