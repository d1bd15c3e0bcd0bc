import type { Scheduler } from './clock.ts';
import type { LogFields, ServiceLog } from './log.ts';

export interface PeriodicOptions {
  /** Names the watcher in the log. */
  readonly name: string;
  readonly everyMs: number;
  readonly scheduler: Scheduler;
  readonly log: ServiceLog;
  /** One look; what it returns is logged as its summary (S-938). */
  readonly scan: () => Promise<LogFields>;
  /** Forgets what the watcher has tracked, after a scan that failed (S-343). */
  readonly reset: () => void;
}

/** A watcher that looks again and again (S-343). */
export interface Periodic {
  /** Scans at once and then at every interval; a second call changes nothing. */
  start(): void;
  /** One scan now, or the one that runs already: scans never overlap. Never rejects. */
  scan(): Promise<void>;
  /** Starts no further scan; does not wait for one that runs, whose owner must ignore what it finds. */
  stop(): void;
}

/** Runs scans one at a time. A scan that throws resets this watcher alone, and is said. */
export function createPeriodic(options: PeriodicOptions): Periodic {
  const { name, scheduler, log } = options;
  const state = { started: false, running: undefined as Promise<void> | undefined, cancel: () => {} };

  const scanOnce = async (): Promise<void> => {
    try {
      log('debug', 'watcher_scanned', { watcher: name, ...(await options.scan()) });
    } catch (error) {
      options.reset();
      const reason = error instanceof Error ? error.message : String(error);
      log('warn', 'watcher_failed', { watcher: name, error: reason, reset: true });
    }
  };

  const scan = (): Promise<void> => {
    state.running ??= scanOnce().finally(() => {
      state.running = undefined;
    });
    return state.running;
  };

  const arm = (): void => {
    state.cancel = scheduler.after(options.everyMs, () => {
      arm();
      scan();
    });
  };

  return {
    start() {
      if (state.started) return;
      state.started = true;
      arm();
      scan();
    },
    scan,
    stop() {
      state.started = false;
      state.cancel();
    },
  };
}
