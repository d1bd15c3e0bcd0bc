import type { Doing, Outcome, SessionState, WaitSubject } from '../../runtime/session/state.ts';
import { restedWith, UNKNOWN, waitingOn } from '../../runtime/session/state.ts';
import type { Titles } from './titles.ts';
import type { Turn } from './turn.ts';
import { listOf, objectOf } from './values.ts';

/** What one transcript file says, as it was read. */
export interface TranscriptSummary {
  readonly turn: Turn;
  readonly titles: Titles;
  /** The folder the session was started in; `cwd` of later rows moves (it is where `--resume` must run). */
  readonly cwd?: string;
  readonly startedAt?: number;
  /** Of the newest row that names it. */
  readonly version?: string;
  readonly gitBranch?: string;
  readonly entrypoint?: string;
  /** Identity of the first conversation row: a fork copies it. */
  readonly firstUuid?: string;
  /** The session that the rows were copied from, where they say so (2.1.332). */
  readonly forkedFromId?: string;
  /** The file begins with rows that are older than its first note of its own: it is a copy (G6). */
  readonly copied: boolean;
  /** Lines that were skipped: malformed, over a megabyte, or blocks of NUL bytes. */
  readonly skipped: number;
}

/**
 * The summary as the index keeps it: cleaned titles, names of tools and words of closed sets; no command, no
 * path of a tool, no message.
 */
export function encodeSummary(summary: TranscriptSummary): string {
  const { turn } = summary;
  const { openedAt, endedAt, end } = turn.turn;
  return JSON.stringify({
    titles: summary.titles,
    copied: summary.copied,
    skipped: summary.skipped,
    cwd: summary.cwd,
    startedAt: summary.startedAt,
    version: summary.version,
    gitBranch: summary.gitBranch,
    entrypoint: summary.entrypoint,
    firstUuid: summary.firstUuid,
    forkedFromId: summary.forkedFromId,
    turn: {
      state: encodeState(turn.state),
      at: turn.at,
      turn: { openedAt, endedAt, end },
      answeredAt: turn.answeredAt,
      provisional: turn.provisional,
      failure: turn.failure,
      model: turn.model,
      usedTokens: turn.usedTokens,
      pendingAgents: turn.pendingAgents,
      last: turn.last,
    },
  });
}

function encodeState(state: SessionState): readonly (string | boolean | undefined)[] {
  switch (state.kind) {
    case 'working':
      return ['working', state.doing, state.tool?.name, state.retrying];
    case 'waiting':
      return ['waiting', state.on, state.tool?.name];
    case 'rested':
      return ['rested', state.outcome];
    default:
      return ['unknown'];
  }
}

/**
 * Reads what {@link encodeSummary} wrote; `undefined` if it isn't that, and the file is then read again. What was
 * checked is used as it was parsed, and each key is named where it is looked at: two thousand entries are read for
 * every list, and lists of keys took half of that time.
 */
export function decodeSummary(text: string): TranscriptSummary | undefined {
  const value = objectOf(parse(text));
  const turn = objectOf(value?.['turn']);
  const titles = objectOf(value?.['titles']);
  const times = objectOf(turn?.['turn']);
  const state = decodeState(turn?.['state']);
  if (!value || !turn || !titles || !times || !state) return undefined;
  if (!areTitles(titles) || !areTimes(times) || !isTurn(turn) || !isOfFile(value)) return undefined;
  const checked: { -readonly [K in keyof Turn]?: Turn[K] } = turn;
  checked.state = state;
  checked.pending = NONE_PENDING;
  return value as unknown as TranscriptSummary;
}

const NONE_PENDING: Turn['pending'] = [];

type Parsed = Readonly<Record<string, unknown>>;

const isText = (value: unknown): boolean => value === undefined || typeof value === 'string';
const isNumber = (value: unknown): boolean => value === undefined || typeof value === 'number';

function areTitles(titles: Parsed): boolean {
  return isText(titles['custom']) && isText(titles['program']) && isText(titles['prompt']);
}

function areTimes(times: Parsed): boolean {
  const { end } = times;
  return (
    isNumber(times['openedAt']) && isNumber(times['endedAt']) && (end === undefined || OUTCOMES.has(end))
  );
}

function isTurn(turn: Parsed): boolean {
  return (
    isNumber(turn['at']) &&
    isNumber(turn['answeredAt']) &&
    isNumber(turn['usedTokens']) &&
    typeof turn['pendingAgents'] === 'number' &&
    typeof turn['provisional'] === 'boolean' &&
    typeof turn['last'] === 'string' &&
    isText(turn['model']) &&
    isFailure(turn['failure'])
  );
}

function isOfFile(value: Parsed): boolean {
  return (
    typeof value['copied'] === 'boolean' &&
    typeof value['skipped'] === 'number' &&
    isNumber(value['startedAt']) &&
    isText(value['cwd']) &&
    isText(value['version']) &&
    isText(value['gitBranch']) &&
    isText(value['entrypoint']) &&
    isText(value['firstUuid']) &&
    isText(value['forkedFromId'])
  );
}

function isFailure(value: unknown): boolean {
  if (value === undefined) return true;
  const failure = objectOf(value);
  return typeof failure?.['code'] === 'string' && isNumber(failure['status']);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // A damaged entry costs one reading of its file.
    return undefined;
  }
}

const DOINGS: ReadonlySet<unknown> = new Set<Doing>(['running', 'streaming', 'tool']);
const SUBJECTS: ReadonlySet<unknown> = new Set<WaitSubject>(['plan', 'question', 'output-limit']);
const OUTCOMES: ReadonlySet<unknown> = new Set<Outcome>(['completed', 'failed', 'stopped', 'limited']);

function decodeState(value: unknown): SessionState | undefined {
  const words = listOf(value);
  const kind = words[0];
  const what = words[1];
  if (kind === 'rested') return OUTCOMES.has(what) ? restedWith(what as Outcome) : undefined;
  if (kind === 'unknown') return UNKNOWN;
  const name = words[2];
  const retrying = words[3];
  const tool = typeof name === 'string' ? { tool: { name } } : {};
  if (kind === 'working' && DOINGS.has(what)) {
    const again = retrying === true ? { retrying } : {};
    return { kind: 'working', doing: what as Doing, ...tool, ...again };
  }
  const waits = kind === 'waiting' && SUBJECTS.has(what);
  return waits ? { ...waitingOn(what as WaitSubject), ...tool } : undefined;
}
