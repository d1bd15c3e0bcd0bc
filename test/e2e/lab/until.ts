/** How long a condition may take before a test gives up on it, milliseconds. Never how long anything should take. */
export const PATIENCE_MS = 45_000;

export interface UntilOptions {
  readonly timeoutMs?: number;
  readonly everyMs?: number;
  /** What to tell when the condition never came: the screen, the last answer. */
  readonly explain?: () => string | Promise<string>;
}

/**
 * Waits for a condition and returns what it found. The probe answers `undefined` or `false` for "not yet"; what it
 * throws ends the wait at once. Throws with `explain`'s words when the time is over.
 */
export async function until<T>(
  what: string,
  probe: () => T | undefined | false | Promise<T | undefined | false>,
  options: UntilOptions = {},
): Promise<T> {
  const end = performance.now() + (options.timeoutMs ?? PATIENCE_MS);
  for (;;) {
    const found = await probe();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > end) break;
    await Bun.sleep(options.everyMs ?? 50);
  }
  const seen = options.explain ? `\n${await options.explain()}` : '';
  throw new Error(`waited in vain for: ${what}${seen}`);
}

/** A promise that must come true in time; the same patience and words as `until`. */
export async function inTime<T>(what: string, promise: Promise<T>, options: UntilOptions = {}): Promise<T> {
  const settled: { value?: { readonly is: T } } = {};
  const done = promise.then((value) => {
    settled.value = { is: value };
  });
  const found = await until(
    what,
    async () => {
      await Promise.race([done, Bun.sleep(options.everyMs ?? 50)]);
      return settled.value;
    },
    options,
  );
  return found.is;
}
