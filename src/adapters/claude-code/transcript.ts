import type { FileStat } from '../../runtime/files/file-system.ts';
import type { FileReader, OpenFile, ReadResult } from '../../runtime/files/head-tail.ts';
import type { Line, LineCounts } from '../../runtime/files/jsonl.ts';
import { neverCompileTwice } from '../../runtime/process/compile-policy.ts';
import { isTitleKind, kindOf, rowOf } from './lines.ts';
import { isFirstPrompt, readOrigin } from './origin.ts';
import type { Envelope, Row } from './rows.ts';
import type { TranscriptSummary } from './summary.ts';
import { addTitle, type Titles } from './titles.ts';
import { applyRow, bearsState, NO_TURN } from './turn.ts';

/** In most files the first prompt stands within this. */
const HEAD_STEP = 4 * 1024;
/** The most that is read for the first prompt: large rows stand behind it, not before it. */
const HEAD_LIMIT = 256 * 1024;
/** A last reply and the metadata behind it take six kilobytes in 2.1.332; where not, the tail grows. */
const TAIL_STEP = 8 * 1024;
/** The most that is read at the end: past one tool result of megabytes, which is skipped, to the row before it. */
const TAIL_LIMIT = 16 * 1024 * 1024;
/** Steps of the tail in which the model is looked for, too, where the newest rows don't name it. */
const STEPS_FOR_MODEL = 2;
/** Conversation rows that are parsed at the end of one file. */
const TAIL_ROWS = 40;

/**
 * Reads one transcript: its head for title and origin, and as much of its tail as tells the state: the
 * same time for a file of 20 GB as for one of 20 KB (X9).
 */
export function readTranscript(
  reader: FileReader,
  path: string,
  sessionId: string,
  known?: FileStat,
): ReadResult<TranscriptSummary> {
  const before = skippedIn(reader.counts);
  const result = reader.read(path, (file) => summarise(file, sessionId), known);
  if (result.kind !== 'read') return result;
  return { ...result, value: { ...result.value, skipped: skippedIn(reader.counts) - before } };
}

function skippedIn(counts: LineCounts): number {
  return counts.malformed + counts.oversized + counts.nulBlocks;
}

function summarise(file: OpenFile, sessionId: string): TranscriptSummary {
  let steps = 0;
  const tail = file.tail({
    firstStep: TAIL_STEP,
    cap: TAIL_LIMIT,
    enough(lines) {
      steps += 1;
      if (lines.findLast(isBearing) === undefined) return false;
      return steps > STEPS_FOR_MODEL || lines.findLast(namesModel) !== undefined;
    },
  });
  const head = tail.whole
    ? tail
    : file.head({ firstStep: HEAD_STEP, cap: HEAD_LIMIT, enough: (lines) => lines.some(isFirstPrompt) });
  return summaryOf(head.lines, tail.lines, sessionId);
}

function isBearing(line: Line): boolean {
  return bearsState(rowOf(line));
}

function namesModel(line: Line): boolean {
  const row = rowOf(line);
  return row.kind === 'assistant' && row.model !== undefined;
}

neverCompileTwice(isBearing, namesModel);

/** The summary of the lines at both ends; the same lines twice where a file was read whole. */
export function summaryOf(
  head: readonly Line[],
  tail: readonly Line[],
  sessionId: string,
): TranscriptSummary {
  const origin = readOrigin(head, sessionId);
  const ending = readEnding(tail);
  const newest = newestEnvelope(ending);
  const { version, gitBranch, entrypoint } = newest ?? origin.first;
  const { uuid } = origin.first;
  const cwd = origin.first.cwd ?? newest?.cwd;
  return {
    turn: ending.filter((row) => row.kind !== 'title').reduce(applyRow, NO_TURN),
    titles: ending.filter((row) => row.kind === 'title').reduce(addTitle, firstTitles(origin.titles, tail)),
    copied: origin.copied,
    skipped: 0,
    ...(cwd ? { cwd } : {}),
    ...(origin.startedAt !== undefined ? { startedAt: origin.startedAt } : {}),
    ...(version ? { version } : {}),
    ...(gitBranch ? { gitBranch } : {}),
    ...(entrypoint ? { entrypoint } : {}),
    ...(uuid ? { firstUuid: uuid } : {}),
    ...(origin.forkedFromId ? { forkedFromId: origin.forkedFromId } : {}),
  };
}

/** Where the first prompt lies beyond the head, the first one of the tail is better than none. */
function firstTitles(titles: Titles, tail: readonly Line[]): Titles {
  const prompt = titles.prompt ? undefined : tail.find(isFirstPrompt);
  return prompt ? addTitle(titles, rowOf(prompt)) : titles;
}

function newestEnvelope(rows: readonly Row[]): Envelope | undefined {
  const newest = rows.findLast((row) => row.kind !== 'title' && row.version !== undefined);
  return newest?.kind === 'title' ? undefined : newest;
}

/** A finished reply that names its model tells everything by itself: nothing before it is open. */
function isWholeAnswer(row: Row): boolean {
  return row.kind === 'assistant' && row.model !== undefined && row.stop === 'end_turn';
}

/**
 * The rows at the end, oldest first: conversation back to the newest reply with all its calls (what came before
 * is answered), and titles as far as was read.
 */
function readEnding(lines: readonly Line[]): readonly Row[] {
  const rows: Row[] = [];
  let replySeen = false;
  let conversation = 0;
  for (let at = lines.length - 1; at >= 0; at -= 1) {
    const line = lines[at];
    if (!line) break;
    const complete = conversation >= TAIL_ROWS;
    if (complete && !isTitleKind(kindOf(line))) continue;
    const row = rowOf(line);
    if (row.kind === 'title') rows.push(row);
    if (row.kind === 'title' || row.kind === 'other' || complete) continue;
    rows.push(row);
    conversation += 1;
    replySeen ||= row.kind === 'assistant' && row.model !== undefined;
    const beforeReply = replySeen && row.kind !== 'assistant' && row.kind !== 'turn-duration';
    if (beforeReply || isWholeAnswer(row)) conversation = TAIL_ROWS;
  }
  return rows.reverse();
}
