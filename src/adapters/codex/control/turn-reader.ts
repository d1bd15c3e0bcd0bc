import type { TurnEnd } from '../../../runtime/control.ts';
import { asFields, type Fields, listOf, objectOf, textOf } from '../fields.ts';

/** What a notification means for one turn. */
export type TurnStep =
  | {
      readonly kind: 'progress';
      readonly doing: 'running' | 'streaming' | 'tool' | 'retrying';
      readonly text?: string;
      readonly tool?: string;
    }
  | { readonly kind: 'end'; readonly end: TurnEnd };

/** Follows one turn of one thread through what a server tells (0.171). */
export interface TurnReader {
  /** The server has said which turn it is. Gives what was told of it before that. */
  began(turnId: string): readonly TurnStep[];
  read(method: string, params: Fields): readonly TurnStep[];
  /** The turn as the server keeps it, asked for after the connection was lost: its end, if it has one. */
  kept(turn: Fields): TurnStep | undefined;
  readonly turnId: string | undefined;
}

/** Notifications that may come before the answer that names the turn. */
const EARLY = 512;

/** A reader for the thread's next turn of ours. */
export function createTurnReader(threadId: string): TurnReader {
  const state = {
    turnId: undefined as string | undefined,
    over: false,
    early: [] as { method: string; params: Fields }[],
    streaming: undefined as string | undefined,
    last: undefined as string | undefined,
    final: undefined as string | undefined,
  };

  const finish = (turn: Fields): TurnStep => {
    state.over = true;
    for (const item of listOf(turn, 'items')) keepText(asFields(item));
    return { kind: 'end', end: endOf(turn, state.final ?? state.last) };
  };

  const keepText = (item: Fields | undefined): string | undefined => {
    if (textOf(item, 'type') !== 'agentMessage') return undefined;
    const said = textOf(item, 'text');
    if (said === undefined) return undefined;
    state.last = said;
    if (textOf(item, 'phase') === 'final_answer') state.final = said;
    return said;
  };

  const step = (method: string, params: Fields): readonly TurnStep[] => {
    switch (method) {
      case 'turn/started':
        return [{ kind: 'progress', doing: 'running' }];
      case 'turn/completed':
        return [finish(objectOf(params, 'turn') ?? {})];
      case 'item/started':
        return startOf(objectOf(params, 'item'));
      case 'item/agentMessage/delta':
        return streams(textOf(params, 'itemId') ?? '');
      case 'item/completed': {
        const item = objectOf(params, 'item');
        const said = keepText(item);
        if (said === undefined) return isTool(item) ? [{ kind: 'progress', doing: 'running' }] : [];
        return [{ kind: 'progress', doing: 'running', text: said }];
      }
      case 'error':
        return params['willRetry'] === true ? [retryOf(objectOf(params, 'error'))] : [];
      default:
        return [];
    }
  };

  const streams = (itemId: string): readonly TurnStep[] => {
    if (state.streaming === itemId) return [];
    state.streaming = itemId;
    return [{ kind: 'progress', doing: 'streaming' }];
  };

  const read = (method: string, params: Fields): readonly TurnStep[] => {
    if (state.over || textOf(params, 'threadId') !== threadId) return [];
    if (state.turnId === undefined) {
      if (state.early.length < EARLY) state.early.push({ method, params });
      return [];
    }
    return turnOf(params) === state.turnId ? step(method, params) : [];
  };

  return {
    began(turnId) {
      state.turnId = turnId;
      return state.early.splice(0).flatMap(({ method, params }) => read(method, params));
    },
    read,
    kept(turn) {
      if (state.over || textOf(turn, 'status') === 'inProgress') return undefined;
      return finish(turn);
    },
    get turnId() {
      return state.turnId;
    },
  };
}

function turnOf(params: Fields): string | undefined {
  return textOf(params, 'turnId') ?? textOf(objectOf(params, 'turn'), 'id');
}

/** Items that are work and no words. */
const TOOLS: Readonly<Record<string, string>> = {
  commandExecution: 'command',
  fileChange: 'file change',
  mcpToolCall: 'tool',
  dynamicToolCall: 'tool',
  webSearch: 'web search',
  imageGeneration: 'image',
  collabAgentToolCall: 'sub-agent',
};

function isTool(item: Fields | undefined): boolean {
  return TOOLS[textOf(item, 'type') ?? ''] !== undefined;
}

function startOf(item: Fields | undefined): readonly TurnStep[] {
  const kind = TOOLS[textOf(item, 'type') ?? ''];
  if (kind === undefined) return [];
  const [server, tool] = [textOf(item, 'server'), textOf(item, 'tool')];
  const name = tool === undefined ? kind : server === undefined ? tool : `${server}.${tool}`;
  return [{ kind: 'progress', doing: 'tool', tool: name }];
}

function retryOf(error: Fields | undefined): TurnStep {
  const words = textOf(error, 'message') ?? 'the request to the model is repeated';
  return { kind: 'progress', doing: 'retrying', text: words };
}

/** Ends that are a limit of the account's or of the model's, not a fault. */
const LIMITS: ReadonlySet<string> = new Set([
  'contextWindowExceeded',
  'sessionBudgetExceeded',
  'usageLimitExceeded',
]);

/** How a turn ended, by its own status: `completed` with an error does not exist on this interface (0.171). */
function endOf(turn: Fields, text: string | undefined): TurnEnd {
  const error = objectOf(turn, 'error');
  const words = textOf(error, 'message');
  switch (textOf(turn, 'status')) {
    case 'completed':
      return { outcome: 'completed', ...(text === undefined ? {} : { text }) };
    case 'interrupted':
      return { outcome: 'stopped', ...(words === undefined ? {} : { error: words }) };
    default: {
      const limited = LIMITS.has(textOf(error, 'codexErrorInfo') ?? '');
      return { outcome: limited ? 'limited' : 'failed', error: words ?? 'Codex gives no reason' };
    }
  }
}
