import { reasonOf } from './errors.ts';
import type { FeedScan, FeedWatch, RuntimeFeed, RuntimeInstance, ScanOptions, ScanProblem } from './feed.ts';
import { createRegistry, type Registry } from './session/registry.ts';
import { type Sighting, sessionKey } from './session/session.ts';

/** Time, injected. `after` returns a function that cancels. */
export interface MonitorClock {
  /** Epoch milliseconds. */
  now(): number;
  after(ms: number, run: () => void): () => void;
}

export interface MonitorOptions<Context> {
  readonly feeds: readonly RuntimeFeed<Context>[];
  readonly context: Context;
  readonly clock: MonitorClock;
  readonly scan?: ScanOptions;
  /** Keys of the sessions that a process of ours runs now; asked at each scan. */
  readonly owned?: () => ReadonlySet<string>;
  /** How often everything is looked at again although nothing was notified (K-10, R-26), milliseconds. */
  readonly pollMs?: number;
}

/** All runtimes' sessions at this moment, and how they are watched. */
export interface Monitor {
  readonly registry: Registry;
  instances(): readonly RuntimeInstance[];
  /** Of all feeds, or of those named. */
  problems(ids?: readonly string[]): readonly ScanProblem[];
  /** Scans every feed once. */
  scan(): Promise<void>;
  /** Starts watching; `changed` is called after the registry has moved, never more often than it has. */
  watch(changed: () => void): Promise<void>;
  /** How each feed is watched, for `daemon status`. */
  status(): Readonly<Record<string, string>>;
  close(): Promise<void>;
}

export const DEFAULT_POLL_MS = 5_000;
/** Ages and held values are judged again this often while something is open. */
const TICK_MS = 1_000;

/**
 * Keeps one registry filled from the feeds: one scan for a one-shot command, notification with a slow poll as the
 * net for a watch. A feed that fails is a problem of that feed alone; the others' sessions are always there.
 */
export function createMonitor<Context>(options: MonitorOptions<Context>): Monitor {
  const registry = createRegistry();
  const { clock, context, feeds } = options;
  const scans = new Map<string, FeedScan>();
  const watches = new Map<string, FeedWatch>();
  const running = new Map<string, Promise<void>>();
  const dirty = new Set<string>();
  const cancels = new Set<() => void>();
  const everOwned = new Set<string>();
  const state = { closed: false, changed: () => {} };

  const scanFeed = async (feed: RuntimeFeed<Context>, withoutLive: boolean): Promise<void> => {
    const result = await scanSafely(feed, context, { ...options.scan, withoutLive });
    if (state.closed) return;
    const kept = result.failed
      ? { ...(scans.get(feed.id) ?? result.scan), problems: result.scan.problems }
      : result.scan;
    // The registry has the sightings; a second copy of 100,000 is not kept.
    scans.set(feed.id, { ...kept, sightings: NO_SIGHTINGS });
    if (!result.failed) registry.replace(feed.id, withOrigin(result.scan.sightings), clock.now());
  };

  /** Copies only whose origin is ours, or was: what was ours once must not stay so. */
  const withOrigin = (sightings: readonly Sighting[]): readonly Sighting[] => {
    const owned = options.owned?.();
    if (!owned) return sightings;
    for (const key of owned) everOwned.add(key);
    if (everOwned.size === 0) return sightings;
    return sightings.map((one) => {
      const key = sessionKey(one.session);
      if (!everOwned.has(key)) return one;
      const origin = owned.has(key) ? 'connectorOwned' : (one.facts?.origin ?? 'unboundLocal');
      return { ...one, facts: { ...one.facts, origin } };
    });
  };

  // A scan that is asked for while one runs is made once more after it, however often it was asked for.
  const rescan = (feed: RuntimeFeed<Context>): void => {
    if (state.closed) return;
    if (running.has(feed.id)) {
      dirty.add(feed.id);
      return;
    }
    const job = scanFeed(feed, watches.has(feed.id)).finally(() => {
      running.delete(feed.id);
      state.changed();
      if (dirty.delete(feed.id)) rescan(feed);
    });
    running.set(feed.id, job);
  };

  const repeat = (ms: number, run: () => void): void => {
    const cancel = clock.after(ms, () => {
      cancels.delete(cancel);
      if (state.closed) return;
      run();
      repeat(ms, run);
    });
    cancels.add(cancel);
  };

  return {
    registry,
    instances: () => feeds.flatMap((feed) => scans.get(feed.id)?.instances ?? []),
    problems: (ids) =>
      feeds
        .filter((feed) => ids?.includes(feed.id) ?? true)
        .flatMap((feed) => scans.get(feed.id)?.problems ?? []),
    async scan() {
      await Promise.all(feeds.map((feed) => scanFeed(feed, false)));
    },
    async watch(changed) {
      state.changed = changed;
      await Promise.all(feeds.map((feed) => startWatch(feed)));
      // What changed between the first scan and the start of the watch was announced to nobody.
      feeds.forEach(rescan);
      repeat(options.pollMs ?? DEFAULT_POLL_MS, () => feeds.forEach(rescan));
      repeat(TICK_MS, () => {
        if (registry.tick(clock.now())) changed();
      });
    },
    status: () =>
      Object.fromEntries(feeds.map((feed) => [feed.id, watches.get(feed.id)?.status() ?? 'polling only'])),
    async close() {
      state.closed = true;
      for (const cancel of cancels) cancel();
      await Promise.allSettled([...watches.values()].map((watch) => watch.close()));
      await Promise.allSettled(running.values());
    },
  };

  async function startWatch(feed: RuntimeFeed<Context>): Promise<void> {
    if (!feed.watch) return;
    try {
      const watch = await feed.watch(context, {
        changed: () => rescan(feed),
        sighted(scope, sightings) {
          if (state.closed) return;
          registry.apply(scope, sightings, clock.now());
          state.changed();
        },
        lost(scope) {
          registry.withdraw(scope, clock.now());
          rescan(feed);
        },
      });
      watches.set(feed.id, watch);
    } catch (thrown) {
      // Polling still finds everything, only later; the user sees the reason among the problems.
      addProblem(feed.id, { subject: `watching ${feed.id}`, reason: reasonOf(thrown), skipped: 0 });
    }
  }

  function addProblem(id: string, problem: ScanProblem): void {
    const scan = scans.get(id) ?? { instances: [], sightings: [], problems: [] };
    scans.set(id, { ...scan, problems: [...scan.problems, problem] });
  }
}

async function scanSafely<Context>(
  feed: RuntimeFeed<Context>,
  context: Context,
  options: ScanOptions,
): Promise<{ scan: FeedScan; failed: boolean }> {
  try {
    return { scan: await feed.scan(context, options), failed: false };
  } catch (thrown) {
    const problem = { subject: feed.id, reason: reasonOf(thrown), skipped: 0 };
    return { scan: { instances: [], sightings: [], problems: [problem] }, failed: true };
  }
}

const NO_SIGHTINGS: readonly Sighting[] = [];
