/**
 * What a stream-json conversation says about its session: identity, model and state, line by line (S-710 … S-715).
 * Pure. Of a line only the fields named here are looked at; contents never are (S-706, S-710).
 */
import { WRAP } from '../../../runtime/limits.ts';
import { subjectOf } from '../tools.ts';
import { objectOf, textOf } from '../values.ts';
import type { Side } from './tee.ts';

/** States that a wrapper reports (S-714, S-716). */
export type EffectiveState = 'idle' | 'working' | 'waiting_for_permission' | 'waiting_for_input';

/** Prompts that no `result` has answered yet: three levels, not a count (S-713). */
type Prompts = 'answered' | 'pending' | 'queued';

export interface StreamState {
  readonly sessionId: string | undefined;
  /** The id comes from `system/init`, not from a line before it. */
  readonly named: boolean;
  readonly cwd: string | undefined;
  readonly model: string | undefined;
  readonly base: 'idle' | 'working';
  readonly prompts: Prompts;
  /** Requests without an answer, and what each waits for. */
  readonly asks: ReadonlyMap<string, 'permission' | 'input'>;
}

/** What a line had that was not understood, for the diagnostics (S-741). */
export type LineNote = 'parse_failure' | 'unknown_control' | 'missing_permission_id' | 'permission_cap';

export interface StreamStep {
  readonly state: StreamState;
  readonly note?: LineNote;
}

export const NEW_STREAM: StreamState = {
  sessionId: undefined,
  named: false,
  cwd: undefined,
  model: undefined,
  base: 'idle',
  prompts: 'answered',
  asks: new Map(),
};

/** Permission first, then a question (S-714, R-06), so that streaming text can't hide either. */
export function effectiveState(state: StreamState): EffectiveState {
  const asks = [...state.asks.values()];
  if (asks.includes('permission')) return 'waiting_for_permission';
  return asks.includes('input') ? 'waiting_for_input' : state.base;
}

/** Control requests that say nothing about the state, of either side. Others are counted as unknown. */
const KNOWN_CONTROLS = new Set([
  'initialize',
  'interrupt',
  'set_permission_mode',
  'set_max_thinking_tokens',
  'hook_callback',
  'mcp_message',
  'mcp_status',
  'mcp_set_servers',
  'mcp_reconnect',
  'rewind_files',
  'elicitation',
  'apply_flag_settings',
]);

type Fields = Readonly<Record<string, unknown>>;

/** The state after a line. Terminal bytes may be glued before its JSON (S-710). */
export function observeLine(state: StreamState, side: Side, text: string): StreamStep {
  const start = text.indexOf('{');
  if (start < 0) return { state };
  const fields = parse(text.slice(start));
  if (!fields) return { state, note: 'parse_failure' };
  const known = identified(state, side, fields);
  return side === 'editor' ? fromEditor(known, fields) : fromClaude(known, fields);
}

function parse(text: string): Fields | undefined {
  try {
    return objectOf(JSON.parse(text));
  } catch {
    // No JSON: counted by the caller.
    return undefined;
  }
}

const filled = (value: unknown): string | undefined => (textOf(value)?.trim() ? textOf(value) : undefined);

/**
 * The id of `system/init` counts, whatever stood before: with `--continue` the lines of hooks carry an id that is
 * thrown away (2.1.332), and `/clear` gives the process another session. Otherwise the first id and the first
 * folder stay (S-711).
 */
function identified(state: StreamState, side: Side, fields: Fields): StreamState {
  const isInit = side === 'claude' && isSystem(fields, 'init');
  const ofHook = fields['type'] === 'system' && textOf(fields['subtype'])?.startsWith('hook_') === true;
  const id = ofHook ? undefined : filled(fields['session_id']);
  return {
    ...state,
    sessionId: isInit ? (id ?? state.sessionId) : (state.sessionId ?? id),
    named: state.named || (isInit && id !== undefined),
    cwd: state.cwd ?? filled(fields['cwd']),
    model: filled(fields['model']) ?? state.model,
  };
}

function isSystem(fields: Fields, subtype: string): boolean {
  return fields['type'] === 'system' && fields['subtype'] === subtype;
}

function fromEditor(state: StreamState, fields: Fields): StreamStep {
  switch (fields['type']) {
    case 'user': {
      const behind = state.base === 'working' || state.prompts === 'queued';
      return { state: { ...state, base: 'working', prompts: behind ? 'queued' : 'pending' } };
    }
    case 'control_response': {
      const id = requestId(fields, 'response');
      return id === undefined ? { state, note: 'missing_permission_id' } : { state: answered(state, id) };
    }
    case 'control_request':
      return editorAsks(state, fields);
    case 'system':
      return { state: afterInit(state, fields) };
    default:
      return { state };
  }
}

function editorAsks(state: StreamState, fields: Fields): StreamStep {
  const request = objectOf(fields['request']);
  const subtype = textOf(request?.['subtype']) ?? '';
  if (subtype !== 'set_model')
    return KNOWN_CONTROLS.has(subtype) ? { state } : { state, note: 'unknown_control' };
  const model = filled(request?.['model']);
  return { state: model === undefined || model === 'default' ? state : { ...state, model } };
}

function fromClaude(state: StreamState, fields: Fields): StreamStep {
  switch (fields['type']) {
    case 'assistant':
    case 'stream_event':
      return { state: { ...state, base: 'working' } };
    case 'result': {
      const prompts = state.prompts === 'queued' ? 'pending' : 'answered';
      return { state: { ...state, base: 'idle', prompts, asks: NEW_STREAM.asks } };
    }
    case 'control_request':
      return claudeAsks(state, fields);
    case 'control_cancel_request': {
      // Answered elsewhere, or no longer wanted: nobody waits for it any more.
      const id = filled(fields['request_id']);
      return { state: id === undefined ? state : answered(state, id) };
    }
    case 'system':
      return { state: afterInit(state, fields) };
    default:
      return { state };
  }
}

function afterInit(state: StreamState, fields: Fields): StreamState {
  if (!isSystem(fields, 'init')) return state;
  return { ...state, base: state.prompts === 'answered' ? 'idle' : 'working' };
}

function claudeAsks(state: StreamState, fields: Fields): StreamStep {
  const request = objectOf(fields['request']);
  const subtype = textOf(request?.['subtype']) ?? '';
  if (subtype !== 'can_use_tool')
    return KNOWN_CONTROLS.has(subtype) ? { state } : { state, note: 'unknown_control' };
  const id = requestId(fields, 'request');
  if (id === undefined) return { state, note: 'missing_permission_id' };
  if (state.asks.size >= WRAP.asks && !state.asks.has(id)) return { state, note: 'permission_cap' };
  // A question is asked by the same request as a permission; its tool's name tells.
  const kind = subjectOf(textOf(request?.['tool_name'])) === 'question' ? 'input' : 'permission';
  return { state: { ...state, asks: new Map(state.asks).set(id, kind) } };
}

/** The id in the body, else the one beside it (S-712). */
function requestId(fields: Fields, body: 'request' | 'response'): string | undefined {
  return filled(objectOf(fields[body])?.['request_id']) ?? filled(fields['request_id']);
}

function answered(state: StreamState, id: string): StreamState {
  if (!state.asks.has(id)) return state;
  const asks = new Map(state.asks);
  asks.delete(id);
  return { ...state, asks };
}

const CHATTER = [Buffer.from('{"type":"stream_event"'), Buffer.from('{"type":"assistant"')];

/** Whether a line of Claude's can change nothing, told by its first bytes: text that streams while it works. */
export function isChatter(state: StreamState, side: Side, start: Uint8Array): boolean {
  if (
    side !== 'claude' ||
    state.base !== 'working' ||
    state.sessionId === undefined ||
    state.cwd === undefined
  )
    return false;
  return CHATTER.some((words) => words.equals(start.subarray(0, words.length)));
}
