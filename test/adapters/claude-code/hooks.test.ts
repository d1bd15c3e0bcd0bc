import { describe, expect, test } from 'bun:test';
import { claudeHook } from '../../../src/adapters/claude-code/hooks.ts';

const AT = 1_796_000_000_000;
const ID = '5c67492c-2d72-4a53-a1fc-d1e5f72d20b8';
const report = (event: string, more: object = {}) =>
  claudeHook({ session_id: ID, hook_event_name: event, ...more }, AT)?.report;
const shell = { id: 'b1', type: 'shell', status: 'running' };
const agent = { id: 'a1', type: 'subagent', status: 'running' };

describe('hooks: S-410, with R-06, R-07, R-08, R-17 and R-18', () => {
  const table: readonly [string, object, object | undefined][] = [
    ['SessionStart', { source: 'startup' }, { event: 'session_start' }],
    ['SessionStart', { source: 'resume' }, { event: 'session_start' }],
    ['SessionStart', { source: 'compact' }, { event: 'transcript_discovered' }],
    ['UserPromptSubmit', { prompt: 'secret' }, { event: 'user_prompt_submit' }],
    [
      'PreToolUse',
      { tool_name: 'Bash', tool_input: { command: 'secret' } },
      { event: 'pre_tool_use', tool: { name: 'Bash' } },
    ],
    ['PostToolUse', { tool_name: 'Bash' }, { event: 'post_tool_use' }],
    ['PostToolUseFailure', {}, { event: 'post_tool_use' }],
    ['PostToolBatch', {}, { event: 'post_tool_use' }],
    ['PermissionDenied', {}, { event: 'post_tool_use' }],
    ['ElicitationResult', {}, { event: 'post_tool_use' }],
    ['SubagentStart', {}, { event: 'post_tool_use' }],
    ['SubagentStop', {}, { event: 'transcript_discovered' }],
    ['SubagentStop', { agent_id: 'a1' }, { event: 'post_tool_use', agentId: 'a1' }],
    ['Stop', {}, { event: 'stop' }],
    ['Stop', { background_tasks: [] }, { event: 'stop' }],
    ['Stop', { background_tasks: [shell] }, { event: 'stop', backgroundWork: 1 }],
    ['Stop', { background_tasks: [agent, shell] }, { event: 'post_tool_use' }],
    ['Stop', { background_tasks: [{ ...agent, status: 'completed' }] }, { event: 'stop' }],
    ['Stop', { background_tasks: 'odd' }, { event: 'stop' }],
    ['StopFailure', { error: 'rate_limit' }, { event: 'stop', outcome: 'failed', error: 'rate limit' }],
    ['StopFailure', { error: 'max_output_tokens' }, { event: 'stop', outcome: 'limited' }],
    [
      'PermissionRequest',
      { tool_name: 'Bash' },
      { event: 'permission_prompt', on: 'tool', tool: { name: 'Bash' } },
    ],
    ['PermissionRequest', {}, { event: 'permission_prompt', on: 'tool' }],
    [
      'PermissionRequest',
      { tool_name: 'AskUserQuestion' },
      { event: 'agent_needs_input', on: 'question', tool: { name: 'AskUserQuestion' } },
    ],
    [
      'PermissionRequest',
      { tool_name: 'ExitPlanMode' },
      { event: 'permission_prompt', on: 'plan', tool: { name: 'ExitPlanMode' } },
    ],
    ['Elicitation', {}, { event: 'agent_needs_input', on: 'form' }],
    ['PreCompact', {}, { event: 'post_tool_use' }],
    ['PostCompact', { trigger: 'manual' }, { event: 'stop', noTurn: true }],
    ['PostCompact', { trigger: 'auto' }, { event: 'transcript_discovered' }],
    ['SessionEnd', { reason: 'clear' }, { event: 'end' }],
    ['MessageDisplay', {}, undefined],
    ['CwdChanged', {}, undefined],
    ['ConfigChange', {}, undefined],
    ['BrandNew', {}, undefined],
  ];
  test.each(table)('%s %j', (event, more, want) => {
    expect(report(event, more) as object | undefined).toEqual(want && { ...want, at: AT });
  });

  test('S-115 an agent’s id is forwarded with every event of its own', () => {
    expect(report('Stop', { agent_id: ' a1 ' })).toEqual({ event: 'stop', agentId: 'a1', at: AT });
    expect(report('PreToolUse', { agent_id: '  ' })).toEqual({ event: 'pre_tool_use', at: AT });
  });
});

describe('hooks: notifications (S-411, R-11)', () => {
  const table: readonly [object, string][] = [
    [{ notification_type: 'permission_prompt' }, 'permission_prompt'],
    [{ notification_type: 'worker_permission_prompt' }, 'permission_prompt'],
    [{ notification_type: 'idle_prompt' }, 'idle_prompt'],
    [{ notification_type: 'elicitation_dialog' }, 'agent_needs_input'],
    [{ notification_type: 'agent_needs_input' }, 'agent_needs_input'],
    [{ notification_type: 'elicitation_response' }, 'other_notification'],
    [{ notification_type: 'auth_success', message: 'needs your permission' }, 'other_notification'],
    [{ message: 'Claude needs your PERMISSION to use Bash' }, 'permission_prompt'],
    [{ message: 'Claude is waiting for your input' }, 'idle_prompt'],
    [{ message: 'hello' }, 'other_notification'],
    [{}, 'other_notification'],
  ];
  test.each(table)('C-144 %j: %s', (more, want) => {
    expect(report('Notification', more)?.event).toBe(want as never);
  });
});

describe('hooks: payloads that say nothing (S-405, C-148)', () => {
  const payloads: readonly unknown[] = [
    null,
    7,
    [],
    'Stop',
    {},
    { hook_event_name: 'Stop' },
    { session_id: '  ', hook_event_name: 'Stop' },
  ];
  test.each(payloads.map((payload) => [payload]))('%j', (payload) => {
    expect(claudeHook(payload, AT)).toBeUndefined();
  });

  test('S-404 what is read of the session, and nothing of its content', () => {
    const payload = {
      session_id: ID,
      hook_event_name: 'UserPromptSubmit',
      cwd: '/home/dev/acme-app',
      transcript_path: '/home/dev/x.jsonl',
      model: 'claude-opus-5-5',
      prompt: 'secret',
      last_assistant_message: 'secret',
    };
    expect(claudeHook(payload, AT)).toEqual({
      sessionId: ID,
      report: { event: 'user_prompt_submit', at: AT },
      cwd: '/home/dev/acme-app',
      transcriptPath: '/home/dev/x.jsonl',
      model: 'claude-opus-5-5',
    });
  });
});
