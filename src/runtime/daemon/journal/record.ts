import { dirname, join } from 'node:path';
import { parseNanos } from '../stamp.ts';
import {
  type Agent,
  type End,
  isUuid,
  type Observe,
  readEvent,
  STOP_OUTCOMES,
  type StopOutcome,
  type WireEvent,
} from '../vocabulary.ts';

/**
 * What a hook journal holds: one JSON object per line, what the hook sink would also have posted (S-501 … S-510).
 * Ids, paths, model ids, pids and event kinds; never a prompt, an input, an answer or a message (S-502, S-903).
 * No dependencies beyond `node:path`: the sink imports this file.
 */

/** Agents that have hooks and therefore journals (S-501). */
export type JournalAgent = Exclude<Agent, 'pi'>;
export const JOURNAL_AGENTS: readonly JournalAgent[] = ['claude', 'codex'];

interface RecordBase {
  /** RFC 3339 with nanoseconds, and the event's number: its stamp (S-009). */
  readonly ts: string;
  readonly seq: string;
  readonly agent: JournalAgent;
  readonly session_id: string;
  readonly pid?: number;
}

export interface ObserveRecord extends RecordBase {
  readonly op: 'observe';
  readonly event: WireEvent;
  readonly cwd?: string;
  readonly agent_id?: string;
  readonly transcript_path?: string;
  readonly model?: string;
  readonly outcome?: StopOutcome;
  readonly background?: number;
}

export interface EndRecord extends RecordBase {
  readonly op: 'end';
  readonly reason?: string;
}

export type JournalRecord = ObserveRecord | EndRecord;

/** The newest form of a line that we write and read. */
const VERSION = 1;
/** How every line of ours begins. */
export const RECORD_BEGIN = `{"v":${VERSION},`;

/**
 * The folder that only the service makes: while it is missing no journal is written, so a computer on which
 * the service never ran collects no files (S-505).
 */
export function runFolder(socketPath: string): string {
  return join(dirname(socketPath), 'run');
}

/** Where the journals of one agent lie (S-501, R-39). */
export function journalFolder(socketPath: string, agent: JournalAgent): string {
  return join(runFolder(socketPath), 'sessions', agent);
}

/** File name of a session's journal; `undefined` for an id that may not name a file (S-504, S-906). */
export function journalName(sessionId: string): string | undefined {
  return isUuid(sessionId) ? `${sessionId.toLowerCase()}.jsonl` : undefined;
}

/** The session id in a journal's file name; `undefined` for any other name (S-520). */
export function idOfName(name: string): string | undefined {
  const id = name.endsWith('.jsonl') ? name.slice(0, -'.jsonl'.length) : '';
  return isUuid(id) && id === id.toLowerCase() ? id : undefined;
}

/** A record as its line, with the line end (S-502). */
export function formatRecord(record: JournalRecord): string {
  const { ts, seq, agent, session_id, op, ...rest } = record;
  return `${JSON.stringify({ v: VERSION, ts, seq, agent, session_id, op, ...rest })}\n`;
}

/**
 * Reads one line; `undefined` for junk, a newer version, another session's or agent's record, and a time that is
 * none (S-510). Unknown fields are ignored, best-effort fields of a wrong type are left out.
 */
export function readRecord(value: unknown, agent: JournalAgent, id: string): JournalRecord | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const fields: Readonly<Record<string, unknown>> = { ...value };
  const ts = textOf(fields['ts']);
  const seq = textOf(fields['seq']);
  const session_id = textOf(fields['session_id']);
  if (fields['v'] !== VERSION || fields['agent'] !== agent || session_id?.toLowerCase() !== id)
    return undefined;
  if (ts === undefined || seq === undefined || parseNanos(ts) === undefined) return undefined;
  const pid = fields['pid'];
  const base = { ts, seq, agent, session_id, ...(isPid(pid) ? { pid } : {}) };
  if (fields['op'] === 'end') return { ...base, op: 'end', ...optional('reason', textOf(fields['reason'])) };
  const event = fields['op'] === 'observe' ? readEvent(fields['event']) : undefined;
  if (event === undefined) return undefined;
  const background = fields['background'];
  return {
    ...base,
    op: 'observe',
    event,
    ...optional('cwd', textOf(fields['cwd'])),
    ...optional('agent_id', textOf(fields['agent_id'])),
    ...optional('transcript_path', textOf(fields['transcript_path'])),
    ...optional('model', textOf(fields['model'])),
    ...optional(
      'outcome',
      STOP_OUTCOMES.find((outcome) => outcome === fields['outcome']),
    ),
    ...optional('background', typeof background === 'number' && background > 0 ? background : undefined),
  };
}

function optional<Name extends string, T>(name: Name, value: T | undefined): Partial<Record<Name, T>> {
  const fields: Partial<Record<Name, T>> = {};
  if (value !== undefined) fields[name] = value;
  return fields;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined;
}

function isPid(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 1;
}

/** The payload of the operation that a record stands for (S-312, S-313). Claude is the default and left out (S-005). */
export function payloadOf(record: ObserveRecord): Observe;
export function payloadOf(record: EndRecord): End;
export function payloadOf(record: JournalRecord): Observe | End;
export function payloadOf(record: JournalRecord): Observe | End {
  const { ts, seq, agent, op, ...fields } = record;
  const tagged = op === 'observe' && agent !== 'claude' ? { agent } : {};
  return { ...fields, ...tagged, stamp: { ts, seq } };
}

/** Order of a replay: by time, then by number (S-521). */
export function byStamp(a: JournalRecord, b: JournalRecord): number {
  const difference = (parseNanos(a.ts) ?? 0n) - (parseNanos(b.ts) ?? 0n);
  if (difference !== 0n) return difference < 0n ? -1 : 1;
  return a.seq < b.seq ? -1 : a.seq > b.seq ? 1 : 0;
}
