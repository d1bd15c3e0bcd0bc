import type { AdapterContext } from '../adapter.ts';
import type { Credentials } from './http.ts';
import { type Listener, loopbackUrl } from './listeners.ts';
import type { OpencodeProcess } from './owners.ts';

/** A server that may answer. */
export interface Endpoint {
  /** Scheme, host and port, without a slash at the end. */
  readonly url: string;
  /** Whether the user gave it, so that its silence is worth a word. */
  readonly named: boolean;
  readonly credentials?: Credentials;
  /** The process that listens there, where it is known. */
  readonly pid?: number;
}

export interface Endpoints {
  readonly endpoints: readonly Endpoint[];
  /** What the user gave and what is no address. */
  readonly invalid?: string;
}

/** Where `opencode serve` listens unless told otherwise. */
export const DEFAULT_URL = 'http://127.0.0.1:4096';

interface Found {
  readonly servers: readonly OpencodeProcess[];
  /** All listening sockets of this computer; absent where they can't be listed. */
  readonly listeners?: readonly Listener[] | undefined;
  /** The user that we run as; absent where the system has none. */
  readonly uid?: number;
  /** Servers that we have started ourselves, each with the password that we gave it. */
  readonly own?: readonly { readonly url: string; readonly credentials: Credentials }[];
}

/**
 * Servers to ask: the one the user named (option, then environment), or the default; and every loopback address
 * that an OpenCode of this user listens on. The password goes to a named server and to this user's own ones:
 * where the system tells that another user listens on the default port, that server is left alone.
 */
export function findEndpoints(
  context: Pick<AdapterContext, 'env'>,
  option: string | undefined,
  found: Found,
): Endpoints {
  const { env } = context;
  const given = option || env['SHADOWOB_CONNECTOR_OPENCODE_URL'] || env['OPENCODE_SERVER_URL'] || undefined;
  const named = given === undefined ? undefined : readUrl(given);
  const password = env['OPENCODE_SERVER_PASSWORD'];
  const credentials = password
    ? { user: env['OPENCODE_SERVER_USERNAME'] || 'opencode', password }
    : undefined;
  const running = found.servers.flatMap((server) => server.urls.map((url) => ({ url, pid: server.pid })));
  const byUrl = new Map<string, Endpoint>();
  const add = (url: string, own: boolean, given?: Credentials): void => {
    if (byUrl.has(url)) return;
    const pid = running.find((candidate) => sameListener(candidate.url, url))?.pid;
    const login = given ?? credentials;
    byUrl.set(url, {
      url,
      named: own,
      ...(login ? { credentials: login } : {}),
      ...(pid === undefined ? {} : { pid }),
    });
  };
  if (named) add(named.url, true, named.credentials);
  for (const own of found.own ?? []) add(own.url, false, own.credentials);
  if (!given && isWorthAsking(DEFAULT_URL, found)) add(DEFAULT_URL, false);
  for (const { url } of running)
    if (![...byUrl.keys()].some((known) => sameListener(known, url))) add(url, false);
  return {
    endpoints: [...byUrl.values()],
    ...(given !== undefined && !named ? { invalid: given.slice(0, 200) } : {}),
  };
}

/** Reads an address that the user gave; a user and password in it are for this server. */
function readUrl(text: string): { readonly url: string; readonly credentials?: Credentials } | undefined {
  const parsed = URL.parse(text.includes('://') ? text : `http://${text}`);
  if (!parsed || !/^https?:$/.test(parsed.protocol)) return undefined;
  const url = `${parsed.protocol}//${parsed.host}${parsed.pathname.replace(/\/+$/, '')}`;
  if (parsed.password === '') return { url };
  const user = decode(parsed.username) || 'opencode';
  return { url, credentials: { user, password: decode(parsed.password) } };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A lone percent sign: meant as it stands.
    return text;
  }
}

/** Whether the default address is worth a question: somebody listens there, and it isn't another user. */
function isWorthAsking(url: string, { listeners, uid }: Found): boolean {
  if (!listeners) return true;
  const port = Number(new URL(url).port);
  const there = listeners.filter((listener) => listener.port === port && loopbackUrl(listener) !== undefined);
  return there.some((listener) => uid === undefined || listener.uid === uid || listener.uid === 0);
}

/** `localhost` and `127.0.0.1` are the same listener. */
function sameListener(a: string, b: string): boolean {
  return loopbackName(a) === loopbackName(b);
}

function loopbackName(url: string): string {
  return url.replace('//localhost:', '//127.0.0.1:');
}

/** Whether an address is of this computer. */
export function isLoopback(url: string): boolean {
  const { hostname } = new URL(url);
  return hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d+){3}$/.test(hostname);
}
