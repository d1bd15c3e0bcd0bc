import type { LogFields, ServiceLog } from '../log.ts';

/** What became of everything that could be dropped, by gate and outcome. Read by `daemon status`. */
export interface Counters {
  /** A log that counts what passes through it, whatever its level, and hands it on. */
  wrap(log: ServiceLog): ServiceLog;
  add(name: string, count?: number): void;
  all(): Readonly<Record<string, number>>;
}

/** Events whose outcome is worth a counter (S-931 … S-938), and the field that names it. */
const COUNTED: Readonly<Record<string, string>> = {
  session_observed: 'outcome',
  session_end: 'outcome',
  session_evicted: 'reason',
  session_reaped: 'reason',
  session_process_ended: '',
  session_window_reported: 'outcome',
  session_window_unregistered: '',
  session_window_evicted: '',
  session_journal_rejected: 'reason',
  session_journal_removed: 'reason',
  session_journal_compacted: '',
  session_journal_replayed: '',
  session_journal_failed: '',
  sighting_dropped: 'gate',
  request_rejected: '',
  connection_stalled: '',
  subscription_ended: 'reason',
  watcher_failed: 'watcher',
  message_delivery: 'outcome',
};

/** By which way an event came that was applied (S-530). */
const ROUTES: Readonly<Record<string, string>> = {
  socket: 'socket',
  journal: 'recovered',
  replay: 'replayed',
};
/** Events from journals whose copy by the socket may still come. */
const AWAITED = 1_024;

/** Counters that all start at nothing. */
export function createCounters(): Counters {
  const counts = new Map<string, number>();
  const recovered = new Set<string>();
  const add = (name: string, count = 1): void => {
    counts.set(name, (counts.get(name) ?? 0) + count);
  };

  /** A journal copy that was only faster than its socket copy was not recovered after all (S-530, C-384). */
  const addRoute = ({ origin, outcome, seq }: LogFields): void => {
    const route = ROUTES[String(origin)];
    if (route === undefined) return;
    if (isApplied(String(outcome))) {
      add(`delivered.${route}`);
      if (route !== 'recovered' || seq === undefined) return;
      recovered.add(String(seq));
      const [oldest] = recovered.size > AWAITED ? recovered : [];
      if (oldest !== undefined) recovered.delete(oldest);
    } else if (route === 'socket' && outcome === 'duplicate_ignored' && recovered.delete(String(seq))) {
      add('delivered.socket');
      add('delivered.recovered', -1);
    }
  };

  return {
    add,
    wrap: (log) => (level, event, fields) => {
      const name = nameOf(event, fields);
      if (name !== undefined) add(name, event === 'sighting_dropped' ? Number(fields?.['count'] ?? 1) : 1);
      if (fields && (event === 'session_observed' || event === 'session_end')) addRoute(fields);
      log(level, event, fields);
    },
    all: () => Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1))),
  };
}

function isApplied(outcome: string): boolean {
  return !outcome.endsWith('_ignored') && outcome !== 'unknown' && outcome !== 'already_ended';
}

function nameOf(event: string, fields: LogFields | undefined): string | undefined {
  const field = COUNTED[event];
  if (field === undefined) return undefined;
  const outcome = field === '' ? undefined : fields?.[field];
  return outcome === undefined ? event : `${event}.${outcome}`;
}
