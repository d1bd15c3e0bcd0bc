import { describe, expect, test } from 'bun:test';
import { mapCodexHook } from '../../../src/adapters/codex/hooks.ts';
import { ID, OTHER_ID, T0 } from './home.ts';
import { loadRecording, scenarios } from './recording.ts';

const path = '/home/dev/.codex/sessions/2026/11/30/rollout.jsonl';
const map = (hook_event_name: string, more: Record<string, unknown> = {}) =>
  mapCodexHook({ session_id: ID, transcript_path: path, hook_event_name, ...more }, T0);

describe('S-420 each Codex hook as a report', () => {
  const expected: readonly (readonly [string, Record<string, unknown>, string])[] = [
    ['SessionStart', { source: 'startup' }, 'session_start'],
    ['SessionStart', { source: 'resume' }, 'session_start'],
    ['SessionStart', { source: 'fork' }, 'session_start'],
    ['SessionStart', { source: 'compact' }, 'transcript_discovered'],
    ['UserPromptSubmit', { prompt: 'Go' }, 'user_prompt_submit'],
    ['PreToolUse', { tool_name: 'Bash' }, 'pre_tool_use'],
    ['PreToolUse', { tool_name: 'request_user_input' }, 'agent_needs_input'],
    ['PostToolUse', { tool_name: 'Bash' }, 'post_tool_use'],
    ['PermissionRequest', { tool_name: 'Bash' }, 'permission_prompt'],
    ['PermissionRequest', { tool_name: 'request_user_input' }, 'agent_needs_input'],
    ['Stop', {}, 'stop'],
    ['Interrupt', {}, 'stop'],
    ['SubagentStart', {}, 'post_tool_use'],
    ['SubagentStop', {}, 'transcript_discovered'],
    ['PreCompact', { trigger: 'manual' }, 'post_tool_use'],
    ['PostCompact', { trigger: 'manual' }, 'stop'],
    ['PostCompact', { trigger: 'auto' }, 'transcript_discovered'],
    ['SessionEnd', { reason: 'other' }, 'end'],
  ];
  for (const [event, more, report] of expected) {
    test(`${event} ${JSON.stringify(more)} → ${report}`, () => {
      expect(map(event, more)?.report).toMatchObject({ event: report, at: T0 });
    });
  }

  test('an interrupt stops the turn, an ordinary stop ends it well', () => {
    expect(map('Interrupt')?.report.outcome).toBe('stopped');
    expect(map('Stop')?.report.outcome).toBeUndefined();
  });

  test('R-18 a compaction that the user asked for is no turn: the last outcome stays', () => {
    expect(map('PostCompact', { trigger: 'manual' })?.report.noTurn).toBe(true);
  });

  test('R-06 what a wait is about: the tool, or a question', () => {
    expect(map('PermissionRequest', { tool_name: 'Bash' })?.report.on).toBe('tool');
    expect(map('PreToolUse', { tool_name: 'request_user_input' })?.report.on).toBe('question');
  });

  test('the tool of a call, where the payload has it', () => {
    const bash = { tool_name: 'Bash', tool_input: { command: 'npm test' } };
    expect(map('PreToolUse', bash)?.report.tool).toEqual({ name: 'Bash', command: 'npm test' });
    const patch = {
      tool_name: 'apply_patch',
      tool_input: { command: '*** Begin Patch\n*** Add File: a.ts\n' },
    };
    expect(map('PreToolUse', patch)?.report.tool).toEqual({ name: 'apply_patch', path: 'a.ts' });
    expect(map('PreToolUse', { tool_name: 'Bash' })?.report.tool).toEqual({ name: 'Bash' });
  });
});

describe('R-14 sub-agents: session_id is the root’s, agent_id names the thread', () => {
  const child = (event: string, more = {}) => map(event, { agent_id: OTHER_ID, ...more });

  test('the row of the root gets the report with the agent’s id, the thread a report of its own', () => {
    const mapped = child('PermissionRequest', { tool_name: 'Bash' });
    expect(mapped?.sessionId).toBe(ID);
    expect(mapped?.report).toMatchObject({ event: 'permission_prompt', agentId: OTHER_ID });
    expect(mapped?.thread).toMatchObject({ sessionId: OTHER_ID, report: { event: 'permission_prompt' } });
    expect(mapped?.thread.report.agentId).toBeUndefined();
  });

  test('S-414 SubagentStart with an id changes nothing above, and starts work below', () => {
    expect(child('SubagentStart')?.report.event).toBe('transcript_discovered');
    expect(child('SubagentStart')?.thread.report.event).toBe('post_tool_use');
  });

  test('S-115 SubagentStop ends the agent’s turn, never its parent’s, and releases what it waited for', () => {
    expect(child('SubagentStop')?.report).toMatchObject({ event: 'post_tool_use', agentId: OTHER_ID });
    expect(child('SubagentStop')?.thread.report.event).toBe('stop');
  });
});

describe('what is no report', () => {
  test('model requests and unknown events', () => {
    for (const event of ['PreModelRequest', 'PostModelRequest', 'BrandNew'])
      expect(map(event)).toBeUndefined();
  });

  test('threads without a file (exec-ephemeral), payloads without an id or an event', () => {
    expect(map('Stop', { transcript_path: null })).toBeUndefined();
    expect(mapCodexHook({ hook_event_name: 'Stop' }, T0)).toBeUndefined();
    expect(mapCodexHook({ session_id: ID }, T0)).toBeUndefined();
    expect(mapCodexHook({ session_id: 7, hook_event_name: [] }, T0)).toBeUndefined();
  });

  test('every recorded hook is mapped or is a model request', () => {
    const hooks = scenarios().flatMap((name) => loadRecording(name).hooks);
    const unmapped = hooks.filter((hook) => !mapCodexHook(hook.payload, hook.at));
    expect(hooks.length).toBeGreaterThan(400);
    expect(new Set(unmapped.map((hook) => hook.payload['hook_event_name']))).toEqual(
      new Set(['PreModelRequest', 'PostModelRequest']),
    );
  });
});
