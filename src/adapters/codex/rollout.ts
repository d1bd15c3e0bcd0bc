import type { FileStat } from '../../runtime/files/file-system.ts';
import type { FileReader, OpenFile, ReadResult } from '../../runtime/files/head-tail.ts';
import type { Line } from '../../runtime/files/jsonl.ts';
import type { ContextUsage } from '../../runtime/session/session.ts';
import { cleanTitle } from '../../runtime/session/text.ts';
import { isInherited } from './inherited.ts';
import type { SessionMeta } from './meta.ts';
import { type RolloutRecord, toRecord } from './records.ts';
import { applyRecord, NO_TURN, type Turn } from './turn.ts';

/** What one rollout says about its thread, read from both ends. */
export interface Rollout {
  /** The first `session_meta` (G5); absent when the first line is damaged. */
  readonly meta?: SessionMeta;
  readonly turn: Turn;
  /** The first real prompt, cleaned; absent if none was found, or if it was not looked for. */
  readonly prompt?: string;
  readonly promptSearched: boolean;
  /** The last ones (X17). */
  readonly model?: string;
  readonly cwd?: string;
  readonly usage?: ContextUsage;
  readonly bare: boolean;
}

/** The first prompt stands behind the instructions of the first turn: 40 to 60 KB in. */
export const PROMPT_CAP = 512 * 1024;
/** A tail is read back this far for a turn event; a single tool output may be megabytes. */
export const TURN_CAP = 16 * 1024 * 1024;
/** And this far for the model and folder of a turn whose end is already known. */
const CONTEXT_REACH = 256 * 1024;
/** Files without turn events at all end in a message; more of them tells nothing new. */
const EVENTLESS_REACH = 64 * 1024;

/**
 * Reads a rollout in bounded steps, whatever its size (X9: 37 GB): the first line, the first prompt if asked for,
 * and as much of the tail as holds the newest turn event.
 */
export function readRollout(
  reader: FileReader,
  path: string,
  known: FileStat,
  wantPrompt: boolean,
): ReadResult<Rollout> {
  return reader.read(path, (file) => readOpen(file, wantPrompt), known);
}

function readOpen(file: OpenFile, wantPrompt: boolean): Rollout {
  const records = recordCache();
  const head = file.head({
    ...(wantPrompt ? { cap: PROMPT_CAP } : {}),
    enough: (lines) => lines.length > 0 && (!wantPrompt || findPrompt(lines, records) !== undefined),
  });
  const first = head.lines[0];
  const meta = first ? metaOf(records(first)) : undefined;
  const prompt = wantPrompt ? findPrompt(head.lines, records) : undefined;
  const eventless =
    head.lines.length > 1 && !head.lines.some(looksLikeTurnEvent) && meta?.historyMode === undefined;
  const lines = head.whole
    ? head.lines
    : file.tail({ cap: TURN_CAP, enough: (tail) => tailTells(tail, meta, eventless, records) }).lines;
  return summarize(lines, meta, records, { prompt, promptSearched: wantPrompt, eventless });
}

/** The same from lines that are all at hand (an unpacked `.jsonl.zst`). */
export function rolloutOf(lines: readonly Line[]): Rollout {
  const records = recordCache();
  const first = lines[0];
  const meta = first ? metaOf(records(first)) : undefined;
  const eventless = !lines.some(looksLikeTurnEvent);
  const prompt = findPrompt(lines, records);
  return summarize(lines, meta, records, { prompt, promptSearched: true, eventless });
}

type Records = (line: Line) => RolloutRecord;

/** Lines are looked at after each step of growth; each is parsed at most once. */
function recordCache(): Records {
  const known = new WeakMap<Line, RolloutRecord>();
  return (line) => {
    const cached = known.get(line);
    if (cached) return cached;
    const record = toRecord(line.record);
    known.set(line, record);
    return record;
  };
}

function metaOf(record: RolloutRecord): SessionMeta | undefined {
  return record.kind === 'meta' ? record.meta : undefined;
}

const PROMPT_MARKS = ['"UserMessage"', '"user_message"'] as const;

function findPrompt(lines: readonly Line[], records: Records): string | undefined {
  const first = lines[0];
  const meta = first ? metaOf(records(first)) : undefined;
  for (const line of lines) {
    const marked = PROMPT_MARKS.some((mark) => line.has(mark)) || isBareMessage(line);
    const record = marked ? records(line) : undefined;
    if (record?.kind !== 'prompt' || record.text === undefined || isInherited(record, meta)) continue;
    const title = cleanTitle(record.text);
    if (title !== undefined) return title;
  }
  return undefined;
}

function isBareMessage(line: Line): boolean {
  return line.has('"role":"user"') && !line.has('"payload"');
}

const TURN_MARKS = [
  '"task_',
  '"turn_aborted"',
  '"turn_started"',
  '"turn_complete"',
  '"thread_rolled_back"',
] as const;

/** Raw quotation marks can't stand inside a JSON string, so text of the conversation does not match. */
function looksLikeTurnEvent(line: Line): boolean {
  return TURN_MARKS.some((mark) => line.has(mark));
}

const TURN_KINDS: ReadonlySet<string> = new Set([
  'turn-started',
  'turn-ended',
  'turn-aborted',
  'rolled-back',
]);

function isTurnEvent(line: Line, meta: SessionMeta | undefined, records: Records): boolean {
  if (!looksLikeTurnEvent(line)) return false;
  const record = records(line);
  return TURN_KINDS.has(record.kind) && !isInherited(record, meta);
}

/** Whether a tail already says how the newest turn stands, and with which model and folder. */
function tailTells(
  lines: readonly Line[],
  meta: SessionMeta | undefined,
  eventless: boolean,
  records: Records,
): boolean {
  const first = lines[0];
  const last = lines.at(-1);
  if (!first || !last) return false;
  const reach = last.end - first.start;
  if (eventless && reach >= EVENTLESS_REACH) return true;
  const event = lines.findLast((line) => isTurnEvent(line, meta, records));
  if (!event) return false;
  const record = records(event);
  if (record.kind === 'turn-started') return true;
  const mayHaveFailed = record.kind === 'turn-ended' && record.silent && !record.failed && !record.modern;
  if (mayHaveFailed && !lines.some((line) => records(line).kind === 'turn-started'))
    return reach >= CONTEXT_REACH;
  return reach >= CONTEXT_REACH || lines.some((line) => isContext(line));
}

function isContext(line: Line): boolean {
  return line.has('"turn_context"') || line.has('"thread_settings_applied"') || isBareMessage(line);
}

interface Found {
  readonly prompt: string | undefined;
  readonly promptSearched: boolean;
  readonly eventless: boolean;
}

function summarize(
  lines: readonly Line[],
  meta: SessionMeta | undefined,
  records: Records,
  found: Found,
): Rollout {
  const own = (record: RolloutRecord) => !isInherited(record, meta);
  const context = lastOf(lines, isContext, 'context', records, own);
  const usage = lastOf(lines, (line) => line.has('"token_count"'), 'usage', records, own);
  const first = lines[0];
  return {
    ...(meta ? { meta } : {}),
    turn: withLastTime(reduceTurn(lines, meta, records, found.eventless), lines, records),
    ...(found.prompt ? { prompt: found.prompt } : {}),
    promptSearched: found.promptSearched,
    ...presentOf('model', context?.model),
    ...presentOf('cwd', context?.cwd ?? meta?.cwd),
    ...(usage ? { usage: usage.usage } : {}),
    bare: first !== undefined && records(first).bare === true,
  };
}

/**
 * The newest turn of these lines. A turn that has ended needs its events only; an open one is followed record by
 * record from its start. Gives what folding every record would give.
 */
function reduceTurn(
  lines: readonly Line[],
  meta: SessionMeta | undefined,
  records: Records,
  eventless: boolean,
): Turn {
  const fold = (from: readonly Line[]) =>
    from
      .map(records)
      .filter((record) => !isInherited(record, meta))
      .reduce(applyRecord, { ...NO_TURN, explicit: !eventless });
  const start = lines.findLastIndex(
    (line) => isTurnEvent(line, meta, records) && records(line).kind === 'turn-started',
  );
  const own = start < 0 ? lines : lines.slice(start);
  const events = own.filter((line) => isTurnEvent(line, meta, records));
  const brief = fold(events);
  if (start < 0 && copiesWithoutOrdinals(meta)) return brief;
  const needsAll = brief.phase !== 'ended' || (brief.end === 'failed' && brief.errorCode === undefined);
  return needsAll ? fold(own) : brief;
}

/** A fork of an older version: its copied records can be told from its own only by the turns they belong to. */
function copiesWithoutOrdinals(meta: SessionMeta | undefined): boolean {
  return meta?.forkedFromId !== undefined && meta.base === undefined && meta.ownFromOrdinal === undefined;
}

function withLastTime(turn: Turn, lines: readonly Line[], records: Records): Turn {
  const last = lines.at(-1);
  const at = last ? records(last).at : undefined;
  return at === undefined || (turn.lastAt ?? 0) >= at ? turn : { ...turn, lastAt: at };
}

function lastOf<K extends RolloutRecord['kind']>(
  lines: readonly Line[],
  mark: (line: Line) => boolean,
  kind: K,
  records: Records,
  own: (record: RolloutRecord) => boolean,
): (RolloutRecord & { kind: K }) | undefined {
  for (const line of [...lines].reverse()) {
    if (!mark(line)) continue;
    const record = records(line);
    if (record.kind === kind && own(record)) return record as RolloutRecord & { kind: K };
  }
  return undefined;
}

function presentOf<K extends string>(key: K, value: string | undefined): { [P in K]?: string } {
  return value === undefined ? {} : ({ [key]: value } as { [P in K]?: string });
}
