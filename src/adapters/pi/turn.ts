import type { TurnFacts } from '../../runtime/session/evidence.ts';
import {
  type Outcome,
  RUNNING,
  restedWith,
  type SessionState,
  type ToolCall,
  UNKNOWN,
} from '../../runtime/session/state.ts';
import type { Entry } from './entries.ts';

/** What the entries of one file say of its newest turn. Times are epoch milliseconds. */
export interface Turn {
  /** The state if its owner lives: an open turn is at work. */
  readonly state: SessionState;
  readonly at?: number;
  readonly facts: TurnFacts;
  readonly model?: string;
  readonly usedTokens?: number;
  /** The newest entry that bears a state, for `session-why`. */
  readonly last: string;
}

export const NO_TURN: Turn = { state: UNKNOWN, facts: {}, last: 'none' };

/** Whether the entries reach back far enough: to the prompt of the newest turn, along the branch that counts. */
export function reachesPrompt(entries: readonly Entry[]): boolean {
  return branchOf(entries).some((entry) => entry.kind === 'user');
}

/**
 * The entries of the branch that the file stands on, newest first. A file is a tree: the leaf is its last line, and
 * what another branch says of a turn is past (pi 1.6.0).
 */
export function branchOf(entries: readonly Entry[]): readonly Entry[] {
  const byId = new Map(
    entries.flatMap((entry) => (entry.id === undefined ? [] : [[entry.id, entry] as const])),
  );
  const branch: Entry[] = [];
  const seen = new Set<Entry>();
  let at: Entry | undefined = entries.findLast((entry) => entry.kind !== 'session');
  while (at && !seen.has(at)) {
    seen.add(at);
    branch.push(at);
    at = at.kind === 'session' || at.parentId === undefined ? undefined : byId.get(at.parentId);
  }
  return branch;
}

/** What came of the newest turn, by the newest message of the branch. */
export function readTurn(entries: readonly Entry[]): Turn {
  const branch = branchOf(entries);
  const newest = branch.find(isMessage);
  const named = branch.find((entry) => (entry.kind === 'assistant' || entry.kind === 'model') && entry.model);
  const model = named && 'model' in named && named.model ? { model: named.model } : {};
  if (!newest) return { ...NO_TURN, ...model };
  const openedAt = branch.find((entry) => entry.kind === 'user')?.at;
  const opened: TurnFacts = openedAt === undefined ? {} : { openedAt };
  const used = branch.find((entry) => entry.kind === 'assistant' && entry.usedTokens !== undefined);
  const base = {
    ...model,
    ...(newest.at === undefined ? {} : { at: newest.at }),
    ...(used?.kind === 'assistant' && used.usedTokens !== undefined ? { usedTokens: used.usedTokens } : {}),
    last: wordOf(newest),
  };
  const end = endOf(newest, branch);
  if (end === 'retrying') return { ...base, state: RETRYING, facts: opened };
  if (end === undefined) return { ...base, state: workOf(newest), facts: opened };
  if (end === 'unknown') return { ...base, state: UNKNOWN, facts: opened };
  return {
    ...base,
    state: restedWith(end),
    facts: {
      ...opened,
      ...(newest.at === undefined ? {} : { endedAt: newest.at }),
      end,
      ...(end === 'failed' && newest.kind === 'assistant' && newest.error ? { error: newest.error } : {}),
    },
  };
}

const RETRYING: SessionState = { kind: 'working', doing: 'running', retrying: true };

type Message = Extract<Entry, { readonly kind: 'user' | 'assistant' | 'tool-result' }>;

function isMessage(entry: Entry): entry is Message {
  return entry.kind === 'user' || entry.kind === 'assistant' || entry.kind === 'tool-result';
}

function endOf(message: Message, branch: readonly Entry[]): Outcome | 'retrying' | 'unknown' | undefined {
  if (message.kind !== 'assistant') return undefined;
  switch (message.stop) {
    case 'stop':
      return 'completed';
    case 'length':
      return 'limited';
    case 'aborted':
      return 'stopped';
    case 'toolUse':
      return undefined;
    case 'error': {
      // A failed answer that is taken back is one attempt of several (json-retry).
      const retried = branch.some((entry) => entry.kind === 'context-edit' && entry.targetId === message.id);
      return retried ? 'retrying' : 'failed';
    }
    default:
      return 'unknown';
  }
}

function workOf(message: Message): SessionState {
  const tool: ToolCall | undefined = message.kind === 'assistant' ? message.tool : undefined;
  return tool ? { kind: 'working', doing: 'tool', tool } : RUNNING;
}

function wordOf(message: Message): string {
  return message.kind === 'assistant'
    ? `an answer that ended in ${message.stop ?? 'nothing'}`
    : `a ${message.kind}`;
}
