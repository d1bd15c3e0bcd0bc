import type { Outcome, SessionState, ToolCall } from '../../runtime/session/state.ts';
import { RUNNING, STREAMING, UNKNOWN, waitingOn } from '../../runtime/session/state.ts';
import type { RolloutRecord } from './records.ts';

/** A call whose output has not been written. */
interface OpenCall {
  readonly tool: ToolCall;
  readonly asks: boolean;
  readonly at?: number;
}

/**
 * What the records of one thread add up to, for its newest turn. Times are the records' own, epoch milliseconds.
 */
export interface Turn {
  readonly phase: 'none' | 'open' | 'ended';
  readonly id?: string;
  readonly openedAt?: number;
  readonly endedAt?: number;
  readonly end?: Outcome;
  readonly error?: string;
  readonly errorCode?: string;
  /** What the open turn was last seen doing, and since when. */
  readonly doing: 'running' | 'streaming' | 'tool';
  readonly doingAt?: number;
  /** The tool of the last call record, while `doing` is `tool`. */
  readonly tool?: ToolCall;
  readonly calls: ReadonlyMap<string, OpenCall>;
  /** Newest record after which no call waits for anything: a wait that is older is over. */
  readonly answeredAt?: number;
  /** Newest record of any kind. */
  readonly lastAt?: number;
  /** The start of the newest turn was among the records. */
  readonly startSeen: boolean;
  /** The model has said something in this turn. */
  readonly spoke: boolean;
  readonly compacted: boolean;
  /** The file has `task_started` or `task_complete` records; without them a turn's end can only be inferred. */
  readonly explicit: boolean;
  /** Written by a version that states errors and takes a writer lock. */
  readonly modern: boolean;
}

export const NO_TURN: Turn = {
  phase: 'none',
  doing: 'running',
  calls: new Map(),
  startSeen: false,
  spoke: false,
  compacted: false,
  explicit: false,
  modern: false,
};

/** A turn with more open calls than this is damaged; further ones are not followed. */
const MAX_OPEN_CALLS = 256;

/** What a failed turn of a version without error records is called (scenario `legacy-0.104-error`). */
export const NO_ANSWER = 'the turn ended without an answer; this version of Codex records no reason';

/**
 * Applies one record of the thread's own history (inherited copies must be left out by the caller, G6).
 *
 * `task_started` opens; `task_complete` ends, failed if it has an error; `turn_aborted` stops the turn it names;
 * `thread_rolled_back` leaves the thread stopped. What comes after the end never reopens it (late records of
 * background commands).
 */
export function applyRecord(turn: Turn, record: RolloutRecord): Turn {
  const at = record.at ?? turn.lastAt;
  const seen = at === undefined ? turn : { ...turn, lastAt: Math.max(at, turn.lastAt ?? at) };
  switch (record.kind) {
    case 'turn-started':
      return opened(seen, at, { explicit: true, modern: seen.modern || record.modern, id: record.turnId });
    case 'turn-ended': {
      if (!endsThis(seen, record.turnId)) return seen;
      const modern = seen.modern || record.modern;
      const failed = record.failed || endedWithoutAnswer(seen, record);
      const openedAt = seen.openedAt ?? record.startedAt;
      const error = record.error ?? (failed && !record.failed ? NO_ANSWER : undefined);
      const ended = endTurn(
        { ...seen, modern, explicit: true },
        at,
        failed ? 'failed' : 'completed',
        openedAt,
      );
      return {
        ...ended,
        ...(record.turnId ? { id: record.turnId } : {}),
        ...(error ? { error } : {}),
        ...(record.errorCode ? { errorCode: record.errorCode } : {}),
      };
    }
    case 'turn-aborted': {
      if (!endsThis(seen, record.turnId)) return seen;
      const modern = seen.modern || record.modern;
      const id = record.turnId ? { id: record.turnId } : {};
      return endTurn({ ...seen, ...id, modern }, at, 'stopped', seen.openedAt ?? record.startedAt);
    }
    case 'rolled-back':
      return endTurn(seen, at, 'stopped', seen.openedAt);
    case 'prompt':
      return seen.explicit || seen.phase === 'open' ? whileOpen(seen, record, at) : opened(seen, at, {});
    default:
      return whileOpen(seen, record, at);
  }
}

/** An end without a known turn is taken: the start may lie before what was read. */
function endsThis(turn: Turn, turnId: string | undefined): boolean {
  if (turn.phase === 'ended') return false;
  return turn.id === undefined || turnId === undefined || turn.id === turnId;
}

/** Versions that record no error show it by a turn in which the model never said a word (CX §2.6). */
function endedWithoutAnswer(turn: Turn, end: RolloutRecord & { kind: 'turn-ended' }): boolean {
  return end.silent && !end.modern && turn.startSeen && !turn.spoke && !turn.compacted;
}

function opened(
  turn: Turn,
  at: number | undefined,
  known: { explicit?: boolean; modern?: boolean; id?: string | undefined },
): Turn {
  return {
    phase: 'open',
    ...(known.id ? { id: known.id } : {}),
    ...(at === undefined ? {} : { openedAt: at, doingAt: at, answeredAt: at }),
    ...(turn.lastAt === undefined ? {} : { lastAt: turn.lastAt }),
    doing: 'running',
    calls: new Map(),
    startSeen: true,
    spoke: false,
    compacted: false,
    explicit: known.explicit ?? turn.explicit,
    modern: known.modern ?? turn.modern,
  };
}

function endTurn(turn: Turn, at: number | undefined, end: Outcome, openedAt: number | undefined): Turn {
  const { tool: _tool, error: _error, errorCode: _code, ...rest } = turn;
  return {
    ...rest,
    phase: 'ended',
    end,
    ...(openedAt === undefined ? {} : { openedAt }),
    ...(at === undefined ? {} : { endedAt: at }),
    calls: new Map(),
  };
}

function whileOpen(turn: Turn, record: RolloutRecord, at: number | undefined): Turn {
  if (turn.phase === 'none') return beforeAnyTurn(turn, record, at);
  if (turn.phase === 'ended') return turn.explicit ? turn : reopenedBy(turn, record, at);
  switch (record.kind) {
    case 'said':
      return said(turn, record, at);
    case 'prompt':
      return doing(turn, 'running', at);
    case 'called':
      return called(turn, record, at);
    case 'returned':
      return returned(turn, record.callId, at);
    case 'item-done':
      return itemDone(turn, record, at);
    case 'compacted':
      return { ...turn, compacted: true };
    default:
      return turn;
  }
}

/** Work without a start belongs to a turn whose beginning was not read, unless the file has no such records at all. */
function beforeAnyTurn(turn: Turn, record: RolloutRecord, at: number | undefined): Turn {
  const isWork = ['said', 'called', 'returned', 'item-done'].includes(record.kind);
  return isWork ? whileOpen({ ...turn, phase: 'open' }, record, at) : turn;
}

/** Where ends are inferred from a last message, more work shows that it was not the last. */
function reopenedBy(turn: Turn, record: RolloutRecord, at: number | undefined): Turn {
  if (record.kind !== 'called' && record.kind !== 'said' && record.kind !== 'returned') return turn;
  const { end: _end, endedAt: _endedAt, ...rest } = turn;
  return whileOpen({ ...rest, phase: 'open' }, record, at);
}

function doing(turn: Turn, what: Turn['doing'], at: number | undefined, tool?: ToolCall): Turn {
  const { tool: _tool, ...rest } = turn;
  return { ...rest, doing: what, ...(at === undefined ? {} : { doingAt: at }), ...(tool ? { tool } : {}) };
}

function answered(turn: Turn, at: number | undefined, all: boolean): { answeredAt?: number } {
  const answeredAt = all ? (at ?? turn.answeredAt) : turn.answeredAt;
  return answeredAt === undefined ? {} : { answeredAt };
}

/** Without end records, a message that leaves no call open is the turn's last word. */
function said(turn: Turn, record: RolloutRecord, at: number | undefined): Turn {
  const spoken = { ...doing(turn, 'streaming', at), spoke: true };
  const isLastWord = record.kind === 'said' && !turn.explicit && turn.startSeen && turn.calls.size === 0;
  return isLastWord ? endTurn(spoken, at, 'completed', turn.openedAt) : spoken;
}

function called(turn: Turn, record: RolloutRecord & { kind: 'called' }, at: number | undefined): Turn {
  const next = doing(turn, 'tool', at, record.tool);
  if (record.callId === undefined || turn.calls.size >= MAX_OPEN_CALLS) return next;
  const call = { tool: record.tool, asks: record.asks, ...(at === undefined ? {} : { at }) };
  const calls = new Map(turn.calls).set(record.callId, call);
  return { ...next, calls };
}

function returned(turn: Turn, callId: string | undefined, at: number | undefined): Turn {
  const calls = new Map(turn.calls);
  if (callId !== undefined) calls.delete(callId);
  const last = [...calls.values()].at(-1);
  const next = last ? doing(turn, 'tool', at, last.tool) : doing(turn, 'running', at);
  return { ...next, calls, ...answered(turn, at, calls.size === 0) };
}

/**
 * A tool's item is finished before its call's output is written. It answers a wait if it is of the only open call:
 * background commands of earlier calls, and of earlier turns, finish at any time (`tui-command-outlives-turn`).
 */
function itemDone(turn: Turn, item: RolloutRecord & { kind: 'item-done' }, at: number | undefined): Turn {
  if (turn.id !== undefined && item.turnId !== undefined && item.turnId !== turn.id) return turn;
  const [open] = [...turn.calls];
  const [callId, call] = open ?? [];
  const isOfIt =
    callId === undefined ||
    item.itemId === callId ||
    (item.startedAt ?? 0) >= (call?.at ?? Number.POSITIVE_INFINITY);
  return { ...doing(turn, 'running', at), ...answered(turn, at, turn.calls.size <= 1 && isOfIt) };
}

/** The state that the records alone support: an approval is never among them (S6, CX §0.5). */
export function turnState(turn: Turn): SessionState {
  if (turn.phase === 'none') return UNKNOWN;
  if (turn.phase === 'ended') return { kind: 'rested', outcome: turn.end ?? 'completed' };
  const question = [...turn.calls.values()].find((call) => call.asks);
  if (question) return waitingOn('question', question.tool);
  if (turn.doing === 'streaming') return STREAMING;
  if (turn.doing === 'tool' && turn.tool) return { kind: 'working', doing: 'tool', tool: turn.tool };
  return RUNNING;
}
