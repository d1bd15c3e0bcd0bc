/** Remembers since when a session is without an owner, as far as this process has seen it leave. */
export interface Departures {
  /** Takes the sessions that have an owner at `now`, epoch milliseconds. */
  note(owned: ReadonlySet<string>, now: number): void;
  /** When its owner was first missed; `undefined` for a session that was never seen with one. */
  leftAt(sessionId: string): number | undefined;
}

/** A memory for as long as the process watches; a one-shot command sees nobody leave. */
export function createDepartures(): Departures {
  let before: ReadonlySet<string> = new Set();
  const left = new Map<string, number>();
  return {
    note(owned, now) {
      for (const id of before) if (!owned.has(id)) left.set(id, now);
      for (const id of owned) left.delete(id);
      before = owned;
    },
    leftAt: (sessionId) => left.get(sessionId),
  };
}
