import type { Line } from '../../runtime/files/jsonl.ts';
import { neverCompileTwice } from '../../runtime/process/compile-policy.ts';
import { type Row, readRow } from './rows.ts';

/** Bytes that tell a row's kind: before an attachment stand only two short keys. */
const KIND_BYTES = 160;

/** Notes of the program that say nothing about a state and stand at the end of most files. */
const QUIET_NOTE = /"subtype": ?"(stop_hook_summary|local_command|informational|compact_boundary)"/;

/** What is known of a line; looked up more than once by those who read a file's two ends. */
class Look {
  readonly kind: string;
  row: Row | undefined = undefined;

  constructor(kind: string) {
    this.kind = kind;
  }
}

const NOTHING: Row = { kind: 'other' };

function lookAt(line: Line): Look {
  if (line.memo instanceof Look) return line.memo;
  const look = new Look(readKind(line));
  line.memo = look;
  return look;
}

/**
 * What kind of row a line is, from its first bytes: the `type` of a metadata row, `attachment`, or
 * `conversation` for all that has to be parsed. Attachments and request copies of 100 KB and more stand
 * between the conversation rows of 2.1.332, and parsing them would cost most of a list.
 */
export function kindOf(line: Line): string {
  return lookAt(line).kind;
}

const OPENS = '{'.charCodeAt(0);
const CLOSES = '}'.charCodeAt(0);
const T = 't'.charCodeAt(0);
const SPACE = ' '.charCodeAt(0);
/** First letters of the types that anybody asks for; the many other kinds are not even spelt out. */
const INTERESTING = new Set([...'acqus'].map((letter) => letter.charCodeAt(0)));
const TYPE_AT = '{"type":"'.length;
const TYPE_BYTES = 32;

function readKind(line: Line): string {
  // What is plainly no object is parsed like a row of weight, so that it is counted as malformed.
  if (line.byteAt(0) !== OPENS || line.byteAt(line.size - 1) !== CLOSES) return 'conversation';
  // Metadata rows begin with their type, conversation rows with their parent.
  if (line.byteAt(2) === T) return typeOf(line);
  const start = line.prefix(KIND_BYTES);
  if (start.includes('"attachment":')) return 'attachment';
  return QUIET_NOTE.test(start) ? 'system' : 'conversation';
}

function typeOf(line: Line): string {
  // A blank stands after the colon where another program has written the row again.
  const from = line.byteAt(TYPE_AT - 1) === SPACE ? TYPE_AT + 1 : TYPE_AT;
  if (!INTERESTING.has(line.byteAt(from) ?? 0)) return 'metadata';
  const start = line.prefix(TYPE_BYTES);
  if (!start.startsWith('{"type":')) return 'conversation';
  const type = start.slice(from, start.indexOf('"', from));
  return type === 'user' || type === 'assistant' || type === 'system' ? 'conversation' : type;
}

/** The row of a line; metadata is not parsed. What is malformed changes nothing, and the reader counts it. */
export function rowOf(line: Line): Row {
  const look = lookAt(line);
  if (look.row) return look.row;
  const wanted = look.kind === 'conversation' || isTitleKind(look.kind);
  const row = (wanted ? readRow(line.record) : undefined) ?? NOTHING;
  look.row = row;
  return row;
}

neverCompileTwice(lookAt, readKind, typeOf, rowOf);

/** Rows that carry a title. */
export function isTitleKind(kind: string): boolean {
  return kind === 'custom-title' || kind === 'ai-title';
}
