import type { LogFields, ServiceLog } from '../log.ts';

/** What became of everything that could be dropped, by gate and outcome. Read by `daemon status`. */
export interface Counters {
  /** A log that counts what passes through it, whatever its level, and hands it on. */
  wrap(log: ServiceLog): ServiceLog;
  add(name: string, count?: number): void;
  all(): Readonly<Record<string, number>>;
}

/** Events whose outcome is worth a counter (S-931 … S-937), and the field that names it. */
const COUNTED: Readonly<Record<string, string>> = {
  session_observed: 'outcome',
  session_end: 'outcome',
  session_evicted: 'reason',
  session_reaped: 'reason',
  session_process_ended: '',
  session_window_reported: 'outcome',
  session_journal_rejected: 'reason',
  session_journal_removed: 'reason',
  session_journal_compacted: '',
  session_journal_replayed: '',
  watcher_failed: 'watcher',
};

/** Counters that all start at nothing. */
export function createCounters(): Counters {
  const counts = new Map<string, number>();
  const add = (name: string, count = 1): void => {
    counts.set(name, (counts.get(name) ?? 0) + count);
  };
  return {
    add,
    wrap: (log) => (level, event, fields) => {
      const name = nameOf(event, fields);
      if (name !== undefined) add(name);
      log(level, event, fields);
    },
    all: () => Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1))),
  };
}

function nameOf(event: string, fields: LogFields | undefined): string | undefined {
  const field = COUNTED[event];
  if (field === undefined) return undefined;
  const outcome = field === '' ? undefined : fields?.[field];
  return outcome === undefined ? event : `${event}.${outcome}`;
}
