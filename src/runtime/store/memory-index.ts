import type { IndexEntry, SessionIndex } from './session-index.ts';

/** An index that lives as long as its process: for tests. */
export function memoryIndex(): SessionIndex {
  const scopes = new Map<string, Map<string, IndexEntry>>();
  const entriesOf = (scope: string): Map<string, IndexEntry> => {
    const known = scopes.get(scope);
    if (known !== undefined) return known;
    const made = new Map<string, IndexEntry>();
    scopes.set(scope, made);
    return made;
  };
  return {
    load: entriesOf,
    stage(scope, path, entry) {
      entriesOf(scope).set(path, entry);
    },
    prune(scope, alive) {
      const entries = entriesOf(scope);
      for (const path of entries.keys()) if (!alive.has(path)) entries.delete(path);
    },
    flush() {},
    close() {},
  };
}
