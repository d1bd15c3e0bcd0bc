import { splitLines } from '../../files/jsonl.ts';
import { JOURNAL } from '../../limits.ts';
import type { JournalFiles, JournalStat } from './files.ts';
import { type JournalAgent, type JournalRecord, RECORD_BEGIN, readRecord } from './record.ts';

/** A record with the text of its line. */
export interface PlacedRecord {
  readonly record: JournalRecord;
  readonly text: string;
  /** Offset of its first byte. */
  readonly start: number;
}

export interface JournalRead {
  readonly records: readonly PlacedRecord[];
  /** Offset just past the last whole line: where the next read begins (S-525). */
  readonly next: number;
  /** Whole lines that hold no usable record (S-510). */
  readonly skipped: number;
  /** Bytes of a backlog that were too many to be read (S-527). */
  readonly cutBytes: number;
  readonly stat: JournalStat;
}

/**
 * The usable records from an offset on. Whole lines only: an unfinished last line is left for a later read (S-525).
 * A backlog over the bound is read from its tail, without the line that the cut lands in (S-527). Throws what the
 * file system throws.
 */
export function readJournal(
  files: JournalFiles,
  path: string,
  whose: { readonly agent: JournalAgent; readonly id: string },
  from: number,
): JournalRead {
  const size = files.stat(path)?.size ?? 0;
  const start = Math.max(from, size - JOURNAL.readBytes);
  const { bytes, stat } = files.read(path, start, JOURNAL.readBytes);
  const { lines, committed } = splitLines(bytes, { start });
  const whole = start > from ? lines.slice(1) : lines;
  const records = whole.flatMap((line): PlacedRecord[] => {
    const text = untorn(line);
    const record = text && readRecord(parse(text), whose.agent, whose.id);
    return text && record ? [{ record, text, start: line.start }] : [];
  });
  const skipped = whole.length - records.length;
  return { records, next: committed, skipped, cutBytes: start - from, stat };
}

/**
 * The text of a line, without the beginning of another one that a full disk has cut before it: hooks must not lose
 * their line to the accident of an earlier one.
 */
function untorn(line: { readonly text: string }): string | undefined {
  if (parse(line.text) !== undefined) return line.text;
  const last = line.text.lastIndexOf(RECORD_BEGIN);
  return last > 0 ? line.text.slice(last) : undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Junk, or the torn end of a crash: no record (S-510).
    return undefined;
  }
}

/**
 * What is left of a journal after compaction (S-528): the records of the last part, cut forward to a line, with the
 * last prompt of the dropped part put first, so that a turn longer than the part still starts with its prompt.
 */
export function compacted(read: JournalRead, keepBytes: number = JOURNAL.keepBytes): string {
  const cut = read.next - keepBytes;
  const kept = read.records.filter(({ start }) => start >= cut);
  const prompt = read.records.findLast(({ start, record }) => start < cut && isPrompt(record));
  return [...(prompt ? [prompt] : []), ...kept].map(({ text }) => `${text}\n`).join('');
}

function isPrompt(record: JournalRecord): boolean {
  return record.op === 'observe' && record.event === 'user_prompt_submit' && record.agent_id === undefined;
}
