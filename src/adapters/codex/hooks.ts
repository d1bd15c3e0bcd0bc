import type { Report } from '../../runtime/session/reported.ts';
import { type Fields, objectOf, textOf } from './fields.ts';
import { ASKING_TOOL, hookTool } from './tools.ts';

/** What one hook call says, and about whom. */
export interface HookReport {
  /** Root of the session tree: what the hook calls `session_id`. */
  readonly sessionId: string;
  /** For that row, as the `sessions` socket takes it (S-115): a sub-agent's report carries its `agentId`. */
  readonly report: Report;
  /** For the thread that it is about, as a report of its own: threads are judged apart and folded then. */
  readonly thread: { readonly sessionId: string; readonly report: Report };
}

type Body = Omit<Report, 'at'>;

/**
 * Maps a Codex hook payload to reports (S-420 with ). `undefined` for events that say nothing about
 * a state (`PreModelRequest`, `PostModelRequest`, anything unknown) and for threads without a file
 * (`exec --ephemeral`: `transcript_path` is null, CX §7.25).
 *
 * @param at epoch milliseconds at which the hook was called
 */
export function mapCodexHook(payload: Fields, at: number): HookReport | undefined {
  const sessionId = textOf(payload, 'session_id');
  const event = textOf(payload, 'hook_event_name');
  if (!sessionId || !event || payload['transcript_path'] === null) return undefined;
  const agentId = textOf(payload, 'agent_id');
  if (agentId !== undefined && agentId !== sessionId)
    return agentReport(sessionId, agentId, event, payload, at);
  const body = bodyOf(event, payload);
  if (!body) return undefined;
  const report = { ...body, at };
  return { sessionId, report, thread: { sessionId, report } };
}

/**
 * `SubagentStart` and `SubagentStop` are named after the agent and are its own start and stop. To its parent's row the
 * start says nothing (S-414), and the stop releases what the agent waited for (S-115).
 */
function agentReport(
  sessionId: string,
  agentId: string,
  event: string,
  payload: Fields,
  at: number,
): HookReport | undefined {
  const own: Body | undefined = event === 'SubagentStop' ? { event: 'stop' } : bodyOf(event, payload);
  const folded = FOLDED[event] ?? bodyOf(event, payload);
  if (!own || !folded) return undefined;
  return {
    sessionId,
    report: { ...folded, at, agentId },
    thread: { sessionId: agentId, report: { ...own, at } },
  };
}

const FOLDED: Readonly<Record<string, Body>> = {
  SubagentStart: { event: 'transcript_discovered' },
  SubagentStop: { event: 'post_tool_use' },
};

function bodyOf(event: string, payload: Fields): Body | undefined {
  const name = textOf(payload, 'tool_name');
  const tool = name === undefined ? {} : { tool: hookTool(name, objectOf(payload, 'tool_input')) };
  switch (event) {
    case 'SessionStart':
      // Compaction starts nothing: the process and its turn go on.
      return { event: textOf(payload, 'source') === 'compact' ? 'transcript_discovered' : 'session_start' };
    case 'UserPromptSubmit':
      return { event: 'user_prompt_submit' };
    case 'PreToolUse':
      return name === ASKING_TOOL
        ? { event: 'agent_needs_input', on: 'question', ...tool }
        : { event: 'pre_tool_use', ...tool };
    case 'PostToolUse':
      return { event: 'post_tool_use', ...tool };
    case 'PermissionRequest':
      return name === ASKING_TOOL
        ? { event: 'agent_needs_input', on: 'question', ...tool }
        : { event: 'permission_prompt', on: 'tool', ...tool };
    case 'Stop':
      return { event: 'stop' };
    case 'Interrupt':
      return { event: 'stop', outcome: 'stopped' };
    case 'SubagentStart':
      return { event: 'post_tool_use' };
    case 'SubagentStop':
      return { event: 'transcript_discovered' };
    case 'PreCompact':
      return { event: 'post_tool_use' };
    case 'PostCompact':
      // `/compact` is no turn of the user's: the last outcome stays.
      return textOf(payload, 'trigger') === 'manual'
        ? { event: 'stop', noTurn: true }
        : { event: 'transcript_discovered' };
    case 'SessionEnd':
      return { event: 'end' };
    default:
      return undefined;
  }
}
