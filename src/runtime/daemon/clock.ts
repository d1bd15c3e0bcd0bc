import { dlopen, FFIType } from 'bun:ffi';

/**
 * Milliseconds that pass only while the computer is awake (S-201). Only differences mean anything. Every time to
 * live compares this clock; the wall clock is for display.
 */
export interface AwakeClock {
  awakeMs(): number;
}

/** Both clocks of the service, injected everywhere. */
export interface ServiceClock extends AwakeClock {
  /** Epoch milliseconds. */
  now(): number;
}

/** Runs something later; the returned function cancels it. */
export interface Scheduler {
  after(ms: number, run: () => void): () => void;
}

/** Timers of this process. They do not keep it alive: what serves a socket does that. */
export const systemScheduler: Scheduler = {
  after(ms, run) {
    const timer = setTimeout(run, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/**
 * Timers that a command waits for. They keep the process alive: while only others are pending, Bun 1.4.5 does not sleep
 * in an `await` of the main module, but asks again and again, with all of one core.
 */
export const waitingScheduler: Scheduler = {
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

/** Repeats until cancelled; a run that throws has ended its own series only by its own choice, so it must not throw. */
export function every(scheduler: Scheduler, ms: number, run: () => void): () => void {
  const state = { cancel: () => {} };
  const arm = (): void => {
    state.cancel = scheduler.after(ms, () => {
      arm();
      run();
    });
  };
  arm();
  return () => state.cancel();
}

/** `CLOCK_UPTIME_RAW` of macOS: stands still in sleep, unlike what a runtime's own clock may do there. */
const CLOCK_UPTIME_RAW = 8;

/**
 * The awake clock of a system. Linux: every clock of Bun reads `CLOCK_MONOTONIC`, which stands still in suspend.
 * macOS: `CLOCK_UPTIME_RAW` by FFI; when that can't be had, Bun's clock. Windows: Bun's clock, which counts sleep
 * on some versions; then a session may age out while the lid was closed.
 */
export function awakeClock(
  platform: NodeJS.Platform = process.platform,
  uptimeNanos: () => (() => bigint) | undefined = macUptime,
): AwakeClock {
  const nanos = platform === 'darwin' ? uptimeNanos() : undefined;
  if (nanos) return { awakeMs: () => Number(nanos() / 1_000n) / 1_000 };
  return { awakeMs: () => performance.now() };
}

function macUptime(): (() => bigint) | undefined {
  try {
    const library = dlopen('/usr/lib/libSystem.B.dylib', {
      clock_gettime_nsec_np: { args: [FFIType.i32], returns: FFIType.u64 },
    });
    return () => library.symbols.clock_gettime_nsec_np(CLOCK_UPTIME_RAW);
  } catch {
    // No such library or symbol: the runtime's clock is the next best.
    return undefined;
  }
}

/** The clocks of this computer. */
export function systemClock(platform: NodeJS.Platform = process.platform): ServiceClock {
  return { ...awakeClock(platform), now: () => Date.now() };
}
