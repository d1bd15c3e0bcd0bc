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
  const { turn, ...rest } = summary;
  const { error: _, ...times } = turn.turn;
  return JSON.stringify({
    ...rest,
    turn: {
      state: encodeState(turn.state),
      at: turn.at,
      turn: times,
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
 * checked is used as it was parsed: two thousand entries are read for every list.
 */
export function decodeSummary(text: string): TranscriptSummary | undefined {
  const value = objectOf(parse(text));
  const turn = objectOf(value?.['turn']);
  const titles = objectOf(value?.['titles']);
  const times = objectOf(turn?.['turn']);
  const state = decodeState(turn?.['state']);
  if (!value || !turn || !titles || !times || !state) return undefined;
  const sound =
    allAre('string', value, TEXTS) &&
    allAre('number', value, NUMBERS) &&
    allAre('string', titles, TITLES) &&
    allAre('number', times, TIMES) &&
    allAre('number', turn, TURN_NUMBERS) &&
    allAre('string', turn, TURN_TEXTS) &&
    isFailure(turn['failure']) &&
    (times['end'] === undefined || OUTCOMES.has(times['end']));
  if (!sound) return undefined;
  const checked = {
    ...turn,
    state,
    pending: [],
    provisional: turn['provisional'] === true,
  } as unknown as Turn;
  return { ...value, turn: checked, copied: value['copied'] === true } as unknown as TranscriptSummary;
}

const NUMBERS = ['startedAt', 'skipped'];
const TITLES = ['custom', 'program', 'prompt'];
const TIMES = ['openedAt', 'endedAt'];
const TURN_NUMBERS = ['at', 'answeredAt', 'usedTokens', 'pendingAgents'];
const TURN_TEXTS = ['model', 'last'];
const TEXTS = ['cwd', 'version', 'gitBranch', 'entrypoint', 'firstUuid', 'forkedFromId'];

/** Whether each of the keys has a value of this type, or none. */
function allAre(
  type: 'string' | 'number',
  value: Readonly<Record<string, unknown>>,
  keys: readonly string[],
): boolean {
  for (const key of keys) {
    const one = value[key];
    if (one !== undefined && typeof one !== type) return false;
  }
  return true;
}

function isFailure(value: unknown): boolean {
  if (value === undefined) return true;
  const failure = objectOf(value);
  return typeof failure?.['code'] === 'string' && allAre('number', failure, ['status']);
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
  const [kind, what, name, retrying]: readonly unknown[] = listOf(value);
  const tool = typeof name === 'string' ? { tool: { name } } : {};
  if (kind === 'unknown') return UNKNOWN;
  if (kind === 'working' && DOINGS.has(what)) {
    const again = retrying === true ? { retrying } : {};
    return { kind: 'working', doing: what as Doing, ...tool, ...again };
  }
  if (kind === 'waiting' && SUBJECTS.has(what)) return { ...waitingOn(what as WaitSubject), ...tool };
  return kind === 'rested' && OUTCOMES.has(what) ? restedWith(what as Outcome) : undefined;
}
