import { expect, spyOn, test } from 'bun:test';
import { systemScheduler, waitingScheduler } from '../../../src/runtime/daemon/clock.ts';

test('the timers of a service keep no process alive, those that a command waits for do', () => {
  const made = spyOn(globalThis, 'setTimeout');
  try {
    const cancels = [systemScheduler, waitingScheduler].map((one) => one.after(60_000, () => {}));
    const timers = made.mock.results.map((result): NodeJS.Timeout => Object(result.value));
    const held = timers.map((timer) => timer.hasRef());
    for (const cancel of cancels) cancel();
    expect(held).toEqual([false, true]);
  } finally {
    made.mockRestore();
  }
});
