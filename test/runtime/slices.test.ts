import { describe, expect, test } from 'bun:test';
import { mapInSlices } from '../../src/runtime/slices.ts';

/** Keeps the process busy. */
function busy(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

describe('work in slices', () => {
  test('the results are those of a map, in order', async () => {
    expect(await mapInSlices([1, 2, 3], (one) => one * 2)).toEqual([2, 4, 6]);
    expect(await mapInSlices([], () => 1)).toEqual([]);
  });

  test('whatever waits has its turn between two slices, and none is left after the last', async () => {
    const order: string[] = [];
    setImmediate(() => order.push('waiting'));
    await mapInSlices(['a', 'b', 'c'], (one) => {
      busy(25);
      order.push(one);
    });
    expect(order).toEqual(['a', 'waiting', 'b', 'c']);
  });

  test('a step that throws ends it', async () => {
    const seen: number[] = [];
    const run = mapInSlices([1, 2, 3], (one) => {
      seen.push(one);
      if (one === 2) throw new Error('broken');
    });
    await expect(run).rejects.toThrow('broken');
    expect(seen).toEqual([1, 2]);
  });
});
