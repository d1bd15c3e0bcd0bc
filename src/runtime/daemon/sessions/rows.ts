import { WIRE } from '../../limits.ts';
import { formatSeconds } from '../stamp.ts';
import type { Row, Source, WireState } from '../vocabulary.ts';
import type { Entry } from './entry.ts';

/** One public row; absent optionals are left out, hidden fields never stand in it (S-002, S-004). */
export function rowOf(entry: Readonly<Entry>, state: WireState, source: Source): Row {
  return {
    session_id: entry.id,
    agent: entry.agent,
    state,
    ...(entry.cwd === undefined ? {} : { cwd: entry.cwd }),
    ...(entry.repo === undefined ? {} : { repo: entry.repo }),
    ...(entry.transcriptPath === undefined ? {} : { transcript_path: entry.transcriptPath }),
    ...(entry.model === undefined ? {} : { model: entry.model }),
    source,
    last_event: entry.lastEvent,
    started_at: formatSeconds(entry.startedAt),
    last_seen: formatSeconds(entry.lastSeen),
  };
}

/** Rows without a repository first, then by repository, then by id; by code unit, never by locale (S-012). */
export function sortRows(rows: readonly Row[]): readonly Row[] {
  return [...rows].sort((a, b) => compare(a.repo ?? '', b.repo ?? '') || compare(a.session_id, b.session_id));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Name of a row for people: repository, else last part of the folder, else the first eight of the id (S-010). */
export function displayName(row: Pick<Row, 'repo' | 'cwd' | 'session_id'>): string {
  const base = row.cwd
    ?.split(/[\\/]/)
    .filter((part) => part !== '')
    .at(-1);
  return row.repo ?? base ?? row.session_id.slice(0, 8);
}

/** How many rows are in each bucket (S-011); a session that nobody has prompted is not busy. */
export function countStates(rows: readonly Pick<Row, 'state'>[]): {
  readonly working: number;
  readonly waiting: number;
  readonly idle: number;
} {
  const working = rows.filter(({ state }) => state === 'working').length;
  const waiting = rows.filter(({ state }) => state.startsWith('waiting_')).length;
  return { working, waiting, idle: rows.length - working - waiting };
}

/** The line of `status` (S-341, C-354). */
export function summaryOf(rows: readonly Pick<Row, 'state'>[]): string {
  if (rows.length === 0) return '0 session(s)';
  const { working, waiting, idle } = countStates(rows);
  return `${rows.length} session(s): ${working} working, ${waiting} waiting, ${idle} idle`;
}

export interface ListBody {
  readonly sessions: readonly Row[];
  /** Only when rows had to be left out for the line limit. */
  readonly truncated?: { readonly shown: number; readonly total: number };
}

/** Bytes that a reply's envelope may take beside its rows. */
const ENVELOPE_BYTES = 1_024;

/**
 * Rows that fit on one line (S-304). Ordinary rows always do; with extreme paths transcript paths go first, then
 * the rows that were quiet longest, and `truncated` says so.
 */
export function fitRows(rows: readonly Row[], ceiling: number = WIRE.lineBytes): ListBody {
  const room = ceiling - ENVELOPE_BYTES;
  if (roughBytes(rows) <= room) return { sessions: rows };
  const exact = (some: readonly Row[]): number => Buffer.byteLength(JSON.stringify(some));
  if (exact(rows) <= room) return { sessions: rows };
  const short = rows.map(({ transcript_path: _left, ...row }): Row => row);
  if (exact(short) <= room) return { sessions: short };
  const kept = new Set<Row>();
  const byRecency = [...short].sort((a, b) => compare(b.last_seen, a.last_seen));
  let used = 2;
  for (const row of byRecency) {
    used += exact([row]);
    if (used > room) break;
    kept.add(row);
  }
  const sessions = short.filter((row) => kept.has(row));
  return { sessions, truncated: { shown: sessions.length, total: rows.length } };
}

/** An upper bound without encoding: JSON makes at most six bytes of a UTF-16 unit; the other fields are short. */
function roughBytes(rows: readonly Row[]): number {
  return rows.reduce((sum, row) => sum + 1_024 + 6 * longChars(row), 0);
}

function longChars(row: Row): number {
  const key = row.source.kind === 'vs_code' ? row.source.window_key : '';
  return [row.session_id, row.cwd, row.repo, row.model, row.transcript_path, key]
    .map((text) => text?.length ?? 0)
    .reduce((sum, length) => sum + length, 0);
}
