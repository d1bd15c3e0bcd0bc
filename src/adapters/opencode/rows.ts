import type { Claim } from '../../runtime/session/evidence.ts';
import type { Outcome, SessionState, ToolCall } from '../../runtime/session/state.ts';
import { RUNNING, restedWith, UNKNOWN, waitingOn } from '../../runtime/session/state.ts';
import { outcomeOf, readTurnError, subjectOfTool, type TurnError, toolCall } from './outcome.ts';
import { numberOf, objectOf, textOf } from './values.ts';

/** A message row, reduced. Times are epoch milliseconds. */
export interface MessageRow {
  readonly id: string;
  readonly role: 'user' | 'assistant';
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly parentId?: string;
  readonly completedAt?: number;
  readonly finish?: string;
  readonly error?: TurnError;
  readonly model?: string;
  readonly usedTokens?: number;
}

/** A part row, reduced; its text and outputs are never read. */
export interface PartRow {
  readonly updatedAt: number;
  readonly type: string;
  readonly tool?: PartTool;
}

export interface PartTool {
  readonly call: ToolCall;
  readonly status: string;
  /** Set once the tool really runs; a call that waits for its user has none. */
  readonly started: boolean;
  /** The user said no, or dismissed the question. */
  readonly refused: boolean;
}

/**
 * The newest turn of a session, as its rows state it. Small, and without content but for a call's
 * arguments and an error's line, which the index does not keep.
 */
export interface TurnRecord {
  readonly openedAt: number;
  /** The newest write that belongs to the turn. */
  readonly lastWriteAt: number;
  readonly end?: {
    readonly at: number;
    readonly outcome: Outcome;
    readonly error?: TurnError;
    /** Ended between two steps: another one follows within milliseconds, or the process died here. */
    readonly betweenSteps?: true;
  };
  /** The newest call that runs, or waits for its user. */
  readonly doing?: { readonly call: ToolCall; readonly started: boolean };
  /** The prompt is stored and nothing answers it yet: a cold server needs a second or two to begin (tricky case 10). */
  readonly unanswered?: true;
  /** The turn before an unanswered prompt. */
  readonly before?: TurnRecord;
  readonly promptId?: string;
  /** A turn of the `/api/session` routes, which `/session/status` never shows (tricky case 14). */
  readonly v2?: true;
}

/** Whether nobody has ended the turn, as far as the rows say: then it matters who lives. */
export function isOpen(turn: TurnRecord): boolean {
  return turn.end === undefined || turn.end.betweenSteps === true;
}

/** What is known of the processes that could run an open turn. */
export type OwnerVerdict = 'alive' | 'dead' | 'unknown';

/** A step that ended in tool calls is followed by the next one within this, milliseconds (seen: 4 to 7). */
export const STEP_GAP_MS = 5_000;
/** A prompt that nothing answers is taken for one that never will be (`noReply`, an unknown model), milliseconds. */
export const UNANSWERED_TTL_MS = 300_000;

/** Parts that are looked at to say what an open turn does; the newest ones. */
export const PARTS_PER_TURN = 24;

/**
 * The newest turn of a session from its newest messages (newest first, at least the newest user message and what
 * was written after it) and the newest parts of the newest answer. Judges by the newest message, so an older
 * one that a killed process left open says nothing (tricky case 3).
 */
export function newestTurn(
  messages: readonly MessageRow[],
  parts: readonly PartRow[],
): TurnRecord | undefined {
  const [newest] = messages;
  if (!newest) return undefined;
  if (newest.role === 'user') {
    const answered = messages.slice(messages.findIndex((message) => message.role === 'assistant'));
    const before = answered[0]?.role === 'assistant' ? newestTurn(answered, parts) : undefined;
    const prompt = { openedAt: newest.createdAt, lastWriteAt: newest.updatedAt, promptId: newest.id };
    return { ...prompt, unanswered: true, ...(before ? { before } : {}) };
  }
  const prompt =
    messages.find((message) => message.id === newest.parentId) ??
    messages.find((message) => message.role === 'user');
  const lastWriteAt = Math.max(newest.updatedAt, ...parts.map((part) => part.updatedAt));
  const turn = {
    openedAt: Math.min(prompt?.createdAt ?? newest.createdAt, newest.createdAt),
    lastWriteAt,
    ...(prompt ? { promptId: prompt.id } : {}),
  };
  if (newest.completedAt === undefined && !newest.error) return { ...turn, ...openCall(parts) };
  return { ...turn, end: endOf(newest, parts, turn.openedAt) };
}

function endOf(
  answer: MessageRow,
  parts: readonly PartRow[],
  openedAt: number,
): NonNullable<TurnRecord['end']> {
  const outcome = outcomeOf({ ...answer, hasParts: parts.length > 0 });
  const refused = parts.some((part) => part.tool?.refused);
  return {
    at: Math.max(openedAt, answer.completedAt ?? answer.updatedAt),
    outcome,
    ...(outcome === 'failed' && answer.error ? { error: answer.error } : {}),
    ...(answer.finish === 'tool-calls' && !answer.error && !refused ? { betweenSteps: true } : {}),
  };
}

function openCall(parts: readonly PartRow[]): Pick<TurnRecord, 'doing'> {
  const running = parts.map((part) => part.tool).filter((tool) => tool?.status === 'running');
  // Several may run at once: one that needs its user is the one to show.
  const tool = running.find((candidate) => candidate && subjectOfTool(candidate.call.name)) ?? running[0];
  return tool ? { doing: { call: tool.call, started: tool.started } } : {};
}

/**
 * The claim of the rows. Without proof of who could run it an open turn is `unknown`, never `running`; an outcome
 * stands whoever lives (design rule 3, R-19).
 *
 * @param feed whose rows they are, for `session-why`
 * @param now epoch milliseconds
 */
export function turnClaim(turn: TurnRecord, owner: OwnerVerdict, feed: string, now: number): Claim {
  const { end } = turn;
  const goesOn = end?.betweenSteps && owner === 'alive' && now - end.at < STEP_GAP_MS;
  if (end && !goesOn) {
    return {
      feed,
      confidence: 'inferred',
      at: end.at,
      says: restedWith(end.outcome),
      turn: {
        openedAt: turn.openedAt,
        endedAt: end.at,
        end: end.outcome,
        ...(end.error ? { error: end.error.text ?? end.error.name } : {}),
      },
      detail: end.betweenSteps
        ? 'its last step ended in tool calls and none followed'
        : `its newest turn ${end.outcome}`,
    };
  }
  if (owner === 'dead') return leftClaim(turn, feed);
  return {
    feed,
    confidence: 'inferred',
    at: turn.lastWriteAt,
    says: owner === 'unknown' ? UNKNOWN : openState(turn),
    turn: { openedAt: turn.openedAt },
    ...(turn.unanswered ? { staleAfterMs: UNANSWERED_TTL_MS } : {}),
    detail: openDetail(turn, owner),
  };
}

/** An open turn that nobody works on any more, whoever else lives: it was cut. */
function leftClaim(turn: TurnRecord, feed: string): Claim {
  const at = turn.lastWriteAt;
  return {
    feed,
    confidence: 'inferred',
    at,
    says: restedWith('stopped'),
    turn: { openedAt: turn.openedAt, endedAt: at, end: 'stopped' },
    detail: `${describeOpen(turn)}, and nobody works on it any more`,
  };
}

function openState(turn: TurnRecord): SessionState {
  if (!turn.doing) return RUNNING;
  const subject = subjectOfTool(turn.doing.call.name);
  return subject
    ? waitingOn(subject, turn.doing.call)
    : { kind: 'working', doing: 'tool', tool: turn.doing.call };
}

function openDetail(turn: TurnRecord, owner: OwnerVerdict): string {
  const what = describeOpen(turn);
  return owner === 'unknown' ? `${what}; whether a process still works on it can't be told` : what;
}

function describeOpen({ doing, unanswered }: TurnRecord): string {
  if (unanswered) return 'its newest prompt has no answer yet';
  if (!doing) return 'its newest answer is unfinished';
  if (subjectOfTool(doing.call.name)) return `asks through the tool ${doing.call.name}`;
  return doing.started
    ? `the tool ${doing.call.name} runs`
    : `the tool ${doing.call.name} is open and has not begun: perhaps it waits for a permission`;
}

/** Reads a message from its parsed data and the columns beside it; `undefined` for what is neither role. */
export function readMessage(
  id: string,
  createdAt: number,
  updatedAt: number,
  data: unknown,
): MessageRow | undefined {
  const raw = objectOf(data);
  const role = raw?.['role'];
  if (!raw || (role !== 'user' && role !== 'assistant')) return undefined;
  const parentId = textOf(raw['parentID']);
  const completedAt = numberOf(objectOf(raw['time'])?.['completed']);
  const finish = textOf(raw['finish']);
  const error = readTurnError(raw['error']);
  return {
    id,
    role,
    createdAt,
    updatedAt,
    ...(parentId ? { parentId } : {}),
    ...(completedAt === undefined ? {} : { completedAt }),
    ...(finish ? { finish } : {}),
    ...(error ? { error } : {}),
  };
}

/** The words OpenCode 1.18.33 leaves in a refused call's `error`; a rule that denies has others, and the turn goes on. */
const REFUSED = /\b(?:rejected permission|dismissed)\b/i;

/** Reads a part from its parsed data. */
export function readPart(updatedAt: number, data: unknown): PartRow | undefined {
  const raw = objectOf(data);
  const type = textOf(raw?.['type']);
  if (!raw || type === undefined) return undefined;
  const name = type === 'tool' ? textOf(raw['tool']) : undefined;
  const state = objectOf(raw['state']);
  if (name === undefined || !state) return { updatedAt, type };
  const error = textOf(state['error']);
  return {
    updatedAt,
    type,
    tool: {
      call: toolCall(name, state['input']),
      status: textOf(state['status']) ?? '',
      started: objectOf(state['metadata']) !== undefined,
      refused: state['status'] === 'error' && error !== undefined && REFUSED.test(error),
    },
  };
}
