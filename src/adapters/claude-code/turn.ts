import type { TurnFacts } from '../../runtime/session/evidence.ts';
import {
  type Outcome,
  RUNNING,
  restedWith,
  type SessionState,
  STREAMING,
  UNKNOWN,
  waitingOn,
} from '../../runtime/session/state.ts';
import { oneLine } from '../../runtime/session/text.ts';
import type { Row } from './rows.ts';
import { subjectOf, type ToolUse } from './tools.ts';

/** What the rows of a transcript add up to, one row after the other. Times are the program's own. */
export interface Turn {
  /** Best state from the rows alone; an open turn says nothing about who still works on it. */
  readonly state: SessionState;
  /** Time of the newest row that moved the state or went on with the turn. */
  readonly at?: number;
  readonly turn: TurnFacts;
  /** Calls without a result, oldest first. */
  readonly pending: readonly ToolUse[];
  /** Time of the newest row that answers a wait. */
  readonly answeredAt?: number;
  /** A `max_tokens` row that was not yet followed up: the program goes on by itself while it lives. */
  readonly provisional: boolean;
  /** Code and status of the error that ended the turn, both from closed sets of the program's. */
  readonly failure?: { readonly code: string; readonly status?: number };
  readonly model?: string;
  readonly usedTokens?: number;
  /** Sub-agents that went on in the background when the turn ended. */
  readonly pendingAgents: number;
  /** What kind of row spoke last, for `session-why`. */
  readonly last: string;
}

/** Before the first row. */
export const NO_TURN: Turn = {
  state: UNKNOWN,
  turn: {},
  pending: [],
  provisional: false,
  pendingAgents: 0,
  last: 'no conversation row',
};

/** Applies one row (`runtimes` facts of 2.1.197 and 2.1.332; C2, C4, C5, C6, C12, C13; ). Pure. */
export function applyRow(before: Turn, row: Row): Turn {
  switch (row.kind) {
    case 'prompt':
      return opened(before, row);
    case 'continue':
      return {
        ...goesOn(before, row.at, 'a note after which the model goes on'),
        turn: sameTurn(before.turn, row.at),
      };
    case 'tool-result':
      return answered(before, row);
    case 'interrupt':
      return ended(before, row.at, 'stopped', 'an interrupt');
    case 'assistant':
      return replied(before, row);
    case 'api-error':
      return failed(before, row);
    case 'retry':
      return {
        ...goesOn(before, row.at, 'a retry after an API error'),
        state: { kind: 'working', doing: 'running', retrying: true },
      };
    case 'turn-duration':
      return { ...before, pendingAgents: row.pendingAgents };
    case 'title':
    case 'other':
      return before;
  }
}

/** True for rows that say by themselves what state the session is in; a tail is long enough when it has one. */
export function bearsState(row: Row): boolean {
  return row.kind !== 'other' && row.kind !== 'title' && row.kind !== 'turn-duration';
}

function opened(before: Turn, row: Row & { kind: 'prompt' }): Turn {
  // Work in the background that wakes the session goes on with the turn that started it.
  const openedAt = row.by === 'background' ? (before.turn.openedAt ?? row.at) : row.at;
  const rest = withoutFailure(withTime(before, row.at));
  return {
    ...rest,
    state: RUNNING,
    turn: openedAt !== undefined ? { openedAt } : {},
    pending: [],
    ...(row.at !== undefined ? { answeredAt: row.at } : {}),
    provisional: false,
    pendingAgents: 0,
    last:
      row.by === 'user'
        ? 'a prompt'
        : row.by === 'bash'
          ? 'a shell command of the user'
          : 'news of background work',
  };
}

function goesOn(before: Turn, at: number | undefined, last: string): Turn {
  const rest = withoutFailure(withTime(before, at));
  return { ...rest, state: RUNNING, turn: reopened(before.turn, at), provisional: false, last };
}

/** An open turn without its end. Where its prompt lies outside of what was read, it is open at least since `at`. */
function sameTurn(turn: TurnFacts, at: number | undefined): TurnFacts {
  const openedAt = turn.openedAt ?? at;
  return openedAt !== undefined ? { openedAt } : {};
}

/** Work after an end, without a prompt of its own (a command of the user's that asks the model), is another turn. */
function reopened(turn: TurnFacts, at: number | undefined): TurnFacts {
  return turn.end !== undefined && at !== undefined ? { openedAt: at } : sameTurn(turn, at);
}

function answered(before: Turn, row: Row & { kind: 'tool-result' }): Turn {
  const pending = row.rejected ? [] : before.pending.filter((call) => !row.ids.includes(call.id));
  const next = goesOn(before, row.at, 'a tool result');
  return {
    ...next,
    state: pendingState(pending) ?? RUNNING,
    pending,
    ...(row.at !== undefined ? { answeredAt: row.at } : {}),
  };
}

/** The newest open call says what is going on: a question and a plan wait for the user, all others run. */
function pendingState(pending: readonly ToolUse[]): SessionState | undefined {
  const asking = pending.findLast((call) => subjectOf(call.tool.name) !== undefined);
  const subject = asking && subjectOf(asking.tool.name);
  if (asking && subject) return waitingOn(subject, asking.tool);
  const newest = pending.at(-1);
  return newest && { kind: 'working', doing: 'tool', tool: newest.tool };
}

function replied(before: Turn, row: Row & { kind: 'assistant' }): Turn {
  const base = {
    ...withTime(before, row.at),
    ...(row.model ? { model: row.model } : {}),
    ...(row.usedTokens !== undefined ? { usedTokens: row.usedTokens } : {}),
  };
  if (row.stop === null) return cutReply(base, row);
  const cut = row.synthetic && before.state === STREAMING;
  if (cut) return ended(base, row.at, 'stopped', 'a reply cut by an interrupt');
  if (row.stop === 'tool_use' || row.stop === 'pause_turn') {
    const pending = [...before.pending, ...row.tools];
    const last = row.tools.at(-1);
    return {
      ...goesOn(base, row.at, last ? `a call of ${last.tool.name} without a result` : 'a reply that goes on'),
      state: pendingState(pending) ?? RUNNING,
      pending,
    };
  }
  if (row.stop === 'max_tokens' || row.stop === 'model_context_window_exceeded') {
    return { ...ended(base, row.at, 'limited', 'a reply cut at the output limit'), provisional: true };
  }
  if (row.stop === 'refusal') return ended(base, row.at, 'failed', 'a refusal');
  return ended(base, row.at, 'completed', 'a finished reply');
}

/**
 * A reply without a stop reason. Rows are held back until a message is complete, so in a file this means an
 * interrupt, whose own row follows at once; only the block that 2.1.332 marks as aborted is the end by itself.
 */
function cutReply(base: Turn, row: Row & { kind: 'assistant' }): Turn {
  if (row.aborted) return ended(base, row.at, 'stopped', 'a reply cut by an interrupt');
  return { ...goesOn(base, row.at, 'an unfinished reply'), state: STREAMING };
}

function failed(before: Turn, row: Row & { kind: 'api-error' }): Turn {
  const outcome: Outcome = row.code === 'max_output_tokens' ? 'limited' : 'failed';
  const next = ended(before, row.at, outcome, `an API error (${row.code})`);
  const error = oneLine(row.text.slice(0, ERROR_SOURCE_LIMIT));
  return {
    ...next,
    turn: { ...next.turn, ...(outcome === 'failed' && error ? { error } : {}) },
    ...(outcome === 'failed'
      ? { failure: { code: row.code, ...(row.status !== undefined ? { status: row.status } : {}) } }
      : {}),
  };
}

const ERROR_SOURCE_LIMIT = 1_000;

function ended(before: Turn, at: number | undefined, outcome: Outcome, last: string): Turn {
  const rest = withoutFailure(withTime(before, at));
  const { openedAt } = before.turn;
  return {
    ...rest,
    state: restedWith(outcome),
    turn: {
      ...(openedAt !== undefined ? { openedAt } : {}),
      ...(at !== undefined ? { endedAt: at } : {}),
      end: outcome,
    },
    pending: [],
    ...(outcome === 'stopped' && at !== undefined ? { answeredAt: at } : {}),
    provisional: false,
    last,
  };
}

/** Taking a turn apart costs as much as all else of a row, and hardly one of them has a failure to drop. */
function withoutFailure(turn: Turn): Turn {
  if (turn.failure === undefined) return turn;
  const { failure: _, ...rest } = turn;
  return rest;
}

function withTime(before: Turn, at: number | undefined): Turn {
  return at === undefined ? before : { ...before, at };
}
