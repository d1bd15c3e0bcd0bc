import type { History, HistoryBounds, HistoryEntry } from '../../runtime/feed.ts';
import type { FileSystemPort } from '../../runtime/files/file-system.ts';
import { createFileReader } from '../../runtime/files/head-tail.ts';
import { redact } from '../../runtime/session/redact.ts';
import { clip, oneLine } from '../../runtime/session/text.ts';
import type { Entry } from './entries.ts';
import { entriesOf } from './transcript.ts';
import { branchOf } from './turn.ts';

const NOTHING: History = { entries: [], more: false, skipped: 0 };
const TOOL_LABEL = 200;
/** One entry takes at most this share of all bytes, so that one long answer does not push out the rest. */
const ENTRY_SHARE = 0.5;

/** The newest entries of the file's branch, oldest first, cleaned and masked, within the bounds. */
export function readHistory(files: FileSystemPort, path: string, bounds: HistoryBounds): History {
  const reader = createFileReader(files);
  const result = reader.read(path, (file) => {
    const tail = file.tail({ enough: (lines) => branchOf(entriesOf(lines)).length > bounds.entries * 2 });
    return { newestFirst: branchOf(entriesOf(tail.lines)), whole: tail.whole };
  });
  if (result.kind !== 'read') return NOTHING;
  const { malformed, oversized, nulBlocks } = reader.counts;
  return {
    ...collect(result.value.newestFirst, result.value.whole, bounds),
    skipped: malformed + oversized + nulBlocks,
  };
}

function collect(
  newestFirst: readonly Entry[],
  whole: boolean,
  bounds: HistoryBounds,
): Omit<History, 'skipped'> {
  const kept: HistoryEntry[] = [];
  let bytes = 0;
  for (const entry of newestFirst.flatMap((one) => entriesFrom(one).toReversed())) {
    const bounded = cutTo(entry, Math.floor(bounds.bytes * ENTRY_SHARE));
    const size = Buffer.byteLength(bounded.text);
    if (kept.length >= bounds.entries || bytes + size > bounds.bytes)
      return { entries: kept.reverse(), more: true };
    kept.push(bounded);
    bytes += size;
  }
  return { entries: kept.reverse(), more: !whole };
}

function entriesFrom(entry: Entry): readonly HistoryEntry[] {
  const time = entry.at === undefined ? {} : { at: entry.at };
  if (entry.kind === 'user') return said('user', entry.text, time);
  if (entry.kind !== 'assistant') return [];
  const { tool } = entry;
  const about = tool && (tool.command ?? tool.path ?? tool.pattern);
  const label = tool && (about ? `${tool.name}: ${clip(oneLine(about), TOOL_LABEL)}` : tool.name);
  return [
    ...said('assistant', entry.text, time),
    ...(label ? said('tool', label, time) : []),
    ...(entry.error ? said('system', entry.error, time) : []),
  ];
}

function said(
  role: HistoryEntry['role'],
  raw: string,
  time: { readonly at?: number },
): readonly HistoryEntry[] {
  const lines = raw.split(/\r\n|\r|\n/).map((line) => {
    const indent = /^[ \t]*/.exec(line)?.[0].replaceAll('\t', '  ') ?? '';
    return (indent + oneLine(line)).trimEnd();
  });
  const text = redact(lines.join('\n').replace(/\n{3,}/g, '\n\n')).trim();
  return text === '' ? [] : [{ role, text, ...time }];
}

function cutTo(entry: HistoryEntry, limit: number): HistoryEntry {
  if (Buffer.byteLength(entry.text) <= limit) return entry;
  const mark = '…';
  const bytes = Buffer.from(entry.text).subarray(0, Math.max(0, limit - Buffer.byteLength(mark)));
  // A character that was cut in two decodes to a replacement character at the end.
  return { ...entry, text: bytes.toString('utf8').replace(/\ufffd$/, '') + mark, cut: true };
}
