import { basename, dirname } from 'node:path';
import type { FeedSink, FeedWatch } from '../../runtime/feed.ts';
import { systemTimers } from '../../runtime/files/coalesce.ts';
import { watchFolders } from '../../runtime/files/watch.ts';
import type { ProcessHost } from '../../runtime/process/types.ts';
import type { AdapterContext } from '../adapter.ts';
import { holdStream } from './connection.ts';
import type { MutableLiveServers } from './live-servers.ts';
import { ask, homeOf, readStoreOf, viewOf } from './scan.ts';
import type { Server } from './servers.ts';
import type { StreamTimers } from './stream.ts';

/** How often servers are looked for in the long run, milliseconds. */
export const DISCOVER_MS = 5_000;
/** The first pause before servers are looked for again, after the start and after a loss, milliseconds; it doubles. */
const RETRY_FIRST_MS = 250;
/** Scans that writes ask for are at least this far apart, milliseconds; the first is at once. */
const RESCAN_MS = 200;

/**
 * Watches the store's folder, since a terminal without a port tells nobody, and holds the event stream of every
 * server that answers. Servers are looked for again and again; a lost one soon, then with longer pauses.
 */
export async function watchOpencode(
  context: AdapterContext,
  host: ProcessHost,
  live: MutableLiveServers,
  sink: FeedSink,
  timers: StreamTimers = systemTimers,
): Promise<FeedWatch> {
  const ending = new AbortController();
  const stop = (): void => ending.abort();
  context.signal?.addEventListener('abort', stop, { once: true });
  const rescan = throttled(RESCAN_MS, timers, () => sink.changed());
  const home = homeOf(context);
  // Of the folder a scan reads the database and its log.
  const root = dirname(home.database);
  const mattering = new Set([home.database, `${home.database}-wal`].map((path) => basename(path)));
  const folder = watchFolders([{ path: root, depth: 0 }], {
    onChange(paths, overflow) {
      if (overflow || paths.some((path) => mattering.has(basename(path)) || path === root)) rescan.call();
    },
    log: (line) => context.log.warn(line),
    ...(context.files ? { files: context.files } : {}),
  });
  const search = searchServers({ context, host, live, sink, timers, signal: ending.signal });
  return {
    async close() {
      context.signal?.removeEventListener('abort', stop);
      stop();
      rescan.cancel();
      folder.close();
      await search.closed();
    },
    status() {
      const urls = live.connected().map(({ server }) => server.endpoint.url);
      return urls.length === 0 ? folder.words() : `${folder.words()}; events of ${urls.join(', ')}`;
    },
  };
}

interface SearchOptions {
  readonly context: AdapterContext;
  readonly host: ProcessHost;
  readonly live: MutableLiveServers;
  readonly sink: FeedSink;
  readonly timers: StreamTimers;
  readonly signal: AbortSignal;
}

/** Looks for servers until the signal, and holds the stream of each one found. */
function searchServers(options: SearchOptions): { closed(): Promise<void> } {
  const { context, host, live, timers, signal } = options;
  const held = new Map<string, Promise<void>>();
  const state = { cancel: () => {}, looking: Promise.resolve(), pause: RETRY_FIRST_MS };

  const hold = async (server: Server, local: boolean): Promise<void> => {
    const started = context.now();
    const reason = await holdStream({
      ...options,
      server,
      local,
      now: context.now,
      snapshot: async () => viewOf(server, readStoreOf(context, homeOf(context)), context.now()),
    });
    held.delete(server.endpoint.url);
    if (signal.aborted) return;
    context.log.debug(`events of ${server.endpoint.url}: ${reason}`);
    // One that stood for long is most likely restarted; one that breaks at once would be hammered.
    if (context.now() - started > DISCOVER_MS) state.pause = RETRY_FIRST_MS;
    lookAfter(state.pause);
  };

  const look = async (): Promise<void> => {
    if (signal.aborted) return;
    const home = homeOf(context);
    const found = await ask(context, host, home, readStoreOf(context, home), {
      ...(live.named() ? { endpoint: live.named() } : {}),
      skip: new Set(held.keys()),
    });
    if (signal.aborted) return;
    live.setRefused(found.refused);
    live.await([...found.local, ...found.remote].map(({ endpoint }) => endpoint.url));
    for (const server of found.local) held.set(server.endpoint.url, hold(server, true));
    for (const server of found.remote) held.set(server.endpoint.url, hold(server, false));
  };

  const lookAfter = (ms: number): void => {
    state.cancel();
    if (signal.aborted) return;
    state.cancel = timers.after(ms, () => {
      state.pause = Math.min(state.pause * 2, DISCOVER_MS);
      state.looking = look().finally(() => lookAfter(state.pause));
    });
  };

  state.looking = look().finally(() => lookAfter(state.pause));
  return {
    async closed() {
      state.cancel();
      await state.looking;
      await Promise.all(held.values());
    },
  };
}

/** Calls at once, then at most once in `ms` however often it is asked to. */
function throttled(ms: number, timers: StreamTimers, run: () => void): { call(): void; cancel(): void } {
  const state = { resting: false, asked: false, cancel: () => {} };
  const call = (): void => {
    if (state.resting) {
      state.asked = true;
      return;
    }
    state.resting = true;
    state.cancel = timers.after(ms, () => {
      state.resting = false;
      if (!state.asked) return;
      state.asked = false;
      call();
    });
    run();
  };
  return { call, cancel: () => state.cancel() };
}
