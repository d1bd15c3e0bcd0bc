import type { Claim } from '../../runtime/session/evidence.ts';
import { redact } from '../../runtime/session/redact.ts';
import type { ContextUsage } from '../../runtime/session/session.ts';
import type { SessionState } from '../../runtime/session/state.ts';
import { clip, oneLine } from '../../runtime/session/text.ts';
import type { SessionMeta } from './meta.ts';
import type { Rollout, TurnContext } from './rollout.ts';
import { NO_TURN, type Turn, turnState } from './turn.ts';

/** One thread, put together from its files in the order of its history. */
export interface ThreadHistory {
  readonly meta?: SessionMeta;
  readonly turn: Turn;
  readonly prompt?: string;
  /** Of the newest turn whose model and folder were read. */
  readonly context?: TurnContext;
  /** Of the first turn. */
  readonly firstContext?: TurnContext;
  readonly usage?: ContextUsage;
  readonly bare: boolean;
}

/**
 * One row from all segments: the newest file is the tail. A segment that a rewind has just begun holds no turn, and
 * the thread keeps the state of what came before (`tui-backtrack`).
 */
export function joinSegments(rollouts: readonly Rollout[]): ThreadHistory {
  const newestFirst = [...rollouts].reverse();
  const first = <K extends keyof Rollout>(key: K, from: readonly Rollout[]) =>
    from.find((one) => one[key])?.[key];
  const turn = newestFirst.find((one) => one.turn.phase !== 'none')?.turn ?? rollouts.at(-1)?.turn ?? NO_TURN;
  const lastAt = Math.max(...rollouts.map((one) => one.turn.lastAt ?? 0));
  const meta = first('meta', rollouts);
  const prompt = first('prompt', rollouts);
  const context = first('context', newestFirst);
  const firstContext = first('firstContext', rollouts);
  const usage = first('usage', newestFirst);
  const bare = rollouts.at(0)?.bare ?? false;
  return {
    ...(meta ? { meta } : {}),
    turn: bare ? undated(turn) : lastAt > 0 ? { ...turn, lastAt } : turn,
    ...(prompt ? { prompt } : {}),
    ...(context ? { context } : {}),
    ...(firstContext ? { firstContext } : {}),
    ...(usage ? { usage } : {}),
    bare,
  };
}

/** Bare records carry no times; what their first line says is only the start of the thread. */
function undated(turn: Turn): Turn {
  const { openedAt: _o, endedAt: _e, doingAt: _d, answeredAt: _a, lastAt: _l, ...rest } = turn;
  return rest;
}

/** What is known around the records. Times are epoch milliseconds. */
export interface RecordContext {
  readonly now: number;
  /** When the file was last written, by the file system's clock. */
  readonly mtimeMs: number;
  /** When the process that holds the thread's lock was started. */
  readonly ownerStartedAt?: number | undefined;
  /** Lines that were left out. */
  readonly skipped?: number;
}

/** A record dated further ahead than this has a wrong clock (C21): then the file's time is taken. */
const FUTURE_SKEW_MS = 30_000;
/** How exactly the start of a process is known. */
const START_PRECISION_MS = 20;
const ERROR_LIMIT = 300;

/**
 * The standing claim of a thread's records. They never show an approval (S6): a call without a result is running, or
 * waits for its user, and only a hook or an app-server can tell.
 */
export function recordsClaim(turn: Turn, context: RecordContext): Claim {
  const clock = clockOf(context);
  const cut = cutByRestart(turn, context);
  const base = {
    feed: 'codex.rollout',
    confidence: 'inferred',
    ...(turn.explicit ? { ledger: true } : {}),
    ...(context.skipped ? { skipped: context.skipped } : {}),
  } as const;
  if (cut !== undefined) {
    return {
      ...base,
      at: cut,
      says: { kind: 'rested', outcome: 'stopped' },
      turn: { ...openedOf(turn, clock), endedAt: cut, end: 'stopped' },
      detail: 'an open turn from before its present owner was started: a former process left it',
    };
  }
  const says = turnState(turn);
  const answeredAt = clock(turn.answeredAt);
  return {
    ...base,
    at: clock(factTime(turn, says)) ?? Math.min(context.mtimeMs, context.now),
    says,
    turn: turnFacts(turn, clock),
    ...(answeredAt === undefined ? {} : { answeredAt }),
    detail: detailOf(turn, says),
  };
}

type Clock = (at: number | undefined) => number | undefined;

function clockOf(context: RecordContext): Clock {
  const fallback = Math.min(context.mtimeMs, context.now);
  return (at) => (at !== undefined && at > context.now + FUTURE_SKEW_MS ? fallback : at);
}

/** The activity of a thread, with a wrong clock corrected. */
export function activityOf(turn: Turn, context: RecordContext): number {
  return clockOf(context)(turn.lastAt) ?? Math.min(context.mtimeMs, context.now);
}

/**
 * A turn that was open before its thread's present owner was started is nobody's any more: it was never closed and
 * never will be (`kill9-midstream`). Returns the moment at which that is proven.
 */
function cutByRestart(turn: Turn, { ownerStartedAt }: RecordContext): number | undefined {
  if (turn.phase !== 'open' || ownerStartedAt === undefined) return undefined;
  const openedAt = turn.openedAt ?? turn.doingAt;
  return openedAt !== undefined && openedAt < ownerStartedAt - START_PRECISION_MS
    ? ownerStartedAt
    : undefined;
}

/** A wait counts from its call, work from its newest record, rest from its end. */
function factTime(turn: Turn, says: SessionState): number | undefined {
  if (turn.phase === 'ended') return turn.endedAt;
  if (says.kind === 'waiting') return turn.doingAt;
  return turn.lastAt;
}

function openedOf(turn: Turn, clock: Clock): { openedAt?: number } {
  const openedAt = clock(turn.openedAt);
  return openedAt === undefined ? {} : { openedAt };
}

function turnFacts(turn: Turn, clock: Clock): NonNullable<Claim['turn']> {
  const endedAt = clock(turn.endedAt);
  if (turn.phase !== 'ended' || endedAt === undefined) return openedOf(turn, clock);
  const error = errorText(turn);
  return {
    ...openedOf(turn, clock),
    endedAt,
    end: turn.end ?? 'completed',
    ...(error ? { error } : {}),
  };
}

/** Codex's own code `other` says nothing to a person. */
const NAMELESS = 'an error that has no name of its own';

/** The error's text, or where only its code was kept, the code in words. */
function errorText(turn: Turn): string | undefined {
  if (turn.end !== 'failed') return undefined;
  const text = turn.error ?? (turn.errorCode === 'other' ? NAMELESS : turn.errorCode?.replaceAll('_', ' '));
  return text === undefined ? undefined : clip(redact(oneLine(text)), ERROR_LIMIT);
}

function detailOf(turn: Turn, says: SessionState): string {
  if (turn.phase === 'none') return 'no turn in the records';
  if (turn.phase === 'ended')
    return `newest turn event: ${turn.end}${turn.explicit ? '' : ', inferred from its last message'}`;
  if (says.kind === 'waiting')
    return `call ${says.tool?.name ?? ''} without a result: a question to the user`;
  if (says.kind === 'working' && says.doing === 'tool') {
    return `call ${says.tool?.name ?? ''} without a result; records never show whether it waits for an approval`;
  }
  return `open turn, last seen ${turn.doing}`;
}
