import { statSync } from 'node:fs';
import { every, type Scheduler } from '../daemon/clock.ts';
import { CONFIG } from '../limits.ts';
import { configPathIn } from './path.ts';
import { type ReadConfig, readConfig } from './read.ts';

/** The settings as they are now, for a process that lives on. */
export interface LiveConfig {
  current(): ReadConfig;
  /** Calls back after the file was read anew; returns the function that ends it. */
  onChange(listener: () => void): () => void;
  /** Looks now instead of at the next round. */
  look(): void;
  stop(): void;
}

/**
 * Follows `config.json`. One `stat` every two seconds rather than a notification: the connector home is a busy folder
 * (index, journals, log), and whoever saves a setting waits two seconds gladly. A file that has become invalid takes
 * the former settings away, as it would at a start.
 */
export function followConfig(home: string, scheduler: Scheduler): LiveConfig {
  const path = configPathIn(home);
  const listeners = new Set<() => void>();
  const state = { mark: markOf(path), read: readConfig(home) };
  const look = (): void => {
    const mark = markOf(path);
    if (mark === state.mark) return;
    state.mark = mark;
    state.read = readConfig(home);
    for (const listener of listeners) listener();
  };
  const stop = every(scheduler, CONFIG.lookMs, look);
  return {
    current: () => state.read,
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    look,
    stop,
  };
}

/** Changes whenever the file does: every writer that saves whole files gives them a new inode or time. */
function markOf(path: string): string {
  try {
    const { mtimeMs, ctimeMs, size, ino } = statSync(path);
    return `${mtimeMs}:${ctimeMs}:${size}:${ino}`;
  } catch {
    // No file, or none that we may see: it has no mark, and reading it says why.
    return 'none';
  }
}
