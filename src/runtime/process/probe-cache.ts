/**
 * Where facts about files are kept between commands. Declared here and filled by whoever owns the connector
 * home; values are plain JSON and are checked by the reader, since a file may have been changed by hand.
 */
export interface ProbeCache {
  /** The stored value; undefined when there is none or it can't be read. */
  readonly get: (key: string) => Promise<unknown>;
  /** Stores a JSON value. A failure to store is the cache's own matter and never thrown. */
  readonly set: (key: string, value: unknown) => Promise<void>;
}

/** A cache that lives as long as this process; values go through JSON, as those of a stored one do. */
export function memoryCache(): ProbeCache {
  const values = new Map<string, string>();
  return {
    get: async (key) => {
      const text = values.get(key);
      return text === undefined ? undefined : JSON.parse(text);
    },
    set: async (key, value) => {
      values.set(key, JSON.stringify(value));
    },
  };
}
