import { describe, expect, test } from 'bun:test';
import { isInherited, uuidTime } from '../../../src/adapters/codex/inherited.ts';
import { sessionMetaOf } from '../../../src/adapters/codex/meta.ts';
import { isInjected, toRecord } from '../../../src/adapters/codex/records.ts';
import { orderSegments, parseRolloutName } from '../../../src/adapters/codex/segments.ts';
import { toolCallOf } from '../../../src/adapters/codex/tools.ts';
import { ID, OTHER_ID } from './home.ts';

describe('records: what is not known changes nothing', () => {
  for (const value of [
    null,
    1,
    'text',
    [],
    {},
    { type: 'new_kind', payload: {} },
    { type: 'event_msg', payload: { type: 'brand_new' } },
    { type: 'response_item', payload: { type: 'hologram' } },
    { type: 'event_msg', payload: { type: 'item_completed', item: { type: 'Hologram' } } },
    { type: 'session_meta', payload: {} },
    { record_type: 'state' },
  ]) {
    test(JSON.stringify(value), () => {
      expect(toRecord(value).kind).toBe('other');
    });
  }
});

describe('tool calls, reduced to what a label may show', () => {
  const call = (type: string, payload: Record<string, unknown>) => toolCallOf(type, payload);

  test('exec_command of classic models', () => {
    const args = JSON.stringify({ cmd: 'pnpm test', yield_time_ms: 1000 });
    expect(call('function_call', { name: 'exec_command', arguments: args })).toEqual({
      name: 'exec_command',
      command: 'pnpm test',
    });
  });

  test('shell with words: `bash -lc` is only the wrapping', () => {
    const args = JSON.stringify({ command: ['bash', '-lc', 'make -j'] });
    expect(call('function_call', { name: 'shell', arguments: args })?.command).toBe('make -j');
  });

  test('X12 local_shell_call', () => {
    const action = { type: 'exec', command: ['ls', '-la'] };
    expect(call('local_shell_call', { call_id: 'c', action })).toEqual({
      name: 'local_shell',
      command: 'ls -la',
    });
    const record = toRecord({
      type: 'response_item',
      payload: { type: 'local_shell_call', call_id: 'c', action },
    });
    expect(record.kind).toBe('called');
  });

  test('code-mode: the command is inside the script (exec-tool-codemode)', () => {
    const input = 'const r = await tools.exec_command({"cmd":"ls && echo \\"x\\""});\ntext(r.output);';
    expect(call('custom_tool_call', { name: 'exec', input })).toEqual({
      name: 'exec',
      command: 'ls && echo "x"',
    });
    expect(
      call('custom_tool_call', { name: 'exec', input: "tools.exec_command({cmd: 'npm t'})" })?.command,
    ).toBe('npm t');
  });

  test('apply_patch names its first file', () => {
    const input = '*** Begin Patch\n*** Update File: src/add.js\n@@\n-a\n+b\n*** End Patch';
    expect(call('custom_tool_call', { name: 'apply_patch', input })).toEqual({
      name: 'apply_patch',
      path: 'src/add.js',
    });
  });

  test('web search and broken arguments', () => {
    const action = { type: 'search', query: 'bun sqlite' };
    expect(call('web_search_call', { action })).toEqual({ name: 'web_search', pattern: 'bun sqlite' });
    expect(call('function_call', { name: 'shell', arguments: '{"cmd":' })).toEqual({ name: 'shell' });
    expect(call('message', { role: 'user' })).toBeUndefined();
  });
});

describe('X1 the program’s own messages of role user are no prompts', () => {
  for (const text of [
    '<environment_context>\n  <cwd>/x</cwd>',
    '  <user_instructions>\nBe brief',
    '<turn_aborted>\nThe user interrupted',
    '<hook_prompt id="1">go on</hook_prompt>',
    '# AGENTS.md instructions for /home/dev/acme-app\n\n<INSTRUCTIONS>',
  ]) {
    test(text.slice(0, 30), () => expect(isInjected(text)).toBe(true));
  }
  for (const text of ['Fix the parser', '<div> is broken', '# Title', '<environment> variables?']) {
    test(`real: ${text}`, () => expect(isInjected(text)).toBe(false));
  }
});

describe('rollout names', () => {
  test('the first UUID is the thread, a second one the segment', () => {
    const segment = '01a22e22-6275-7262-9d99-c5b6f721cab0';
    expect(parseRolloutName(`rollout-2026-11-30T20-25-35-${ID}_${segment}.jsonl`)).toEqual({
      threadId: ID,
      segmentId: segment,
      compressed: false,
    });
    expect(parseRolloutName(`rollout-2026-11-30T20-25-35-${ID}.jsonl.zst`)?.compressed).toBe(true);
  });

  for (const name of [
    'rollout.jsonl',
    `${ID}.jsonl`,
    `rollout-${ID}.json`,
    'rollout-x-../../etc/passwd.jsonl',
  ]) {
    test(`no rollout: ${name}`, () => expect(parseRolloutName(name)).toBeUndefined());
  }

  test('segments follow by age; an unpacked file beats a packed one, sessions beat the archive', () => {
    const file = (segmentId: string | undefined, compressed: boolean, archived: boolean) => ({
      ...{ threadId: ID, compressed, archived, path: `${segmentId}-${compressed}-${archived}` },
      ...(segmentId ? { segmentId } : {}),
    });
    const ordered = orderSegments([
      file('b', false, false),
      file(undefined, true, false),
      file('a', false, false),
      file(undefined, false, false),
      file('b', false, true),
    ]);
    expect(ordered.map((one) => one.path)).toEqual([
      'undefined-false-false',
      'a-false-false',
      'b-false-false',
    ]);
  });
});

describe('G5, G6, G9: whose record is it', () => {
  test('a sub-agent names its parent in an object, a field, or by the root of its tree', () => {
    const spawn = { subagent: { thread_spawn: { parent_thread_id: OTHER_ID, depth: 1 } } };
    expect(sessionMetaOf({ id: ID, session_id: OTHER_ID, source: spawn })?.parentId).toBe(OTHER_ID);
    expect(sessionMetaOf({ id: ID, parent_thread_id: OTHER_ID, source: 'exec' })?.parentId).toBe(OTHER_ID);
    expect(sessionMetaOf({ id: ID, session_id: OTHER_ID, source: { subagent: 'review' } })?.parentId).toBe(
      OTHER_ID,
    );
    expect(sessionMetaOf({ id: ID, session_id: ID, source: 'cli' })?.parentId).toBeUndefined();
    expect(
      sessionMetaOf({ id: ID, session_id: ID, source: { subagent: 'review' } })?.parentId,
    ).toBeUndefined();
  });

  test('records below subagent_history_start_ordinal are copies', () => {
    const meta = sessionMetaOf({ id: ID, subagent_history_start_ordinal: 16 });
    const aborted = (ordinal: number) =>
      toRecord({ ordinal, type: 'event_msg', payload: { type: 'turn_aborted' } });
    expect(isInherited(aborted(15), meta)).toBe(true);
    expect(isInherited(aborted(16), meta)).toBe(false);
  });

  test('G6 in a fork of an older version, turns that are older than the thread are copies', () => {
    const meta = sessionMetaOf({ id: OTHER_ID, forked_from_id: ID });
    const started = (turn: string) =>
      toRecord({ type: 'event_msg', payload: { type: 'task_started', turn_id: turn } });
    expect(isInherited(started('01a22e12-e878-79d1-acb5-d3646c874892'), meta)).toBe(true);
    expect(isInherited(started('01a22e13-fd19-7692-9935-ae3ef6017e6e'), meta)).toBe(false);
    expect(isInherited(started('not a uuid'), meta)).toBe(false);
  });

  test('a UUIDv7 is dated, others are not', () => {
    expect(new Date(uuidTime('01a22e13-63b3-7d80-a6aa-bd3a108d659d') ?? 0).toISOString()).toBe(
      '2026-11-30T20:09:12.371Z',
    );
    expect(uuidTime('9b2f7c1e-1c1a-4d2b-8f3e-0123456789ab')).toBeUndefined();
    expect(uuidTime(undefined)).toBeUndefined();
  });
});
