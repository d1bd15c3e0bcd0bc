import type { Claim, TurnFacts } from '../../runtime/session/evidence.ts';
import type { Outcome, SessionState, ToolCall } from '../../runtime/session/state.ts';
import { IDLE, RUNNING, STREAMING, waitingOn } from '../../runtime/session/state.ts';
import type { SessionInfo } from './info.ts';
import type { Answer, TurnError } from './outcome.ts';
import { subjectOfTool } from './outcome.ts';

/** A permission or a question that nobody has answered yet. */
export interface Wait {
  readonly kind: 'permission' | 'question';
  /** Epoch milliseconds. */
  readonly at: number;
  readonly tool?: ToolCall;
  /** The tool call that asks. */
  readonly callId?: string;
  /** The assistant message that the call belongs to. */
  readonly messageId?: string;
}

/** The newest assistant message of a session. */
export interface LiveAnswer extends Answer {
  readonly id: string;
  readonly completedAt?: number;
}

/**
 * What one OpenCode process has said of one session, and nothing of what others do with it.
 * `unseen`: it named the session, but neither made it nor ran it. Times are epoch milliseconds.
 */
export interface LiveSession {
  readonly info: SessionInfo;
  readonly phase: 'unseen' | 'idle' | 'busy' | 'retry' | 'removed';
  /** Output arrives: a delta came since the last end of a part. */
  readonly streaming: boolean;
  /** Calls that run, by call id. */
  readonly tools: ReadonlyMap<string, ToolCall>;
  /** Open requests by request id. They count only while the session is busy: an abort leaves them behind. */
  readonly waits: ReadonlyMap<string, Wait>;
  /** The newest user message. */
  readonly prompt?: { readonly id: string; readonly at: number };
  readonly answer?: LiveAnswer;
  /** A `session.error` since the turn began: at the first idle the message does not have it yet. */
  readonly failure?: TurnError;
  readonly turn: TurnFacts;
  /** When the state that is shown began. */
  readonly since: number;
  /** When the process last did something for the session. */
  readonly lastAt?: number;
  /** What was seen last, for `session-why`. */
  readonly seen: string;
}

/** A session that the process has only named. */
export function unseen(id: string, at: number): LiveSession {
  return {
    info: { id },
    phase: 'unseen',
    streaming: false,
    tools: new Map(),
    waits: new Map(),
    turn: {},
    since: at,
    seen: '',
  };
}

/** Whether the process works on the session. */
export function isBusy({ phase }: Pick<LiveSession, 'phase'>): boolean {
  return phase === 'busy' || phase === 'retry';
}

/** The state that the process gives a session; `undefined` if it has said nothing about its state. */
export function stateOfLive(session: LiveSession): SessionState | undefined {
  switch (session.phase) {
    case 'unseen':
      return undefined;
    case 'removed':
      return removedState(session.turn.end);
    case 'idle':
      return IDLE;
    case 'busy':
    case 'retry':
      return waitState(session) ?? workState(session);
  }
}

function removedState(outcome: Outcome | undefined): SessionState {
  return outcome ? { kind: 'ended', outcome } : { kind: 'ended' };
}

function waitState(session: LiveSession): SessionState | undefined {
  const waits = oldestFirst(session.waits);
  const permission = waits.find((wait) => wait.kind === 'permission');
  if (permission) return waitingOn('tool', permission.tool);
  const question = waits[0];
  if (!question) return undefined;
  const asking = question.callId === undefined ? undefined : session.tools.get(question.callId);
  return waitingOn((asking && subjectOfTool(asking.name)) ?? 'question', question.tool);
}

function oldestFirst(waits: ReadonlyMap<string, Wait>): readonly Wait[] {
  return [...waits.values()].sort((a, b) => a.at - b.at);
}

function workState(session: LiveSession): SessionState {
  if (session.phase === 'retry') return { kind: 'working', doing: 'running', retrying: true };
  if (session.streaming) return STREAMING;
  const tool = [...session.tools.values()].at(-1);
  return tool ? { kind: 'working', doing: 'tool', tool } : RUNNING;
}

/**
 * The standing claim of the process about a session. An idle one says `idle` and tells beside it how its own
 * newest turn ended, so that a newer turn of another process can overtake it. One that was not heard to begin a turn
 * proves that the process is there and no more: it can't say of anybody's turn that it ended.
 */
export function liveClaim(session: LiveSession, feed: string, owner: string): Claim | undefined {
  const says = stateOfLive(session);
  if (!says) return undefined;
  const waiting = says.kind === 'waiting' ? oldestFirst(session.waits)[0]?.at : undefined;
  return {
    feed,
    owner,
    confidence: 'exact',
    at: waiting ?? session.since,
    says: says.kind === 'idle' && session.turn.openedAt === undefined ? { kind: 'silent' } : says,
    turn: session.turn,
    life: session.phase === 'removed' ? 'dead' : 'alive',
    detail: session.seen,
  };
}

/** Whether two states of one session look the same in a list; deltas by the hundred change nothing. */
export function looksSame(a: LiveSession | undefined, b: LiveSession): boolean {
  return a !== undefined && signature(a) === signature(b);
}

function signature(session: LiveSession): string {
  const { info, turn } = session;
  return JSON.stringify([stateOfLive(session), turn, info, [...session.waits.keys()]]);
}
