import { watch } from 'node:fs';
import { errorCode } from './file-system.ts';

/** What the system says of a watched folder. */
export interface WatchListener {
  /**
   * `entry`: something was made, removed or renamed; `content`: written to. `name` is relative to the folder
   * (with separators where the watch is recursive), absent where the system does not say.
   */
  event(kind: 'entry' | 'content', name: string | undefined): void;
  /** The watch is dead. */
  error(code: string): void;
}

/** File notification of the system. */
export interface WatchPort {
  /** Whether one recursive watch costs one handle (macOS, Windows), and not one for every folder (Linux). */
  readonly recursive: boolean;
  /** Throws the system's error (`ENOSPC`: too many watches, `EMFILE`: too many watchers). */
  watch(folder: string, recursive: boolean, listener: WatchListener): { close(): void };
}

/**
 * `fs.watch` of Bun. On Linux its recursive form adds a watch for every folder below (Bun 1.4.5: 10,101 watches
 * and 60 ms for 5,000 project folders with their sub-agents' folders; one per project folder: a third of it),
 * so there folders are watched one by one, no deeper than they are needed.
 */
export function systemWatch(platform: NodeJS.Platform = process.platform): WatchPort {
  return {
    recursive: platform === 'darwin' || platform === 'win32',
    watch(folder, recursive, listener) {
      const watcher = watch(folder, { recursive }, (kind, name) => {
        listener.event(kind === 'rename' ? 'entry' : 'content', name ?? undefined);
      });
      watcher.on('error', (error) => listener.error(errorCode(error)));
      return watcher;
    },
  };
}
