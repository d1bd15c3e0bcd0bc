import type { History, HistoryBounds, HistoryEntry } from '../../runtime/feed.ts';
import type { FileSystemPort } from '../../runtime/files/file-system.ts';
import { createFileReader, TAIL_CAP } from '../../runtime/files/head-tail.ts';
import type { Line } from '../../runtime/files/jsonl.ts';
import { redact } from '../../runtime/session/redact.ts';
import { clip, oneLine } from '../../runtime/session/text.ts';
import { kindOf } from './lines.ts';
import { promptText, readRow } from './rows.ts';
import { toolUseOf } from './tools.ts';
import { listOf, objectOf, textOf } from './values.ts';

const NOTHING: History = { entries: [], more: false, skipped: 0 };
/** One entry takes at most this share of all bytes, so that one long answer does not push out the rest. */
const ENTRY_SHARE = 0.5;

/**
 * The newest entries of a transcript, oldest first: what the user and the model wrote, and which tools were called.
 * Cleaned for a terminal, secrets masked, read from the end and no further back than the bounds ask for.
 */
export function readHistory(files: FileSystemPort, path: string, bounds: HistoryBounds): History {
  const reader = createFileReader(files);
  const result = reader.read(path, (file) => {
    const tail = file.tail({ enough: (lines) => countEntries(lines) > bounds.entries });
    return collect(tail.lines, tail.whole, bounds);
  });
  if (result.kind !== 'read') return NOTHING;
  const { malformed, oversized, nulBlocks } = reader.counts;
  return { ...result.value, skipped: malformed + oversized + nulBlocks };
}

/** The most of a file that is looked at for a history, bytes. */
export const HISTORY_TAIL_BYTES = TAIL_CAP;

function countEntries(lines: readonly Line[]): number {
  return lines.reduce((sum, line) => sum + (kindOf(line) === 'conversation' ? 1 : 0), 0);
}

function collect(lines: readonly Line[], whole: boolean, bounds: HistoryBounds): Omit<History, 'skipped'> {
  const newestFirst: HistoryEntry[] = [];
  let bytes = 0;
  for (const line of lines.toReversed()) {
    for (const entry of entriesOf(line).toReversed()) {
      const bounded = cutTo(entry, Math.floor(bounds.bytes * ENTRY_SHARE));
      const size = Buffer.byteLength(bounded.text);
      if (newestFirst.length >= bounds.entries || bytes + size > bounds.bytes) {
        return { entries: newestFirst.reverse(), more: true };
      }
      newestFirst.push(bounded);
      bytes += size;
    }
  }
  return { entries: newestFirst.reverse(), more: !whole };
}

function cutTo(entry: HistoryEntry, limit: number): HistoryEntry {
  if (Buffer.byteLength(entry.text) <= limit) return entry;
  const mark = '…';
  const bytes = Buffer.from(entry.text).subarray(0, Math.max(0, limit - Buffer.byteLength(mark)));
  // A character that was cut in two decodes to a replacement character at the end.
  return { ...entry, text: bytes.toString('utf8').replace(/\ufffd$/, '') + mark, cut: true };
}

function entriesOf(line: Line): readonly HistoryEntry[] {
  if (kindOf(line) !== 'conversation') return [];
  const row = readRow(line.record);
  if (!row || row.kind === 'title') return [];
  const time = row.at !== undefined ? { at: row.at } : {};
  const content = objectOf(objectOf(line.record)?.['message'])?.['content'];
  switch (row.kind) {
    case 'prompt':
      return entry('user', row.by === 'user' ? row.text : withoutTags(row.text), time);
    case 'assistant':
      return [...entry('assistant', promptText(content), time), ...toolEntries(content, time)];
    case 'api-error':
      return entry('system', row.text, time);
    case 'interrupt':
      return entry('system', 'interrupted by the user', time);
    default:
      return [];
  }
}

function toolEntries(content: unknown, time: { readonly at?: number }): readonly HistoryEntry[] {
  return listOf(content).flatMap((value) => {
    const block = objectOf(value);
    const use = block && toolUseOf(block);
    if (!use) return [];
    const { name, command, path, pattern } = use.tool;
    const about = command ?? path ?? pattern ?? textOf(objectOf(block['input'])?.['description']);
    return entry('tool', about ? `${name}: ${clip(oneLine(about), TOOL_LABEL)}` : name, time);
  });
}

const TOOL_LABEL = 200;

function entry(
  role: HistoryEntry['role'],
  raw: string,
  time: { readonly at?: number },
): readonly HistoryEntry[] {
  const text = cleanBlock(raw);
  return text === '' ? [] : [{ role, text, ...time }];
}

function withoutTags(text: string): string {
  return text.replace(/<\/?[a-z][a-z-]*>/g, ' ');
}

/** Text of several lines, each safe to print (O4), with secrets masked; at most one empty line in a row. */
function cleanBlock(raw: string): string {
  const lines = raw.split(/\r\n|\r|\n/).map(cleanLine);
  return redact(lines.join('\n').replace(/\n{3,}/g, '\n\n')).trim();
}

/** Keeps the indentation of code, which `oneLine` takes away. */
function cleanLine(line: string): string {
  const indent = /^[ \t]*/.exec(line)?.[0].replaceAll('\t', '  ') ?? '';
  return (indent + oneLine(line)).trimEnd();
}
