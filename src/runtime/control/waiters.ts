/** Things that are waited for by an id, each for a limited time. */
export interface Waiters {
  /** True once `resolve` is called for the id; false when the time is over first, or all is cancelled. */
  waitFor(id: string, limitMs: number): Promise<boolean>;
  resolve(id: string): void;
  cancelAll(): void;
}

/** Nobody waits yet. Several may wait for one id: each has its own time, and all are told. */
export function createWaiters(): Waiters {
  const waiting = new Map<string, Set<(came: boolean) => void>>();
  const settle = (id: string, came: boolean): void => {
    const all = waiting.get(id);
    waiting.delete(id);
    for (const resolve of all ?? []) resolve(came);
  };
  return {
    waitFor(id, limitMs) {
      const { promise, resolve } = Promise.withResolvers<boolean>();
      const all = waiting.get(id) ?? new Set();
      const own = (came: boolean): void => {
        clearTimeout(timer);
        resolve(came);
      };
      const timer = setTimeout(() => {
        all.delete(own);
        if (all.size === 0 && waiting.get(id) === all) waiting.delete(id);
        own(false);
      }, limitMs);
      waiting.set(id, all.add(own));
      return promise;
    },
    resolve: (id) => settle(id, true),
    cancelAll() {
      for (const id of [...waiting.keys()]) settle(id, false);
    },
  };
}
