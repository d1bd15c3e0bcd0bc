import { describe, expect, test } from 'bun:test';
import { createWaiters } from '../../../src/runtime/control/waiters.ts';

/** Long enough never to pass within a test. */
const LONG_MS = 600_000;

describe('waiting by an id', () => {
  test('ends with its id, and with no other', async () => {
    const waiters = createWaiters();
    const [one, two] = [waiters.waitFor('1', LONG_MS), waiters.waitFor('2', LONG_MS)];
    waiters.resolve('1');
    waiters.cancelAll();
    expect(await Promise.all([one, two])).toEqual([true, false]);
  });

  test('two that wait for one id are both told', async () => {
    const waiters = createWaiters();
    const both = [waiters.waitFor('1', LONG_MS), waiters.waitFor('1', LONG_MS)];
    waiters.resolve('1');
    expect(await Promise.all(both)).toEqual([true, true]);
  });

  test('the time of one ends that one alone', async () => {
    const waiters = createWaiters();
    const [short, long] = [waiters.waitFor('1', 1), waiters.waitFor('1', LONG_MS)];
    expect(await short).toBe(false);
    waiters.resolve('1');
    expect(await long).toBe(true);
  });
});
