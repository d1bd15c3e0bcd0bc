/** Things that are waited for by an id, each for a limited time. */
export interface Waiters {
  /** True once `resolve` is called for the id; false when the time is over first, or all is cancelled. */
  waitFor(id: string, limitMs: number): Promise<boolean>;
  resolve(id: string): void;
  cancelAll(): void;
}

/** Nobody waits yet. */
export function createWaiters(): Waiters {
  const waiting = new Map<string, (came: boolean) => void>();
  return {
    waitFor(id, limitMs) {
      const { promise, resolve } = Promise.withResolvers<boolean>();
      const timer = setTimeout(() => resolve(false), limitMs);
      waiting.set(id, resolve);
      return promise.finally(() => {
        clearTimeout(timer);
        waiting.delete(id);
      });
    },
    resolve: (id) => waiting.get(id)?.(true),
    cancelAll() {
      for (const resolve of [...waiting.values()]) resolve(false);
    },
  };
}
