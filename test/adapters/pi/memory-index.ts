import type { IndexEntry, SessionIndex } from '../../../src/runtime/store/session-index.ts';

/** An index that lives as long as the test. */
export function memoryIndex(): SessionIndex {
  const scopes = new Map<string, Map<string, IndexEntry>>();
  const scopeOf = (scope: string) => {
    const known = scopes.get(scope) ?? new Map<string, IndexEntry>();
    scopes.set(scope, known);
    return known;
  };
  return {
    load: scopeOf,
    stage: (scope, path, entry) => void scopeOf(scope).set(path, entry),
    prune: () => {},
    flush: () => {},
    close: () => {},
  };
}
