import type { TurnFacts } from '../../runtime/session/evidence.ts';
import type { Doing, Outcome, SessionState, WaitSubject } from '../../runtime/session/state.ts';
import { restedWith, UNKNOWN, waitingOn } from '../../runtime/session/state.ts';
import type { Titles } from './titles.ts';
import type { Turn } from './turn.ts';
import { numberOf, objectOf, textOf } from './values.ts';

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

/** Reads what {@link encodeSummary} wrote; `undefined` if it isn't that, and the file is then read again. */
export function decodeSummary(text: string): TranscriptSummary | undefined {
  const value = objectOf(parse(text));
  const turn = objectOf(value?.['turn']);
  const state = decodeState(turn?.['state']);
  if (!value || !turn || !state) return undefined;
  const titles = objectOf(value['titles']) ?? {};
  return {
    turn: {
      state,
      turn: decodeTimes(objectOf(turn['turn']) ?? {}),
      pending: [],
      provisional: turn['provisional'] === true,
      pendingAgents: numberOf(turn['pendingAgents']) ?? 0,
      last: textOf(turn['last']) ?? '',
      ...pick('at', numberOf(turn['at'])),
      ...pick('answeredAt', numberOf(turn['answeredAt'])),
      ...pick('failure', decodeFailure(objectOf(turn['failure']))),
      ...pick('model', textOf(turn['model'])),
      ...pick('usedTokens', numberOf(turn['usedTokens'])),
    },
    titles: {
      ...pick('custom', textOf(titles['custom'])),
      ...pick('program', textOf(titles['program'])),
      ...pick('prompt', textOf(titles['prompt'])),
    },
    copied: value['copied'] === true,
    skipped: numberOf(value['skipped']) ?? 0,
    ...pick('cwd', textOf(value['cwd'])),
    ...pick('startedAt', numberOf(value['startedAt'])),
    ...pick('version', textOf(value['version'])),
    ...pick('gitBranch', textOf(value['gitBranch'])),
    ...pick('entrypoint', textOf(value['entrypoint'])),
    ...pick('firstUuid', textOf(value['firstUuid'])),
    ...pick('forkedFromId', textOf(value['forkedFromId'])),
  };
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
  if (!Array.isArray(value)) return undefined;
  const [kind, what, name, retrying]: unknown[] = value;
  const tool = textOf(name) ? { name: String(name) } : undefined;
  if (kind === 'unknown') return UNKNOWN;
  if (kind === 'working' && DOINGS.has(what)) {
    return {
      kind: 'working',
      doing: what as Doing,
      ...pick('tool', tool),
      ...(retrying === true ? { retrying: true } : {}),
    };
  }
  if (kind === 'waiting' && SUBJECTS.has(what)) return waitingOn(what as WaitSubject, tool);
  return kind === 'rested' && OUTCOMES.has(what) ? restedWith(what as Outcome) : undefined;
}

function decodeTimes(times: Readonly<Record<string, unknown>>): TurnFacts {
  const end = OUTCOMES.has(times['end']) ? (times['end'] as Outcome) : undefined;
  return {
    ...pick('openedAt', numberOf(times['openedAt'])),
    ...pick('endedAt', numberOf(times['endedAt'])),
    ...pick('end', end),
  };
}

function decodeFailure(value: Readonly<Record<string, unknown>> | undefined): Turn['failure'] {
  const code = textOf(value?.['code']);
  return code ? { code, ...pick('status', numberOf(value?.['status'])) } : undefined;
}

/** An object with one key, or without it where there is no value. */
function pick<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { [P in K]?: V });
}
