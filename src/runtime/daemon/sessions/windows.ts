import { SESSIONS } from '../../limits.ts';
import type { AwakeClock } from '../clock.ts';
import type { ServiceLog } from '../log.ts';
import type { Source, WindowReport } from '../vocabulary.ts';

interface Window {
  readonly key: string;
  folders: readonly string[];
  embeds: boolean;
  lastActive: number;
  /** Order of the key's first registration; a refresh never moves it (S-205). */
  readonly registeredAt: number;
}

/** The editor windows that reported themselves, and which sessions they show (S-205 … S-209). */
export interface Windows {
  /** Takes a report in; true when a subscriber would see a change (S-120). Reaps first. */
  report(report: WindowReport): boolean;
  /** Removes one; whether it was there. */
  remove(key: string): boolean;
  /** Forgets what was silent for too long; how many (S-202). */
  reap(): number;
  /** Where a session with this folder is shown (S-206). */
  sourceOf(cwd: string | undefined): Source;
  /** The first folder of the window that shows it (S-208); `undefined` for a terminal. */
  folderOf(cwd: string | undefined): string | undefined;
  /** Gives back time in which windows could not be heard (S-209). */
  credit(ms: number): void;
  readonly size: number;
}

export interface WindowsOptions {
  readonly clock: AwakeClock;
  readonly log: ServiceLog;
  readonly platform: NodeJS.Platform;
}

export function createWindows(options: WindowsOptions): Windows {
  const { clock, log, platform } = options;
  const windows = new Map<string, Window>();

  const reap = (): number => {
    const now = clock.awakeMs();
    const old = [...windows.values()].filter((window) => now - window.lastActive > SESSIONS.windowTtlMs);
    for (const { key } of old) {
      windows.delete(key);
      log('trace', 'session_window_reaped', { key, reason: 'window_ttl' });
    }
    if (old.length > 0) log('debug', 'session_windows_reaped', { count: old.length });
    return old.length;
  };

  const evictIfFull = (): void => {
    if (windows.size < SESSIONS.windows) return;
    const oldest = quietest([...windows.values()], (window) => window.key);
    if (!oldest) return;
    windows.delete(oldest.key);
    log('debug', 'session_window_evicted', { key: oldest.key, reason: 'capacity' });
  };

  const winner = (cwd: string | undefined): Window | undefined => {
    if (cwd === undefined) {
      log('trace', 'session_attribution_miss', { reason: 'missing_cwd' });
      return undefined;
    }
    const path = components(cwd, platform);
    const candidates = [...windows.values()]
      .filter((window) => window.embeds)
      .map((window) => ({ window, depth: matchDepth(path, window.folders, platform) }))
      .filter(({ depth }) => depth >= 0)
      .sort(
        (a, b) =>
          b.depth - a.depth ||
          b.window.registeredAt - a.window.registeredAt ||
          (a.window.key < b.window.key ? -1 : 1),
      );
    if (candidates.length === 0 && windows.size > 0) {
      log('debug', 'session_attribution_miss', { cwd, windows: windows.size });
      log('trace', 'session_attribution_candidates', {
        folders: [...windows.values()].flatMap((w) => w.folders).join(' '),
      });
    }
    return candidates[0]?.window;
  };

  return {
    report(report) {
      const reaped = reap();
      const known = windows.get(report.key);
      const now = clock.awakeMs();
      const embeds = report.tabs > 0 || report.terminals > 0;
      if (!known) {
        evictIfFull();
        windows.set(report.key, {
          key: report.key,
          folders: report.folders,
          embeds,
          lastActive: now,
          registeredAt: now,
        });
        log('debug', 'session_window_reported', { key: report.key, outcome: 'registered', bumped: true });
        return true;
      }
      const changed = embeds !== known.embeds || !sameList(known.folders, report.folders);
      const outcome = embeds === known.embeds ? 'refresh' : 'embedding_changed';
      Object.assign(known, { folders: report.folders, embeds, lastActive: now });
      log('debug', 'session_window_reported', { key: report.key, outcome, bumped: changed || reaped > 0 });
      return changed || reaped > 0;
    },
    remove(key) {
      reap();
      const removed = windows.delete(key);
      log('debug', 'session_window_unregistered', { key, removed });
      return removed;
    },
    reap,
    sourceOf(cwd) {
      const window = winner(cwd);
      return window ? { kind: 'vs_code', window_key: window.key } : { kind: 'terminal' };
    },
    folderOf: (cwd) => winner(cwd)?.folders[0],
    credit(ms) {
      const now = clock.awakeMs();
      for (const window of windows.values()) window.lastActive = Math.min(now, window.lastActive + ms);
    },
    get size() {
      return windows.size;
    },
  };
}

/** What was active longest ago; of equals the lowest name (S-203). */
export function quietest<T extends { readonly lastActive: number }>(
  items: readonly T[],
  name: (item: T) => string,
): T | undefined {
  return items.reduce<T | undefined>((best, item) => {
    if (!best || item.lastActive < best.lastActive) return item;
    return item.lastActive === best.lastActive && name(item) < name(best) ? item : best;
  }, undefined);
}

/** Pure text: links are not resolved, and case counts except on Windows (S-206). */
function components(path: string, platform: NodeJS.Platform): readonly string[] {
  const parts = platform === 'win32' ? path.toLowerCase().split(/[\\/]/) : path.split('/');
  return parts.filter((part) => part !== '');
}

/** Components of the longest folder that is the path or above it; -1 when none is. */
function matchDepth(path: readonly string[], folders: readonly string[], platform: NodeJS.Platform): number {
  const depths = folders
    .map((folder) => components(folder, platform))
    .filter((folder) => folder.every((part, index) => part === path[index]))
    .map((folder) => folder.length);
  return Math.max(-1, ...depths);
}

function sameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((item, index) => item === b[index]);
}
