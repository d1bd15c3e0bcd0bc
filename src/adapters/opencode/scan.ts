import type { FeedScan, ScanOptions } from '../../runtime/feed.ts';
import { type FileSystemPort, systemFiles, tryStat } from '../../runtime/files/file-system.ts';
import type { ProcessHost } from '../../runtime/process/types.ts';
import type { AdapterContext } from '../adapter.ts';
import { findHome, type OpencodeHome } from './homes.ts';
import { localInstance, serverProblems } from './instances.ts';
import type { LiveServers } from './live-servers.ts';
import { findOwners, findServers, type StoreOwners } from './owners.ts';
import { scanRemote } from './remote.ts';
import { pollServer, type ServerView } from './server-view.ts';
import { type FoundServers, findHealthy, type Server } from './servers.ts';
import { confirmGone, goneSessions, localSightings, needsOwner } from './sightings.ts';
import { readStore, rememberGone, type StoreRead } from './store.ts';

/** A session written to this recently may have been prompted again, before the prompt is stored, milliseconds. */
const RECENT_MS = 30_000;

/**
 * One look at everything: the store, the processes that could run its open turns, and each server that answers.
 * What fails is a problem; the rest of the list is always there. Never writes to anything of OpenCode's.
 */
export async function scanOpencode(
  context: AdapterContext,
  host: ProcessHost,
  live: LiveServers,
  options: ScanOptions = {},
): Promise<FeedScan> {
  const now = context.now();
  const home = homeOf(context);
  const store = readStoreOf(context, home);
  const owners = store.sessions.some(needsOwner) ? await findOwners(home.database, host) : undefined;
  // Before the watch has heard of its servers, leaving them out would make their sessions unknown for a moment.
  const byWatch = options.withoutLive === true && live.settled();
  const found = byWatch
    ? asConnected(live)
    : await ask(context, host, home, store, { ...(owners ? { owners } : {}), endpoint: options.endpoint });
  const polled = byWatch
    ? []
    : await Promise.all(
        found.local.map((server) => pollServer(server.api, server, directoriesToAsk(store, now))),
      );
  // A stream that was opened meanwhile says what is so by now: an answer may be the older word.
  const connected = live.connected();
  const streamed = new Set(connected.map(({ server }) => server.endpoint.url));
  const views = [
    ...connected.filter(({ local }) => local).map((one) => one.view()),
    ...polled.filter(({ endpoint }) => !streamed.has(endpoint.url)),
  ];
  const look = confirmGone({ store, views, owners, streamed, now }, () => {
    const at = context.now();
    return { sessions: readStoreOf(context, home).sessions, now: at };
  });
  if (context.index && owners) rememberGone(context.index, home, goneSessions(look));
  const remote = await Promise.all(
    found.remote.map((server) => scanRemote(server, streamed.has(server.endpoint.url), now)),
  );
  return {
    instances: [localInstance(store.source, found.local, found), ...remote.map(({ instance }) => instance)],
    sightings: [...localSightings(look), ...remote.flatMap(({ sightings }) => sightings)],
    problems: [
      ...store.problems,
      ...serverProblems(found, views),
      ...remote.flatMap(({ problems }) => problems),
    ],
  };
}

/** The home to read. */
export function homeOf(context: AdapterContext): OpencodeHome {
  const files: FileSystemPort = context.files ?? systemFiles;
  return findHome(context, (path) => 'size' in tryStat(files, path));
}

/** Its sessions, from the index where nothing was written since. */
export function readStoreOf(context: AdapterContext, home: OpencodeHome): StoreRead {
  return readStore(home, {
    files: context.files ?? systemFiles,
    platform: context.platform,
    now: context.now(),
    ...(context.index ? { index: context.index } : {}),
  });
}

/** A watch holds the servers: nothing is asked again. */
function asConnected(live: LiveServers): FoundServers {
  const connected = live.connected();
  return {
    local: connected.filter(({ local }) => local).map(({ server }) => server),
    remote: connected.filter(({ local }) => !local).map(({ server }) => server),
    refused: live.refused(),
  };
}

interface AskOptions {
  readonly owners?: StoreOwners;
  /** `--opencode-url`. */
  readonly endpoint?: string | undefined;
  readonly skip?: ReadonlySet<string>;
}

/** Finds and asks the servers. */
export async function ask(
  context: AdapterContext,
  host: ProcessHost,
  home: OpencodeHome,
  store: StoreRead,
  { owners, endpoint, skip }: AskOptions,
): Promise<FoundServers> {
  return findHealthy(context, {
    host,
    running: owners?.processes ?? (await findServers(home.database, host)),
    stored: store.source === 'database' ? new Set(store.sessions.map(({ info }) => info.id)) : undefined,
    ...(endpoint ? { endpoint } : {}),
    ...(skip ? { skip } : {}),
  });
}

/**
 * Directories of a server that are worth asking about: those in which a turn is open, or may have begun a moment
 * ago. Every other one would make the server start an instance, only to hear that it rests.
 */
export function directoriesToAsk({ sessions }: StoreRead, now: number): readonly string[] {
  const likely = sessions
    .filter((session) => needsOwner(session) || now - session.activityAt < RECENT_MS)
    .sort((a, b) => b.activityAt - a.activityAt);
  return [...new Set(likely.flatMap(({ info }) => info.directory ?? []))];
}

/** What a server says of the directories that matter now. */
export function viewOf(server: Server, store: StoreRead, now: number): Promise<ServerView> {
  return pollServer(server.api, server, directoriesToAsk(store, now));
}
