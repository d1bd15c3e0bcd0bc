import type { ProcessHost } from '../../runtime/process/types.ts';
import type { AdapterContext } from '../adapter.ts';
import { ownServersOf } from './control/own-servers.ts';
import { DEFAULT_URL, type Endpoint, findEndpoints, isLoopback } from './endpoints.ts';
import type { HttpFailure } from './http.ts';
import { isListening, type Listener, listListeners } from './listeners.ts';
import { nobodyListens } from './listening.ts';
import type { OpencodeProcess } from './owners.ts';
import { createServerApi, type ServerApi } from './server-api.ts';

/** A server that says it is healthy. */
export interface Server {
  readonly endpoint: Endpoint;
  readonly version: string;
  readonly api: ServerApi;
}

/** A server that can't be used, and why. */
export interface Refused {
  readonly endpoint: Endpoint;
  readonly failure: HttpFailure;
}

export interface FoundServers {
  /** Servers of this computer's own store. */
  readonly local: readonly Server[];
  /** Servers of a store that can't be read here. */
  readonly remote: readonly Server[];
  readonly refused: readonly Refused[];
  /** What the user gave as an address and what is none. */
  readonly invalid?: string;
}

export interface FindOptions {
  readonly host: ProcessHost;
  /** Running OpenCode processes, as far as they are known. */
  readonly running: readonly OpencodeProcess[];
  /** Ids of the sessions in this computer's store; `undefined` when there is no store. */
  readonly stored: ReadonlySet<string> | undefined;
  /** `--opencode-url`. */
  readonly endpoint?: string;
  /** Addresses that need no second look. */
  readonly skip?: ReadonlySet<string>;
}

/** Asks every candidate at once whether it is a healthy server, and whose sessions it has. */
export async function findHealthy(context: AdapterContext, options: FindOptions): Promise<FoundServers> {
  const uid = process.getuid?.();
  const listeners = options.host.platform === 'linux' ? await listenersOf(options.host) : undefined;
  const { endpoints, invalid } = findEndpoints(context, options.endpoint, {
    servers: options.running,
    listeners,
    own: ownServersOf(context),
    ...(uid === undefined ? {} : { uid }),
  });
  const wanted = endpoints.filter((endpoint) => !options.skip?.has(endpoint.url));
  const candidates = await withoutSilentDefault(wanted, listeners !== undefined);
  const answers = await Promise.all(candidates.map((endpoint) => probe(endpoint, context, options)));
  return {
    local: answers.flatMap((answer) => (answer.kind === 'local' ? [answer.server] : [])),
    remote: answers.flatMap((answer) => (answer.kind === 'remote' ? [answer.server] : [])),
    refused: answers.flatMap((answer) => (answer.kind === 'refused' ? [answer.refused] : [])),
    ...(invalid === undefined ? {} : { invalid }),
  };
}

/**
 * The listening sockets of this computer, as far as the default address is concerned. The kernel takes 2 ms and more
 * for each of its two lists, which most scans are spared: a port that refuses has no listener to know of.
 */
async function listenersOf(host: ProcessHost): Promise<readonly Listener[] | undefined> {
  return (await nobodyListens(new URL(DEFAULT_URL))) ? [] : listListeners(host.procRoot);
}

/** The default address is only a guess: without a list of sockets it is tried before anything is sent. */
async function withoutSilentDefault(
  endpoints: readonly Endpoint[],
  socketsAreKnown: boolean,
): Promise<readonly Endpoint[]> {
  const guessed = endpoints.find(({ url, named }) => url === DEFAULT_URL && !named);
  if (!guessed || socketsAreKnown || (await isListening(Number(new URL(DEFAULT_URL).port)))) return endpoints;
  return endpoints.filter((endpoint) => endpoint !== guessed);
}

type Probe =
  | { readonly kind: 'local' | 'remote'; readonly server: Server }
  | { readonly kind: 'refused'; readonly refused: Refused };

async function probe(endpoint: Endpoint, context: AdapterContext, options: FindOptions): Promise<Probe> {
  const api = createServerApi(endpoint, context.now, context.signal);
  const health = await api.health();
  if (health.kind !== 'ok') return { kind: 'refused', refused: { endpoint, failure: health } };
  const local = await hasOurStore(api, options);
  return { kind: local ? 'local' : 'remote', server: { endpoint, version: health.value, api } };
}

/** Whether a server's sessions are those of our store: its process holds the file, or it lists one of them. */
async function hasOurStore(api: ServerApi, { running, stored }: FindOptions): Promise<boolean> {
  if (!stored) return false;
  const holds = running.find(({ pid }) => pid === api.endpoint.pid)?.holdsStore;
  if (holds !== undefined) return holds;
  const listed = await api.sessions(20);
  const here = isLoopback(api.endpoint.url);
  if (listed.kind !== 'ok') return here;
  return listed.value.some(({ id }) => stored.has(id)) || (here && listed.value.length === 0);
}

/** One line on a server that can't be used, with what to do about it; `undefined` when that is nothing to tell. */
export function explainRefusal({ endpoint, failure }: Refused): string | undefined {
  const { url, named, credentials } = endpoint;
  if (failure.kind === 'needs-password') {
    return credentials
      ? `the server at ${url} refuses the password of OPENCODE_SERVER_PASSWORD (user ${credentials.user}; OPENCODE_SERVER_USERNAME changes it)`
      : `the server at ${url} asks for a password: set OPENCODE_SERVER_PASSWORD to the one it was started with`;
  }
  // Nothing, or another program, on an address that nobody named is the usual case.
  const usual =
    failure.kind === 'unreachable' || failure.kind === 'not-opencode' || failure.kind === 'status';
  if (usual && !named && endpoint.pid === undefined) return undefined;
  return `the server at ${url} can't be used: ${failure.reason}`;
}
