import type { JournalAgent } from '../journal/record.ts';
import type { NotificationKind, PlainEvent, StopOutcome, WireEvent } from '../vocabulary.ts';

/** What a hook's payload means on the wire (S-410, S-420): at most one operation. */
export type HookOp =
  | {
      readonly op: 'observe';
      readonly event: WireEvent;
      readonly outcome?: StopOutcome;
      /** Background shells and jobs that still ran at a `stop`. */
      readonly background?: number;
    }
  | { readonly op: 'end'; readonly reason?: string };

/** The top-level fields of a payload, as they came. */
export type Fields = Readonly<Record<string, unknown>>;

/**
 * The fields that are looked at; everything else of a payload is never read (S-404). `error` is the name of a
 * failure, `trigger` of a compaction; of `background_tasks` only type and status count.
 */
export const FIELDS_READ: ReadonlySet<string> = new Set([
  'session_id',
  'hook_event_name',
  'cwd',
  'transcript_path',
  'source',
  'notification_type',
  'message',
  'reason',
  'model',
  'tool_name',
  'agent_id',
  'trigger',
  'error',
  'background_tasks',
]);

/** A text that is not blank. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined;
}

/** Maps a payload; `undefined` for an event that means nothing to us (S-405). */
export function mapHook(agent: JournalAgent, fields: Fields): HookOp | undefined {
  return agent === 'claude' ? mapClaude(fields) : mapCodex(fields);
}

const observe = (event: PlainEvent): HookOp => ({ op: 'observe', event });
const notify = (notification: NotificationKind): HookOp => ({ op: 'observe', event: { notification } });

/** S-410 and S-411, with. */
function mapClaude(fields: Fields): HookOp | undefined {
  switch (fields['hook_event_name']) {
    case 'SessionStart':
      return observe(fields['source'] === 'compact' ? 'transcript_discovered' : 'session_start');
    case 'UserPromptSubmit':
      return observe('user_prompt_submit');
    case 'PreToolUse':
      return observe('pre_tool_use');
    case 'PostToolUse':
    case 'PostToolUseFailure':
    case 'PostToolBatch':
    case 'PermissionDenied':
    case 'ElicitationResult':
    case 'SubagentStart':
    case 'PreCompact':
      return observe('post_tool_use');
    case 'SubagentStop':
      return observe(textOf(fields['agent_id']) ? 'post_tool_use' : 'transcript_discovered');
    case 'Stop':
      return stopOf(fields['background_tasks']);
    case 'StopFailure':
      return {
        op: 'observe',
        event: 'stop',
        outcome: fields['error'] === 'max_output_tokens' ? 'limited' : 'failed',
      };
    case 'PermissionRequest':
      return notify(fields['tool_name'] === 'AskUserQuestion' ? 'agent_needs_input' : 'permission_prompt');
    case 'Elicitation':
      return notify('agent_needs_input');
    case 'Notification':
      return notify(notificationKind(textOf(fields['notification_type']), textOf(fields['message'])));
    case 'PostCompact':
      return compactionEnd(fields);
    case 'SessionEnd':
      return endOf(fields);
    default:
      return undefined;
  }
}

/**
 * S-420, with: what a sub-agent's start says of its parent is nothing (S-414), and its stop releases what
 * it waited for (S-115). A thread without a file (`--ephemeral`) is none of ours. */
function mapCodex(fields: Fields): HookOp | undefined {
  if (fields['transcript_path'] === null) return undefined;
  switch (fields['hook_event_name']) {
    case 'SessionStart':
      return observe(fields['source'] === 'compact' ? 'transcript_discovered' : 'session_start');
    case 'UserPromptSubmit':
      return observe('user_prompt_submit');
    case 'PreToolUse':
      return asksUser(fields) ? notify('agent_needs_input') : observe('pre_tool_use');
    case 'PermissionRequest':
      return notify(asksUser(fields) ? 'agent_needs_input' : 'permission_prompt');
    case 'PostToolUse':
    case 'PreCompact':
      return observe('post_tool_use');
    case 'Stop':
      return observe('stop');
    case 'Interrupt':
      return { op: 'observe', event: 'stop', outcome: 'stopped' };
    case 'SubagentStart':
      return observe(ofSubAgent(fields) ? 'transcript_discovered' : 'post_tool_use');
    case 'SubagentStop':
      return observe(ofSubAgent(fields) ? 'post_tool_use' : 'transcript_discovered');
    case 'PostCompact':
      return compactionEnd(fields);
    case 'SessionEnd':
      return endOf(fields);
    default:
      return undefined;
  }
}

/** Codex names the session itself in its own hooks; only another id is a sub-agent's. */
function ofSubAgent(fields: Fields): boolean {
  const id = textOf(fields['agent_id']);
  return id !== undefined && id !== fields['session_id'];
}

function asksUser(fields: Fields): boolean {
  return fields['tool_name'] === 'request_user_input';
}

/** `/compact` is no turn of the user's; an automatic one is in the middle of a turn. */
function compactionEnd(fields: Fields): HookOp {
  if (fields['trigger'] !== 'manual') return observe('transcript_discovered');
  return { op: 'observe', event: 'stop', outcome: 'none' };
}

/** A turn is not over while a sub-agent of it runs; shells are only counted. */
function stopOf(tasks: unknown): HookOp {
  const running = (Array.isArray(tasks) ? tasks : []).filter(
    (task: unknown): task is { status: 'running'; type?: unknown } =>
      typeof task === 'object' && task !== null && 'status' in task && task.status === 'running',
  );
  if (running.some((task) => task.type === 'subagent')) return observe('post_tool_use');
  return { op: 'observe', event: 'stop', ...(running.length > 0 ? { background: running.length } : {}) };
}

/** The type decides; the text is looked at only where there is no type at all (S-411, R-11). */
function notificationKind(type: string | undefined, message: string | undefined): NotificationKind {
  switch (type) {
    case 'permission_prompt':
    case 'worker_permission_prompt':
      return 'permission_prompt';
    case 'idle_prompt':
      return 'idle_prompt';
    case 'elicitation_dialog':
    case 'agent_needs_input':
      return 'agent_needs_input';
    case undefined:
      return kindOfText(message?.toLowerCase() ?? '');
    default:
      return 'other';
  }
}

function kindOfText(text: string): NotificationKind {
  if (/permission|approve|allow/.test(text)) return 'permission_prompt';
  return /waiting for your input|needs your input|idle/.test(text) ? 'idle_prompt' : 'other';
}

/** `message` only where there is no `reason` (S-415). */
function endOf(fields: Fields): HookOp {
  const reason = textOf(fields['reason']) ?? textOf(fields['message']);
  return { op: 'end', ...(reason === undefined ? {} : { reason }) };
}
