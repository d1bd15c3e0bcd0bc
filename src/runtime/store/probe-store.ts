/**
 * The probe cache on disk: versions of binaries, the login shell's PATH (V4).
 *
 * One item of a private storage, read once for a command. The session index would be the other place and costs
 * the same (compiled, 30 entries: 1.3 to 1.7 ms here, 1.2 to 1.6 ms there), but probes outlive a corrupt index,
 * are not locked by a list that is being written, and can be read and deleted by hand.
 */
import { join } from 'node:path';
import type { Storage } from 'unstorage';
import type { ProbeCache } from '../process/probe-cache.ts';
import { privateStorage } from './private-driver.ts';

/** Folder in the connector home for what may be deleted at any time. */
export const CACHE_FOLDER = 'cache';
/** File in that folder. */
export const PROBE_FILE = 'probes.json';
/** The most entries that are kept; a key names a file with its time, so old ones are never asked for again. */
export const PROBE_ENTRIES = 400;

/** Opens the cache of a connector home. Creates nothing until something is stored; never throws. */
export function openProbeCache(home: string): ProbeCache {
  return probeCacheOver(privateStorage({ base: join(home, CACHE_FOLDER), durable: false }));
}

/** The cache over any storage. */
export function probeCacheOver(storage: Storage): ProbeCache {
  const own = new Map<string, unknown>();
  let loaded: Promise<Map<string, unknown>> | undefined;
  let writing: Promise<void> = Promise.resolve();

  const write = async (): Promise<void> => {
    // Read again, since another process may have stored its own probes meanwhile.
    const entries = await load(storage);
    for (const [key, value] of own) {
      entries.delete(key);
      entries.set(key, value);
    }
    const kept = [...entries].slice(-PROBE_ENTRIES);
    try {
      await storage.setItem(PROBE_FILE, JSON.stringify(Object.fromEntries(kept)));
    } catch {
      // Without a writable home there is no cache: the next command probes again.
    }
  };

  return {
    async get(key) {
      if (own.has(key)) return own.get(key);
      loaded ??= load(storage);
      return (await loaded).get(key);
    },
    async set(key, value) {
      const text = JSON.stringify(value);
      if (text === undefined) return;
      own.set(key, JSON.parse(text));
      // Probes end at the same time: one after another, each write holds what was set by then.
      writing = writing.then(write);
      await writing;
    },
  };
}

async function load(storage: Storage): Promise<Map<string, unknown>> {
  try {
    const text = await storage.getItemRaw(PROBE_FILE);
    const stored: unknown = JSON.parse(String(text));
    if (typeof stored !== 'object' || stored === null || Array.isArray(stored)) return new Map();
    return new Map(Object.entries(stored));
  } catch {
    // Unreadable or no JSON: a cache that cannot be used is an empty one, and the next write replaces it.
    return new Map();
  }
}
