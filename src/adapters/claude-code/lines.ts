import type { Line } from '../../runtime/files/jsonl.ts';
import { type Row, readRow } from './rows.ts';

/** Bytes that tell a row's kind: before an attachment stand only two short keys. */
const KIND_BYTES = 160;

/** Notes of the program that say nothing about a state and stand at the end of most files. */
const QUIET_NOTE = /"subtype": ?"(stop_hook_summary|local_command|informational|compact_boundary)"/;

/**
 * What kind of row a line is, from its first bytes: the `type` of a metadata row, `attachment`, or
 * `conversation` for all that has to be parsed. Attachments and request copies of 100 KB and more stand
 * between the conversation rows of 2.1.332, and parsing them would cost most of a list.
 */
export function kindOf(line: Line): string {
  const start = line.prefix(KIND_BYTES);
  if (!start.startsWith('{"type"')) {
    if (start.includes('"attachment":')) return 'attachment';
    return QUIET_NOTE.test(start) ? 'system' : 'conversation';
  }
  const from = start.indexOf('"', 7) + 1;
  const type = start.slice(from, start.indexOf('"', from));
  return type === 'user' || type === 'assistant' || type === 'system' ? 'conversation' : type;
}

const known = new WeakMap<Line, Row>();
const NOTHING: Row = { kind: 'other' };

/** The row of a line; metadata is not parsed. What is malformed changes nothing, and the reader counts it. */
export function rowOf(line: Line): Row {
  const before = known.get(line);
  if (before) return before;
  const kind = kindOf(line);
  const wanted = kind === 'conversation' || isTitleKind(kind);
  const row = (wanted ? readRow(line.record) : undefined) ?? NOTHING;
  known.set(line, row);
  return row;
}

/** Rows that carry a title. */
export function isTitleKind(kind: string): boolean {
  return kind === 'custom-title' || kind === 'ai-title';
}
