/** How long one piece of work goes on before the others of this process get a turn, milliseconds. */
const SLICE_MS = 20;

/**
 * Takes each item in turn, and lets everything else that waits run whenever a slice is over: thousands of files are
 * looked at in one go, and meanwhile a daemon's clients want answers. `step` itself is not interrupted.
 *
 * @throws what `step` throws, and then takes no further item
 */
export async function mapInSlices<Item, Result>(
  items: readonly Item[],
  step: (item: Item) => Result,
): Promise<Result[]> {
  const results: Result[] = [];
  let sliceEnd = performance.now() + SLICE_MS;
  for (const item of items) {
    results.push(step(item));
    if (performance.now() < sliceEnd || results.length === items.length) continue;
    await new Promise<void>((resume) => setImmediate(resume));
    sliceEnd = performance.now() + SLICE_MS;
  }
  return results;
}
