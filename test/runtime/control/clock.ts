import type { Scheduler } from '../../../src/runtime/daemon/clock.ts';

/** Time that only a test moves. */
export interface TestClock {
  readonly scheduler: Scheduler;
  now(): number;
  /** Lets everything that is due run, in order, and what follows from it. */
  advance(ms: number): Promise<void>;
}

interface Timer {
  readonly at: number;
  readonly run: () => void;
}

/** Starts at a fixed time. */
export function createTestClock(start = 1_800_000_000_000): TestClock {
  const timers = new Set<Timer>();
  const state = { now: start };
  return {
    now: () => state.now,
    scheduler: {
      after(ms, run) {
        const timer = { at: state.now + ms, run };
        timers.add(timer);
        return () => timers.delete(timer);
      },
    },
    async advance(ms) {
      const end = state.now + ms;
      await settle();
      for (let due = next(timers, end); due; due = next(timers, end)) {
        timers.delete(due);
        state.now = Math.max(state.now, due.at);
        due.run();
        await settle();
      }
      state.now = end;
      await settle();
    },
  };
}

function next(timers: ReadonlySet<Timer>, end: number): Timer | undefined {
  return [...timers].filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0];
}

/** Lets promises that are settled have their turn. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 20; i += 1) await Promise.resolve();
  await new Promise((resolve) => setImmediate(resolve));
}
