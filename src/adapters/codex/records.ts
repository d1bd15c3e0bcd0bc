import type { ContextUsage } from '../../runtime/session/session.ts';
import type { ToolCall } from '../../runtime/session/state.ts';
import { asFields, type Fields, listOf, numberOf, objectOf, textOf, timeOf } from './fields.ts';
import { type SessionMeta, sessionMetaOf } from './meta.ts';
import { ASKING_TOOL, contentText, toolCallOf } from './tools.ts';

/**
 * Rollout records of all four generations, reduced to what states and facts need:
 *
 * - paginated (0.171): `{timestamp, ordinal, type, payload}`, `event_msg/item_completed`;
 * - legacy (0.104): the same without `ordinal`, with `user_message`, `agent_message`, `agent_reasoning`;
 * - earlier envelopes without `task_started` and `task_complete`;
 * - bare (X8): the response item itself is the line, `{type: "message", …}`, after a first line
 *   `{id, timestamp, instructions, git}`.
 *
 * What is not known changes nothing (`other`).
 */
export type RecordBody =
  | { readonly kind: 'meta'; readonly meta: SessionMeta }
  | { readonly kind: 'turn-started'; readonly turnId?: string; readonly modern: boolean }
  | {
      readonly kind: 'turn-ended';
      readonly turnId?: string;
      readonly startedAt?: number;
      readonly failed: boolean;
      readonly error?: string;
      /** Codex's own word for the error, `usage_limit_exceeded` for example. */
      readonly errorCode?: string;
      /** No last message of the agent. */
      readonly silent: boolean;
      /** Written by a version that would have written an error (`started_at` is its mark). */
      readonly modern: boolean;
    }
  | {
      readonly kind: 'turn-aborted';
      readonly turnId?: string;
      readonly startedAt?: number;
      readonly modern: boolean;
    }
  | { readonly kind: 'rolled-back' }
  /** The model's own words or thoughts. */
  | { readonly kind: 'said' }
  /** A prompt of the user's, in mid-turn too (steering). `text` only where it is the user's own. */
  | { readonly kind: 'prompt'; readonly text?: string }
  | {
      readonly kind: 'called';
      /** Absent for calls that come with their result. */
      readonly callId?: string;
      readonly tool: ToolCall;
      readonly asks: boolean;
    }
  | { readonly kind: 'returned'; readonly callId?: string }
  /** The finished item of a tool, which comes before the call's output, or long after it and after the turn. */
  | {
      readonly kind: 'item-done';
      readonly turnId?: string;
      /** The call's id, or an id of its own where a script made the call (code-mode models). */
      readonly itemId?: string;
      readonly startedAt?: number;
    }
  | { readonly kind: 'context'; readonly model?: string; readonly cwd?: string }
  | { readonly kind: 'usage'; readonly usage: ContextUsage }
  | { readonly kind: 'compacted' }
  | { readonly kind: 'other' };

export type RolloutRecord = RecordBody & {
  /** Epoch milliseconds; bare records carry none. */
  readonly at?: number;
  /** Number of the record in its thread, in paginated files (does not begin at 0 in forks and segments). */
  readonly ordinal?: number;
  /** The line is a bare response item of the oldest format. */
  readonly bare?: true;
};

const OTHER: RecordBody = { kind: 'other' };

/** Reads one parsed line. Never throws; a value that is no record is `other`. */
export function toRecord(value: unknown): RolloutRecord {
  const line = asFields(value);
  if (!line) return OTHER;
  const at = timeOf(line, 'timestamp');
  const ordinal = numberOf(line, 'ordinal');
  const payload = objectOf(line, 'payload');
  const frame = { ...(at === undefined ? {} : { at }), ...(ordinal === undefined ? {} : { ordinal }) };
  if (!payload) return { ...bareRecord(line), ...frame, bare: true };
  return { ...envelopeRecord(textOf(line, 'type') ?? '', payload), ...frame };
}

function envelopeRecord(type: string, payload: Fields): RecordBody {
  switch (type) {
    case 'session_meta':
      return metaRecord(payload);
    case 'event_msg':
      return eventRecord(textOf(payload, 'type') ?? '', payload);
    case 'response_item':
      return itemRecord(textOf(payload, 'type') ?? '', payload);
    case 'turn_context':
      return contextRecord(payload);
    case 'compacted':
      return { kind: 'compacted' };
    case 'retained_context':
      // The answer to a question is kept before the call's output is written (scenario `tui-ask-user`).
      return textOf(payload, 'type') === 'verified_answer' ? returned(payload) : OTHER;
    default:
      return OTHER;
  }
}

function metaRecord(payload: Fields): RecordBody {
  const meta = sessionMetaOf(payload);
  return meta ? { kind: 'meta', meta } : OTHER;
}

function eventRecord(type: string, payload: Fields): RecordBody {
  const turnId = textOf(payload, 'turn_id');
  const turn = turnId ? { turnId } : {};
  const modern = numberOf(payload, 'started_at') !== undefined;
  switch (type) {
    case 'task_started':
    case 'turn_started':
      return { kind: 'turn-started', ...turn, modern };
    case 'task_complete':
    case 'turn_complete':
      return endRecord(payload, modern);
    case 'turn_aborted':
      return { kind: 'turn-aborted', ...turn, ...startOf(payload), modern };
    case 'thread_rolled_back':
      return { kind: 'rolled-back' };
    case 'item_completed':
      return completedItem(objectOf(payload, 'item'), payload);
    case 'user_message':
      return promptRecord(textOf(payload, 'message'));
    case 'agent_message':
    case 'agent_reasoning':
      return { kind: 'said' };
    case 'token_count':
      return usageRecord(objectOf(payload, 'info'));
    case 'thread_settings_applied':
      return contextRecord(objectOf(payload, 'thread_settings'));
    default:
      return OTHER;
  }
}

/** `started_at` is in whole seconds. */
function startOf(payload: Fields): { startedAt?: number } {
  const seconds = numberOf(payload, 'started_at');
  return seconds === undefined ? {} : { startedAt: seconds * 1000 };
}

/** A failed turn is a completed one with an error (`error-*`); nothing else on disk says so. */
function endRecord(payload: Fields, modern: boolean): RecordBody {
  const error = payload['error'];
  const failed = error !== undefined && error !== null;
  const details = asFields(error);
  const message = typeof error === 'string' ? error : textOf(details, 'message');
  const code = errorCodeOf(details?.['codex_error_info']);
  const turnId = textOf(payload, 'turn_id');
  return {
    kind: 'turn-ended',
    ...(turnId ? { turnId } : {}),
    ...startOf(payload),
    failed,
    ...(failed && message ? { error: message } : {}),
    ...(failed && code ? { errorCode: code } : {}),
    silent: textOf(payload, 'last_agent_message') === undefined,
    modern,
  };
}

/** A word, or an object whose only key is the word. */
function errorCodeOf(info: unknown): string | undefined {
  if (typeof info === 'string') return info;
  const key = Object.keys(asFields(info) ?? {})[0];
  return key;
}

const TOOL_ITEMS: ReadonlySet<string> = new Set([
  'CommandExecution',
  'FileChange',
  'McpToolCall',
  'DynamicToolCall',
  'CollabAgentToolCall',
  'SubAgentActivity',
  'WebSearch',
  'ImageView',
  'ImageGeneration',
]);

function completedItem(item: Fields | undefined, payload: Fields): RecordBody {
  const type = textOf(item, 'type') ?? '';
  if (type === 'AgentMessage' || type === 'Reasoning') return { kind: 'said' };
  if (type === 'UserMessage') return promptRecord(contentText(listOf(item, 'content')));
  // A Stop hook's "go on" is no prompt of the user's, and the turn goes on with it.
  if (type === 'HookPrompt') return { kind: 'prompt' };
  if (!TOOL_ITEMS.has(type)) return OTHER;
  const turnId = textOf(payload, 'turn_id');
  const itemId = textOf(item, 'id');
  const startedAt = numberOf(payload, 'started_at_ms');
  return {
    kind: 'item-done',
    ...(turnId ? { turnId } : {}),
    ...(itemId ? { itemId } : {}),
    ...(startedAt === undefined ? {} : { startedAt }),
  };
}

function itemRecord(type: string, payload: Fields): RecordBody {
  const tool = toolCallOf(type, payload);
  if (tool) return callRecord(type, payload, tool);
  switch (type) {
    case 'message':
      return textOf(payload, 'role') === 'assistant' ? { kind: 'said' } : OTHER;
    case 'reasoning':
      return { kind: 'said' };
    case 'function_call_output':
    case 'custom_tool_call_output':
    case 'local_shell_call_output':
    case 'tool_search_output':
      return returned(payload);
    default:
      return OTHER;
  }
}

function callRecord(type: string, payload: Fields, tool: ToolCall): RecordBody {
  // Hosted tools run at the model's side: their record is written when they are over.
  const hosted = type === 'web_search_call' || type === 'image_generation_call';
  const callId = hosted ? undefined : (textOf(payload, 'call_id') ?? textOf(payload, 'id'));
  return { kind: 'called', ...(callId ? { callId } : {}), tool, asks: tool.name === ASKING_TOOL };
}

function returned(payload: Fields): RecordBody {
  const callId = textOf(payload, 'call_id');
  return { kind: 'returned', ...(callId ? { callId } : {}) };
}

function promptRecord(text: string | undefined): RecordBody {
  return text && !isInjected(text) ? { kind: 'prompt', text } : { kind: 'prompt' };
}

function contextRecord(fields: Fields | undefined): RecordBody {
  const model = textOf(fields, 'model');
  const cwd = textOf(fields, 'cwd');
  return { kind: 'context', ...(model ? { model } : {}), ...(cwd ? { cwd } : {}) };
}

/** The last request's tokens are what fills the context now; the total only ever grows. */
function usageRecord(info: Fields | undefined): RecordBody {
  const usedTokens = numberOf(objectOf(info, 'last_token_usage'), 'total_tokens');
  const maxTokens = numberOf(info, 'model_context_window');
  if (usedTokens === undefined) return OTHER;
  if (maxTokens === undefined || maxTokens <= 0) return { kind: 'usage', usage: { usedTokens } };
  const usedPercent = Math.min(100, Math.round((usedTokens / maxTokens) * 100));
  return { kind: 'usage', usage: { usedTokens, maxTokens, usedPercent } };
}

/** Messages of role `user` that the program writes itself: context, reminders, instructions (X1). */
const INJECTED =
  /^\s*(?:<(?:environment_context|user_instructions|user_shell_command|turn_aborted|hook_prompt|permissions|skills?|skills_instructions|subagent_notification|collaboration_mode|multi_agent_mode|goal_context|recommended_plugins|INSTRUCTIONS)[\s>_]|# AGENTS\.md instructions\b)/i;

/** Whether a message of role `user` is the program's own text. */
export function isInjected(text: string): boolean {
  return INJECTED.test(text);
}

function bareRecord(line: Fields): RecordBody {
  const type = textOf(line, 'type');
  if (type === undefined) return textOf(line, 'id') ? metaRecord(line) : OTHER;
  if (type !== 'message' || textOf(line, 'role') !== 'user') return itemRecord(type, line);
  const text = contentText(listOf(line, 'content'));
  if (!isInjected(text)) return text === '' ? OTHER : { kind: 'prompt', text };
  const cwd = /<cwd>([^<]+)<\/cwd>/.exec(text)?.[1] ?? /Current working directory: (.+)/.exec(text)?.[1];
  return cwd ? { kind: 'context', cwd: cwd.trim() } : OTHER;
}
