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
  const settle = (id: string, came: boolean): void => {
    const resolve = waiting.get(id);
    waiting.delete(id);
    resolve?.(came);
  };
  return {
    waitFor(id, limitMs) {
      const { promise, resolve } = Promise.withResolvers<boolean>();
      const timer = setTimeout(() => settle(id, false), limitMs);
      waiting.set(id, (came) => {
        clearTimeout(timer);
        resolve(came);
      });
      return promise;
    },
    resolve: (id) => settle(id, true),
    cancelAll() {
      for (const id of [...waiting.keys()]) settle(id, false);
    },
  };
}
