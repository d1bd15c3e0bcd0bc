import type { Report } from '../../runtime/session/reported.ts';
import { subjectOf } from './tools.ts';
import { listOf, objectOf, textOf } from './values.ts';

/** What one hook of Claude Code says: a report about one session, and what it tells of the session itself. */
export interface HookSighting {
  readonly sessionId: string;
  readonly report: Report;
  readonly cwd?: string;
  readonly transcriptPath?: string;
  readonly model?: string;
}

/**
 * Maps the payload of a Claude hook (S-404, S-405, S-410, S-411, with ).
 * Reads neither prompts nor what tools were given or answered. `undefined` for what says nothing: no session,
 * no event, an event that means nothing to us.
 *
 * @param at epoch milliseconds at which the hook fired
 */
export function claudeHook(payload: unknown, at: number): HookSighting | undefined {
  const fields = objectOf(payload);
  const sessionId = textOf(fields?.['session_id'])?.trim();
  if (!fields || !sessionId) return undefined;
  const body = reportOf(fields);
  if (!body) return undefined;
  const agentId = textOf(fields['agent_id'])?.trim();
  const cwd = textOf(fields['cwd']);
  const transcriptPath = textOf(fields['transcript_path']);
  const model = textOf(fields['model']);
  return {
    sessionId,
    report: { ...body, at, ...(agentId ? { agentId } : {}) },
    ...(cwd ? { cwd } : {}),
    ...(transcriptPath ? { transcriptPath } : {}),
    ...(model ? { model } : {}),
  };
}

type Fields = Readonly<Record<string, unknown>>;
type Body = Omit<Report, 'at' | 'agentId'>;

function reportOf(fields: Fields): Body | undefined {
  switch (fields['hook_event_name']) {
    case 'SessionStart':
      // In the middle of a process's life: a sign of life only (S-413, R-18).
      return { event: fields['source'] === 'compact' ? 'transcript_discovered' : 'session_start' };
    case 'UserPromptSubmit':
      return { event: 'user_prompt_submit' };
    case 'PreToolUse':
      return { event: 'pre_tool_use', ...toolOf(fields) };
    case 'PostToolUse':
    case 'PostToolUseFailure':
    case 'PostToolBatch':
    case 'PermissionDenied':
    case 'ElicitationResult':
    case 'SubagentStart':
    case 'PreCompact':
      return { event: 'post_tool_use' };
    case 'SubagentStop':
      return { event: textOf(fields['agent_id'])?.trim() ? 'post_tool_use' : 'transcript_discovered' };
    case 'Stop':
      return stopOf(fields);
    case 'StopFailure':
      return failureOf(textOf(fields['error']));
    case 'PermissionRequest':
      return permissionOf(fields);
    case 'Elicitation':
      return { event: 'agent_needs_input', on: 'form' };
    case 'Notification':
      return notificationOf(textOf(fields['notification_type']), textOf(fields['message']));
    case 'PostCompact':
      // `/compact` is no turn of the user's: the last outcome stays.
      return fields['trigger'] === 'manual'
        ? { event: 'stop', noTurn: true }
        : { event: 'transcript_discovered' };
    case 'SessionEnd':
      return { event: 'end' };
    default:
      return undefined;
  }
}

function toolOf(fields: Fields): Pick<Body, 'tool'> {
  const name = textOf(fields['tool_name']);
  return name ? { tool: { name } } : {};
}

/** A turn that ends while a sub-agent runs is not done; shells are counted, and it is (R-08, N1, S3). */
function stopOf(fields: Fields): Body {
  const running = listOf(fields['background_tasks'])
    .map(objectOf)
    .filter((task) => task?.['status'] === 'running');
  if (running.some((task) => task?.['type'] === 'subagent')) {
    return { event: 'post_tool_use' };
  }
  return { event: 'stop', ...(running.length > 0 ? { backgroundWork: running.length } : {}) };
}

/** A turn that died on an API error fires no `Stop` (S-412); an output limit waits for the user. */
function failureOf(error: string | undefined): Body {
  if (error === 'max_output_tokens') return { event: 'stop', outcome: 'limited' };
  return { event: 'stop', outcome: 'failed', ...(error ? { error: error.replaceAll('_', ' ') } : {}) };
}

function permissionOf(fields: Fields): Body {
  const subject = subjectOf(textOf(fields['tool_name']));
  const event = subject === 'question' ? 'agent_needs_input' : 'permission_prompt';
  return { event, on: subject ?? 'tool', ...toolOf(fields) };
}

/** The type decides; the text is looked at only where there is no type at all (S-411, C-144, R-11). */
function notificationOf(type: string | undefined, message: string | undefined): Body {
  switch (type) {
    case 'permission_prompt':
    case 'worker_permission_prompt':
      return { event: 'permission_prompt' };
    case 'idle_prompt':
      return { event: 'idle_prompt' };
    case 'elicitation_dialog':
      return { event: 'agent_needs_input', on: 'form' };
    case 'agent_needs_input':
      return { event: 'agent_needs_input' };
    case undefined:
      return notificationByText(message?.toLowerCase() ?? '');
    default:
      return { event: 'other_notification' };
  }
}

function notificationByText(text: string): Body {
  if (/permission|approve|allow/.test(text)) return { event: 'permission_prompt' };
  if (/waiting for your input|needs your input|idle/.test(text)) return { event: 'idle_prompt' };
  return { event: 'other_notification' };
}
