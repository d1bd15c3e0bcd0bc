import type { History, HistoryBounds, HistoryEntry } from '../../runtime/feed.ts';
import { type FileSystemPort, systemFiles } from '../../runtime/files/file-system.ts';
import { createFileReader } from '../../runtime/files/head-tail.ts';
import { type Line, type LineCounts, noCounts } from '../../runtime/files/jsonl.ts';
import { redact } from '../../runtime/session/redact.ts';
import type { SessionRef } from '../../runtime/session/session.ts';
import { clip, oneLine } from '../../runtime/session/text.ts';
import type { AdapterContext } from '../adapter.ts';
import { unpackLines } from './compressed.ts';
import { asFields, type Fields, listOf, objectOf, textOf } from './fields.ts';
import { codexHome } from './homes.ts';
import { isInherited } from './inherited.ts';
import type { SessionMeta } from './meta.ts';
import { isInjected, type RolloutRecord, toRecord } from './records.ts';
import { TURN_CAP } from './rollout.ts';
import { orderSegments, type RolloutFile } from './segments.ts';
import { contentText } from './tools.ts';
import { type FoundRollout, walkRollouts } from './walk.ts';

/** One entry takes at most this part of all bytes, so that one long answer does not push out the rest. */
const ENTRY_SHARE = 0.5;
const LABEL_LIMIT = 200;
/** Files that a history may be put together from: segments, and the threads that it was forked from. */
const MAX_FILES = 16;

/**
 * The newest entries of a thread, oldest first, bounded and cleaned. Goes back through rewound segments, each up to
 * the record at which the next one begins, and into the thread that it was forked from (`exec-fork`).
 */
export function readHistory(context: AdapterContext, session: SessionRef, bounds: HistoryBounds): History {
  const files = context.files ?? systemFiles;
  const walked = walkRollouts(codexHome(context), files, context.platform);
  const byThread = Map.groupBy(walked.rollouts, (file) => file.threadId);
  const collector = new Collector(bounds);
  const counts = noCounts();
  let step: Step | undefined = { threadId: session.sessionId.toLowerCase() };
  for (let read = 0; step !== undefined && read < MAX_FILES && !collector.full; read += 1) {
    step = readStep(step, byThread, collector, files, counts);
  }
  if (step !== undefined) collector.cutShort = true;
  return {
    entries: collector.entries(),
    more: collector.full || collector.cutShort,
    skipped: counts.malformed + counts.oversized,
  };
}

/** The file to read next, and the record at which its part ends. */
interface Step {
  readonly threadId: string;
  /** Segments that have been read of this thread; the next one is before them. */
  readonly before?: RolloutFile;
  readonly endOrdinal?: number;
}

function readStep(
  step: Step,
  byThread: ReadonlyMap<string, readonly FoundRollout[]>,
  collector: Collector,
  files: FileSystemPort,
  counts: LineCounts,
): Step | undefined {
  const segments = orderSegments(byThread.get(step.threadId) ?? []);
  const at = step.before ? segments.findIndex((file) => file.path === step.before?.path) : segments.length;
  const file = segments[at - 1];
  if (!file) return undefined;
  const meta = readFile(file, step.endOrdinal, collector, files, counts);
  if (collector.full || collector.cutShort || !meta?.base) return undefined;
  const { threadId, endOrdinal } = meta.base;
  const sameThread = threadId.toLowerCase() === step.threadId;
  return { threadId: threadId.toLowerCase(), endOrdinal, ...(sameThread ? { before: file } : {}) };
}

function readFile(
  file: FoundRollout,
  endOrdinal: number | undefined,
  collector: Collector,
  files: FileSystemPort,
  counts: LineCounts,
): SessionMeta | undefined {
  if (file.compressed) {
    const unpacked = unpackLines(files, file.path, file.stat.size, counts);
    return 'lines' in unpacked
      ? collector.take(unpacked.lines, metaOf(unpacked.lines[0]), endOrdinal)
      : undefined;
  }
  const result = createFileReader(files, counts).read(
    file.path,
    (open) => {
      const meta = metaOf(open.head({ enough: (lines) => lines.length > 0 }).lines[0]);
      const tail = open.tail({
        cap: TURN_CAP,
        enough: (lines) => lines.filter(mayBeEntry).length > collector.room,
      });
      collector.cutShort = !tail.whole && !tail.satisfied;
      return collector.take(tail.lines, meta, endOrdinal);
    },
    file.stat,
  );
  return result.kind === 'read' ? result.value : undefined;
}

function metaOf(line: Line | undefined): SessionMeta | undefined {
  const record = line ? toRecord(line.record) : undefined;
  return record?.kind === 'meta' ? record.meta : undefined;
}

const ENTRY_MARKS = [
  '"UserMessage"',
  '"AgentMessage"',
  '"user_message"',
  '"agent_message"',
  '_call"',
  '"turn_aborted"',
  '"task_complete"',
  '"compacted"',
] as const;

function mayBeEntry(line: Line): boolean {
  return ENTRY_MARKS.some((mark) => line.has(mark)) || (line.has('"role"') && !line.has('"payload"'));
}

/** Gathers entries from the newest backwards until a bound is reached. */
class Collector {
  full = false;
  cutShort = false;
  readonly #bounds: HistoryBounds;
  readonly #newestFirst: HistoryEntry[] = [];
  #bytes = 0;

  constructor(bounds: HistoryBounds) {
    this.#bounds = bounds;
  }

  get room(): number {
    return this.#bounds.entries - this.#newestFirst.length;
  }

  entries(): readonly HistoryEntry[] {
    return [...this.#newestFirst].reverse();
  }

  take(lines: readonly Line[], meta: SessionMeta | undefined, endOrdinal: number | undefined): typeof meta {
    for (const line of [...lines].reverse()) {
      if (!mayBeEntry(line)) continue;
      const record = toRecord(line.record);
      if (isInherited(record, meta)) continue;
      if (endOrdinal !== undefined && record.ordinal !== undefined && record.ordinal >= endOrdinal) continue;
      const entry = entryOf(record, asFields(line.record));
      if (entry && !this.#put(entry)) break;
    }
    return meta;
  }

  #put(entry: HistoryEntry): boolean {
    const bounded = cutTo(entry, Math.floor(this.#bounds.bytes * ENTRY_SHARE));
    const size = Buffer.byteLength(bounded.text);
    this.full = this.room <= 0 || this.#bytes + size > this.#bounds.bytes;
    if (this.full) return false;
    this.#newestFirst.push(bounded);
    this.#bytes += size;
    return true;
  }
}

/** Cuts to so many bytes, never inside a character. */
function cutTo(entry: HistoryEntry, limit: number): HistoryEntry {
  if (Buffer.byteLength(entry.text) <= limit) return entry;
  const bytes = Buffer.from(entry.text).subarray(0, Math.max(0, limit - 3));
  return { ...entry, text: `${bytes.toString('utf8').replace(/\ufffd$/, '')}…`, cut: true };
}

function entryOf(record: RolloutRecord, line: Fields | undefined): HistoryEntry | undefined {
  switch (record.kind) {
    case 'prompt':
      return record.text ? entry('user', record.text, record.at) : undefined;
    case 'said':
      return entry('assistant', spokenText(line), record.at);
    case 'called': {
      const { name, command, path, pattern } = record.tool;
      const about = command ?? path ?? pattern;
      return entry('tool', about ? `${name}: ${clip(oneLine(about), LABEL_LIMIT)}` : name, record.at);
    }
    case 'turn-aborted':
      return entry('system', 'interrupted', record.at);
    case 'turn-ended':
      return record.failed ? entry('system', record.error ?? 'the turn failed', record.at) : undefined;
    case 'compacted':
      return entry('system', 'history compacted', record.at);
    default:
      return undefined;
  }
}

/**
 * What the model said to its user. Every message is in the file twice; the event is taken, since a summary that was
 * made for compaction has none (`tui-compact`). Bare files have the message alone.
 */
function spokenText(line: Fields | undefined): string {
  const payload = objectOf(line, 'payload');
  if (!payload) {
    const text = textOf(line, 'role') === 'assistant' ? contentText(listOf(line, 'content')) : '';
    return isInjected(text) ? '' : text;
  }
  if (textOf(payload, 'type') === 'agent_message') return textOf(payload, 'message') ?? '';
  const item = objectOf(payload, 'item');
  return textOf(item, 'type') === 'AgentMessage' ? contentText(listOf(item, 'content')) : '';
}

function entry(role: HistoryEntry['role'], raw: string, at: number | undefined): HistoryEntry | undefined {
  const text = cleanLines(raw);
  return text === '' ? undefined : { role, text, ...(at === undefined ? {} : { at }) };
}

/** Several lines, each safe to print (O4) and with its indentation, secrets masked. */
function cleanLines(raw: string): string {
  const lines = raw.split(/\r\n|\r|\n/).map((line) => {
    const indent = /^[ \t]*/.exec(line)?.[0].replaceAll('\t', '  ') ?? '';
    return `${indent}${oneLine(line)}`.trimEnd();
  });
  return redact(lines.join('\n').replace(/\n{3,}/g, '\n\n')).trim();
}
