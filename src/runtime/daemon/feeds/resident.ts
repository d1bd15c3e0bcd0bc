import { hostedKeys } from '../../control/hosted.ts';
import type { RuntimeFeed, ScanProblem } from '../../feed.ts';
import { createMonitor } from '../../monitor.ts';
import { isAlive } from '../../process/identity.ts';
import { systemClock, systemScheduler } from '../clock.ts';
import {
  type ConnectorBuilders,
  type ConnectorOptions,
  type ConnectorSource,
  createConnectorService,
} from '../connector/service.ts';
import { type Daemon, type DaemonOptions, startDaemon } from '../daemon.ts';
import type { Desk } from '../inside/desk.ts';
import { insideOps } from '../inside/service.ts';
import { type ServiceLog, silent } from '../log.ts';
import type { Periodic } from '../periodic.ts';
import { RequestError } from '../protocol.ts';
import type { SessionsEngine } from '../sessions/engine.ts';
import { wireState } from '../sessions/entry.ts';
import { createRepoLookup } from '../sessions/repo.ts';
import { type Counters, createCounters } from './counters.ts';
import { createDiscovery } from './discovery.ts';
import { createInsideFeed } from './inside.ts';
import type { DiscoveryPorts } from './ports.ts';
import { feedReports } from './reports.ts';
import { createRegistryView, fusedWord, proofOf } from './view.ts';
import { createDiscoveryWatchers } from './watchers.ts';

export interface ResidentOptions<Context>
  extends Omit<DaemonOptions, 'services' | 'ownerProof' | 'shownState'> {
  readonly feeds: readonly RuntimeFeed<Context>[];
  readonly context: Context;
  readonly builders: ConnectorBuilders;
  readonly acts?: ConnectorOptions['acts'];
  /** Where the discovery feeds look (S-601 … S-629); without one that feed is off, and everything else works (§0.4). */
  readonly discovery?: DiscoveryPorts;
  /** The period of the net under file notification (K-10, R-26), milliseconds. */
  readonly pollMs?: number;
  /** Called after every scan that has found something new: the index is written then. */
  readonly settled?: () => void;
}

/** The daemon with the one registry in it: reports, adapters and watchers together. */
export interface Resident extends Daemon {
  /** The one registry as the services of the socket see it. */
  readonly source: ConnectorSource;
  /** What `status` shows as counted; what runs beside the daemon counts here, too. */
  readonly counters: Counters;
  /** Resolves when everything has been looked at once; the socket is served before. */
  readonly ready: Promise<void>;
}

/**
 * Starts the daemon with all feeds (S-343): reports of the socket and the journals become claims of the one registry
 * adapters scan and watch into it, and both services of the socket show what it makes of them. Rejects like
 * `startDaemon`.
 */
export async function startResident<Context>(options: ResidentOptions<Context>): Promise<Resident> {
  const clock = options.clock ?? systemClock(options.host.platform);
  const scheduler = options.scheduler ?? systemScheduler;
  const counters = createCounters();
  const log = counters.wrap(options.log ?? silent);
  const view = createRegistryView();
  const monitor = createMonitor({
    feeds: options.feeds,
    context: options.context,
    clock: { now: clock.now, after: scheduler.after },
    owned: () => hostedKeys(options.home),
    ...(options.pollMs === undefined ? {} : { pollMs: options.pollMs }),
  });
  const ready = Promise.withResolvers<void>();
  const listeners = new Set<() => void>();
  const held: {
    engine?: SessionsEngine;
    discovery?: ReturnType<typeof createDiscovery>;
    desk?: Desk;
    /** The discovery watchers, once they run. */
    files?: readonly Periodic[];
  } = {};
  const lookAtFiles = (): void => {
    for (const watcher of held.files ?? []) watcher.scan();
  };
  const words = new Map<string, string>();

  const wordOf = (id: string, own = wireState('idle')) => {
    const entry = held.engine?.entry(id);
    return entry ? fusedWord(own, entry, view.ofEntry(entry)) : own;
  };

  /** Takes the registry's changes to both services. */
  const refresh = (): void => {
    const { engine, discovery } = held;
    if (!engine || !discovery) return;
    const now = clock.now();
    const moved = view.take(monitor.registry.sessions(), now);
    if (!moved) return;
    discovery.look(view.sessions());
    if (wordsMoved(engine, words, wordOf)) engine.bump();
    for (const listener of listeners) listener();
  };
  const soon = createSoon(refresh);

  const source: ConnectorSource = {
    ready: ready.promise,
    revision: view.revision,
    changedAt: view.changedAt,
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    now: clock.now,
    sessions: () => monitor.registry.sessions(),
    find: monitor.registry.find,
    windowOf: ({ sessionId }) => windowOf(held.engine, sessionId),
    instances: monitor.instances,
    problems: () => problemsByFeed(options.feeds, monitor.problems),
    status: () => ({
      healthy: monitor.problems().length === 0,
      summary: `${monitor.registry.size} session(s) known, ${monitor.problems().length} problem(s)`,
      detail: statusDetail(monitor.status(), counters, monitor.problems()),
    }),
  };

  const daemon = await startDaemon({
    ...options,
    log,
    clock,
    scheduler,
    ownerProof: (id) => {
      const entry = held.engine?.entry(id);
      return entry && proofOf(view.ofEntry(entry));
    },
    shownState: wordOf,
    services: (engine) => {
      held.engine = engine;
      held.discovery = createDiscovery(engine, createRepoLookup({ clock, log }), lookAtFiles);
      feedReports(engine, monitor.registry, clock.now, soon);
      const desk = createInsideFeed({
        registry: monitor.registry,
        feeds: options.feeds,
        context: options.context,
        engine,
        now: clock.now,
        scheduler,
        log,
        isAlive,
        changed: soon,
      });
      held.desk = desk;
      return [
        createConnectorService({
          source,
          builders: options.builders,
          inside: insideOps(desk),
          ...(options.acts ? { acts: options.acts } : {}),
        }),
      ];
    },
  });
  const repos = createRepoLookup({ clock, log });
  const files = createDiscoveryWatchers({
    engine: daemon.engine,
    repos,
    clock,
    scheduler,
    log,
    ports: options.discovery ?? {},
    known: (agent, id) => {
      const entry = daemon.engine.entry(id);
      const session = view.ofEntry({ agent, id });
      const life = session?.own.life;
      const inferred = session !== undefined && session.own.state.kind !== 'unknown';
      const reported = entry?.hooks !== undefined || entry?.stream !== undefined;
      return { spoken: reported || inferred || life === 'alive', dead: life === 'dead' };
    },
  });
  const stopped = { yes: false };
  const settle = (): void => {
    refresh();
    options.settled?.();
  };
  const startFiles = (): void => {
    for (const watcher of files) watcher.start();
    held.files = files;
  };
  begin(monitor, { settle, soon, log, stopped, startFiles, done: ready.resolve });

  return {
    ...daemon,
    source,
    counters,
    ready: ready.promise,
    async stop() {
      stopped.yes = true;
      held.files = [];
      for (const watcher of files) watcher.stop();
      await daemon.server.stop();
      held.desk?.stop();
      await monitor.close();
      ready.resolve();
      await daemon.stop();
    },
  };
}

/** The window's first folder; undefined for a session in a terminal, whose refusal names it (S-208). */
function windowOf(engine: SessionsEngine | undefined, sessionId: string): string | undefined {
  if (!engine?.entry(sessionId)) return undefined;
  try {
    return engine.focusFolder(sessionId);
  } catch (error) {
    if (error instanceof RequestError) return undefined;
    throw error;
  }
}

interface Beginning {
  readonly settle: () => void;
  readonly soon: () => void;
  readonly log: ServiceLog;
  readonly stopped: { readonly yes: boolean };
  readonly startFiles: () => void;
  readonly done: () => void;
}

/** The first look and then the watches, while the socket is served already. */
async function begin(monitor: ReturnType<typeof createMonitor>, how: Beginning): Promise<void> {
  try {
    await monitor.scan();
    how.settle();
    how.done();
    if (how.stopped.yes) return;
    // After the rows, so that what they say stands before a file's growth is judged.
    how.startFiles();
    await monitor.watch(how.soon);
    how.log('info', 'watching', monitor.status());
  } catch (error) {
    // Feeds fail alone inside the monitor; what comes here is a defect, and the socket still serves reports.
    how.log('error', 'feeds_failed', { error: error instanceof Error ? error.message : String(error) });
    how.done();
  }
}

/** Runs once for all calls of one moment. */
function createSoon(run: () => void): () => void {
  const state = { asked: false };
  return () => {
    if (state.asked) return;
    state.asked = true;
    queueMicrotask(() => {
      state.asked = false;
      run();
    });
  };
}

/** Whether the socket would show another word for any session than when it was last asked. */
function wordsMoved(
  engine: SessionsEngine,
  words: Map<string, string>,
  wordOf: (id: string, own: ReturnType<typeof wireState>) => string,
): boolean {
  const next = new Map(
    engine.entries().map((entry) => [entry.id, wordOf(entry.id, wireState(entry.shown.phase))]),
  );
  const moved = [...next].some(([id, word]) => words.get(id) !== word);
  words.clear();
  for (const [id, word] of next) words.set(id, word);
  return moved;
}

function problemsByFeed<Context>(
  feeds: readonly RuntimeFeed<Context>[],
  problems: (ids?: readonly string[]) => readonly ScanProblem[],
): Readonly<Record<string, readonly ScanProblem[]>> {
  return Object.fromEntries(feeds.map(({ id }) => [id, problems([id])]));
}

function statusDetail(
  feeds: Readonly<Record<string, string>>,
  counters: Counters,
  problems: readonly ScanProblem[],
): Record<string, unknown> {
  const memory = process.memoryUsage();
  return {
    feeds,
    counters: counters.all(),
    skipped: problems.reduce((sum, problem) => sum + problem.skipped, 0),
    memory: { rssBytes: memory.rss, heapBytes: memory.heapUsed },
  };
}
