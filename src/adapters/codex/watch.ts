import type { FeedSink, FeedWatch } from '../../runtime/feed.ts';
import { systemTimers, type TimerPort } from '../../runtime/files/coalesce.ts';
import { systemFiles, tryStat } from '../../runtime/files/file-system.ts';
import { watchFolders } from '../../runtime/files/watch.ts';
import type { WatchPort } from '../../runtime/files/watch-port.ts';
import { isAlive } from '../../runtime/process/identity.ts';
import type { AdapterContext } from '../adapter.ts';
import { codexHome } from './homes.ts';
import type { CodexHost } from './host.ts';
import { readThreadLocks } from './locks.ts';
import { findDaemonUnlocked, findLockHoldingServers, type ServerAddress } from './server-find.ts';
import { createServerKeeper } from './server-keep.ts';

/** How often locks and servers are looked at again although no file moved (K-10), milliseconds. */
export const LOOK_EVERY_MS = 5_000;
/** How often the few processes that hold locks are asked whether they live; a killed one moves no file. */
export const ALIVE_EVERY_MS = 1_000;
/** Files that are stat'ed at each poll: the rollouts that moved last. */
const HOT_FILES = 64;

export interface CodexWatchOptions {
  readonly timers?: TimerPort;
  readonly port?: WatchPort;
}

/**
 * Watches Codex: the day folders with their rollouts (folders, not files: X12), the locks, the names, and every
 * app-server that holds a lock, over a kept connection that only listens. A change asks for a scan; statuses go
 * straight to the registry.
 */
export function watchCodex(
  context: AdapterContext,
  sink: FeedSink,
  host: CodexHost,
  options: CodexWatchOptions = {},
): FeedWatch {
  const home = codexHome(context);
  const files = context.files ?? systemFiles;
  const timers = options.timers ?? systemTimers;
  const machine = { ...host, platform: context.platform, now: () => context.now() };
  const keeper = createServerKeeper(sink, { now: () => context.now(), log: context.log, timers });
  const hot = new Set<string>();
  const state = { pids: new Set<number>(), newestMs: 0, cancels: new Set<() => void>(), closed: false };

  const servers = (): readonly ServerAddress[] => {
    const locks = readThreadLocks(home, files, machine);
    state.pids = new Set([...locks.held.values()].flatMap((lock) => lock.pid ?? []));
    if (locks.readable) return findLockHoldingServers(locks, machine);
    const daemon = findDaemonUnlocked(home, state.newestMs > 0 ? state.newestMs : undefined, machine);
    return daemon ? [daemon] : [];
  };

  const look = (): void => {
    if (!state.closed) keeper.keep(servers());
  };

  const folders = watchFolders(
    [
      { path: home.sessions, depth: 3 },
      { path: home.archived, depth: 0 },
      { path: home.locks, depth: 0 },
      { path: home.root, depth: 0 },
    ],
    {
      files,
      timers,
      ...(options.port ? { port: options.port } : {}),
      hot: () => hot,
      log: (line) => context.log.warn(`codex: ${line}`),
      onChange(paths, overflow) {
        const relevant = paths.filter((path) => concerns(path, home));
        if (relevant.length === 0 && !overflow) return;
        for (const path of relevant) if (isRollout(path)) remember(path);
        look();
        sink.changed();
      },
    },
  );

  const remember = (path: string): void => {
    hot.delete(path);
    hot.add(path);
    for (const oldest of hot) {
      if (hot.size <= HOT_FILES) break;
      hot.delete(oldest);
    }
    const stat = tryStat(files, path);
    if ('size' in stat) state.newestMs = Math.max(state.newestMs, stat.mtimeMs);
  };

  const repeat = (ms: number, run: () => void): void => {
    const cancel = timers.after(ms, () => {
      state.cancels.delete(cancel);
      if (state.closed) return;
      run();
      repeat(ms, run);
    });
    state.cancels.add(cancel);
  };

  look();
  repeat(LOOK_EVERY_MS, look);
  repeat(ALIVE_EVERY_MS, () => {
    const gone = [...state.pids].filter((pid) => !isAlive(pid, machine));
    if (gone.length === 0) return;
    for (const pid of gone) state.pids.delete(pid);
    look();
    sink.changed();
  });

  return {
    async close() {
      state.closed = true;
      for (const cancel of state.cancels) cancel();
      folders.close();
      keeper.close();
    },
    status() {
      const count = keeper.connected;
      return `${folders.words()}; ${count === 0 ? 'no app-server' : `${count} app-server${count > 1 ? 's' : ''}`}`;
    },
  };
}

function isRollout(path: string): boolean {
  return /rollout-[^/\\]*\.jsonl(\.zst)?$/.test(path);
}

/** The home itself is full of databases that are written all the time; of its own entries only the names matter. */
function concerns(path: string, home: ReturnType<typeof codexHome>): boolean {
  const isInside = [home.sessions, home.archived, home.locks].some((folder) => path.startsWith(folder));
  return isInside || path === home.names;
}
