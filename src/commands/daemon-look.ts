import { existsSync } from 'node:fs';
import { createClient, type ServiceClient } from '../runtime/daemon/client.ts';
import { fromWire, isWireSession } from '../runtime/daemon/connector/pages.ts';
import { endpointOf, socketPathIn } from '../runtime/daemon/endpoint.ts';
import { ConnectorError } from '../runtime/errors.ts';
import type { RuntimeInstance, ScanProblem } from '../runtime/feed.ts';
import type { Session, SessionRef } from '../runtime/session/session.ts';
import { sessionKey } from '../runtime/session/session.ts';
import { connectorHome } from '../runtime/store/home.ts';
import { type Collected, chosenAdapters, collect, readMonitor, type SessionsView } from './collect.ts';
import { buildCommit, worldPrint } from './daemon-world.ts';
import type { SessionFilter } from './filter.ts';
import { privacyOf } from './privacy.ts';
import type { World } from './world.ts';

/** How long a daemon may take to say that it is there; a slower one is not waited for, the scan is (D10). */
const PING_MS = 150;
/** How long the whole of its answer may take. */
const ANSWER_MS = 2_000;

/** One look, by the daemon or by ourselves. */
export interface Look extends Collected {
  readonly from: 'daemon' | 'scan';
  /** One session with its chain of evidence, and its sub-agents. */
  whole(ref: SessionRef): Promise<Whole>;
}

interface Whole {
  readonly session: Session;
  readonly relatives: readonly Session[];
}

/** Asks the daemon first, and looks for itself where there is none that sees the same (design §4). */
export async function lookAround(world: World, filter: SessionFilter, ask: boolean): Promise<Look> {
  const adapters = await chosenAdapters(world, filter);
  const client = ask ? await reachDaemon(world, filter) : undefined;
  const view = client && (await askForAll(client, filter));
  if (!client || !view) {
    const look = await collect(world, filter);
    return { ...look, from: 'scan', whole: async (ref) => wholeIn(look.monitor, ref) };
  }
  const look = readMonitor(view, filter, await privacyOf(world));
  return { monitor: view, adapters, ...look, from: 'daemon', whole: (ref) => askForWhole(client, ref) };
}

/**
 * The daemon's sessions, whenever they have changed and every `refreshMs`. Ends when there is no daemon, or no longer:
 * the caller then looks for itself.
 */
export async function* watchDaemon(
  world: World,
  filter: SessionFilter,
  signal: AbortSignal,
  refreshMs: number | undefined,
): AsyncIterable<SessionsView> {
  const client = await reachDaemon(world, filter);
  if (!client) return;
  const ended = new AbortController();
  const stop = () => ended.abort();
  signal.addEventListener('abort', stop);
  const news = client.subscribe('connector', 'subscribe', { payload: { rows: false }, signal: ended.signal });
  const frames = news[Symbol.asyncIterator]();
  const held: { view?: SessionsView } = {};
  try {
    let next = frames.next();
    while (!signal.aborted) {
      const event = await within(next, held.view ? refreshMs : ANSWER_MS);
      if (event === 'late') {
        if (!held.view) return;
        yield held.view;
        continue;
      }
      if (event.done || event.value.kind !== 'snapshot') return;
      next = frames.next();
      const view = await askForAll(client, filter);
      if (!view) return;
      held.view = view;
      yield view;
    }
  } finally {
    ended.abort();
    signal.removeEventListener('abort', stop);
  }
}

async function within<T>(promise: Promise<T>, ms: number | undefined): Promise<T | 'late'> {
  if (ms === undefined) return promise;
  const { promise: late, resolve } = Promise.withResolvers<'late'>();
  const timer = setTimeout(() => resolve('late'), ms);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** A client of a daemon of this build that reads the same folders; undefined where there is none. */
async function reachDaemon(world: World, filter: SessionFilter): Promise<ServiceClient | undefined> {
  // A server that the user names is asked by ourselves: the daemon has its own.
  if (filter.opencodeUrl !== undefined) return undefined;
  const socketPath = socketPathIn(connectorHome(world.env, world.home));
  if (endpointOf(socketPath, world.platform).kind === 'unix' && !existsSync(socketPath)) return undefined;
  const client = createClient({ socketPath, platform: world.platform });
  const reply = await client.request('daemon', 'ping', undefined, { timeoutMs: PING_MS });
  const why = reply.kind === 'ok' ? mismatch(reply.payload, world) : `no daemon answers: ${reply.kind}`;
  if (why === undefined) return client;
  world.log.debug(`looking for ourselves: ${why}`);
  return undefined;
}

function mismatch(about: unknown, world: World): string | undefined {
  const fields = typeof about === 'object' && about !== null ? about : {};
  if (Reflect.get(fields, 'version') !== world.version) return 'the daemon is of another version (S-326)';
  if (Reflect.get(fields, 'commit') !== buildCommit()) return 'the daemon is of another build (S-326)';
  return Reflect.get(fields, 'world') === worldPrint(world) ? undefined : 'the daemon reads other folders';
}

async function askForAll(client: ServiceClient, filter: SessionFilter): Promise<SessionsView | undefined> {
  const sessions: Session[] = [];
  const heads: unknown[] = [];
  let cursor: string | undefined;
  do {
    const reply = await client.request('connector', 'look', cursor === undefined ? {} : { cursor }, {
      timeoutMs: ANSWER_MS,
    });
    if (reply.kind !== 'ok') return undefined;
    const page = pageOf(reply.payload);
    if (!page) return undefined;
    heads.push(reply.payload);
    sessions.push(...page.sessions);
    cursor = page.next;
  } while (cursor !== undefined);
  return viewOf(sessions, heads[0], filter);
}

function pageOf(payload: unknown): { sessions: Session[]; next: string | undefined } | undefined {
  if (typeof payload !== 'object' || payload === null || !('sessions' in payload)) return undefined;
  const { sessions } = payload;
  if (!Array.isArray(sessions) || !sessions.every(isWireSession)) return undefined;
  const next = 'next' in payload && typeof payload.next === 'string' ? payload.next : undefined;
  return { sessions: sessions.map(fromWire), next };
}

function viewOf(all: readonly Session[], head: unknown, filter: SessionFilter): SessionsView {
  const chosen = (id: string) => filter.runtimes?.includes(id) ?? true;
  const sessions = all.filter((session) => chosen(session.ref.runtimeId));
  const byKey = new Map(sessions.map((session) => [sessionKey(session.ref), session]));
  // A sub-agent is known by its place alone; whoever wants it asks for the whole of it.
  const folded = new Map(
    sessions.flatMap((session) => session.subAgents.map((ref) => [sessionKey(ref), { ...session, ref }])),
  );
  const instances = listIn<RuntimeInstance>(head, 'instances').filter((one) => chosen(one.runtimeId));
  const problems = problemsIn(head, chosen);
  return {
    registry: {
      sessions: () => [...sessions],
      find: (ref) => byKey.get(sessionKey(ref)) ?? folded.get(sessionKey(ref)),
      size: byKey.size + folded.size,
    },
    instances: () => instances,
    problems: () => problems,
  };
}

/** A list that the same build has made from data of the same type. */
function listIn<T>(head: unknown, name: string): readonly T[] {
  const value: unknown = typeof head === 'object' && head !== null ? Reflect.get(head, name) : undefined;
  return Array.isArray(value) ? (value as T[]) : [];
}

function problemsIn(head: unknown, chosen: (id: string) => boolean): readonly ScanProblem[] {
  const byFeed: unknown =
    typeof head === 'object' && head !== null ? Reflect.get(head, 'problems') : undefined;
  if (typeof byFeed !== 'object' || byFeed === null) return [];
  return Object.keys(byFeed)
    .filter(chosen)
    .flatMap((id) => listIn<ScanProblem>(byFeed, id));
}

function wholeIn(view: SessionsView, ref: SessionRef): Whole {
  const session = view.registry.find(ref);
  if (!session) throw new ConnectorError('notFound', `the session ${ref.sessionId} has just gone`);
  return { session, relatives: session.subAgents.flatMap((child) => view.registry.find(child) ?? []) };
}

async function askForWhole(client: ServiceClient, ref: SessionRef): Promise<Whole> {
  const reply = await client.request('connector', 'whole', ref, { timeoutMs: ANSWER_MS });
  const payload = reply.kind === 'ok' && typeof reply.payload === 'object' ? reply.payload : undefined;
  const session: unknown = payload && Reflect.get(payload, 'session');
  if (payload && isWireSession(session)) {
    return {
      session: aliased(session as Session),
      relatives: listIn<Session>(payload, 'relatives').map(aliased),
    };
  }
  const why = reply.kind === 'rejected' ? reply.error : 'it did not answer';
  throw new ConnectorError('daemon', `the daemon: ${why}`, 'Try again with --no-daemon.');
}

/** `shown` is always sent here. */
function aliased(session: Session): Session {
  return { ...session, own: { ...session.own, chain: session.own.chain ?? [] } };
}
