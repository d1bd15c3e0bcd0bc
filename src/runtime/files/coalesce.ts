/** Time as the watchers need it; tests drive it by hand. */
export interface TimerPort {
  /** Milliseconds that only go forward; not the time of day. */
  now(): number;
  /** Calls once after so many milliseconds; the result cancels. */
  after(milliseconds: number, call: () => void): () => void;
}

export const systemTimers: TimerPort = {
  now: () => performance.now(),
  after(milliseconds, call) {
    const timer = setTimeout(call, milliseconds);
    return () => clearTimeout(timer);
  },
};

/** Paths beyond this in one report are left out, and `overflow` says so. */
export const COALESCE_LIMIT = 5000;

export interface CoalesceOptions {
  /** Reported so long after the last addition. */
  readonly settleMs: number;
  /** Reported so long after the first at the latest, so that a storm without end is heard too. */
  readonly maxWaitMs: number;
  readonly timers?: TimerPort;
  readonly onReport: (paths: readonly string[], overflow: boolean) => void;
}

export interface Coalescer {
  add(path: string): void;
  /** Drops what has not been reported. */
  close(): void;
}

/** Turns bursts of paths into one report each, without repetitions. */
export function createCoalescer(options: CoalesceOptions): Coalescer {
  const timers = options.timers ?? systemTimers;
  const pending = new Set<string>();
  let overflow = false;
  let firstAt = 0;
  let lastAt = 0;
  let cancel: (() => void) | undefined;

  const arm = (): void => {
    const due = Math.min(lastAt + options.settleMs, firstAt + options.maxWaitMs);
    cancel = timers.after(Math.max(0, due - timers.now()), fire);
  };
  const fire = (): void => {
    cancel = undefined;
    const now = timers.now();
    // One timer for a burst, moved on when it fires: re-arming at every event costs more than the events.
    if (now < lastAt + options.settleMs && now < firstAt + options.maxWaitMs) {
      arm();
      return;
    }
    const report = [...pending];
    const cut = overflow;
    pending.clear();
    overflow = false;
    options.onReport(report, cut);
  };

  return {
    add(path) {
      lastAt = timers.now();
      if (cancel === undefined) {
        firstAt = lastAt;
        arm();
      }
      if (pending.size < COALESCE_LIMIT) pending.add(path);
      else if (!pending.has(path)) overflow = true;
    },
    close() {
      cancel?.();
      cancel = undefined;
      pending.clear();
    },
  };
}
