import { describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { claudeHook } from '../../../../src/adapters/claude-code/hooks.ts';
import { mapCodexHook } from '../../../../src/adapters/codex/hooks.ts';
import { FIELDS_READ, mapHook } from '../../../../src/runtime/daemon/sink/mapping.ts';
import { glanceOnLinux, ownerPid, type ProcessGlance } from '../../../../src/runtime/daemon/sink/owner.ts';
import { glanceOnMac } from '../../../../src/runtime/daemon/sink/owner-mac.ts';
import { fieldsOfPrefix } from '../../../../src/runtime/daemon/sink/prefix.ts';
import { readBounded } from '../../../../src/runtime/daemon/sink/stdin.ts';
import type { Observe } from '../../../../src/runtime/daemon/vocabulary.ts';
import { scene } from '../sessions/dsl.ts';

const ID = '0b7e6c1a-2f4d-4a8e-9c3b-5d1e7f9a2b4c';
const RECORDINGS = join(import.meta.dir, '..', '..', '..', 'recordings', 'claude-code');

const claude = (hook_event_name: string, extra = {}) =>
  mapHook('claude', { session_id: ID, hook_event_name, ...extra });
const codex = (hook_event_name: string, extra = {}) =>
  mapHook('codex', { session_id: ID, hook_event_name, transcript_path: '/t', ...extra });
const observe = (event: unknown, extra = {}) => ({ op: 'observe', event, ...extra });
const notice = (notification: string) => observe({ notification });

describe('Claude’s hooks (S-410, S-411)', () => {
  test.each([
    ['SessionStart', { source: 'startup' }, observe('session_start')],
    ['SessionStart', { source: 'resume' }, observe('session_start')],
    ['SessionStart', { source: 'compact' }, observe('transcript_discovered')],
    ['UserPromptSubmit', {}, observe('user_prompt_submit')],
    ['PreToolUse', { tool_name: 'Bash' }, observe('pre_tool_use')],
    ['PostToolUse', {}, observe('post_tool_use')],
    ['PostToolUseFailure', {}, observe('post_tool_use')],
    ['PostToolBatch', {}, observe('post_tool_use')],
    ['PermissionDenied', {}, observe('post_tool_use')],
    ['ElicitationResult', {}, observe('post_tool_use')],
    ['Stop', {}, observe('stop')],
    ['Stop', { background_tasks: [] }, observe('stop')],
    [
      'Stop',
      {
        background_tasks: [
          { type: 'shell', status: 'running' },
          { type: 'shell', status: 'completed' },
        ],
      },
      observe('stop', { background: 1 }),
    ],
    ['Stop', { background_tasks: [{ type: 'subagent', status: 'running' }] }, observe('post_tool_use')],
    ['Stop', { background_tasks: [{ type: 'subagent', status: 'completed' }] }, observe('stop')],
    ['Stop', { background_tasks: 'none' }, observe('stop')],
    ['StopFailure', { error: 'rate_limit' }, observe('stop', { outcome: 'failed' })],
    ['StopFailure', { error: 'max_output_tokens' }, observe('stop', { outcome: 'limited' })],
    ['PermissionRequest', { tool_name: 'Bash' }, notice('permission_prompt')],
    ['PermissionRequest', { tool_name: 'ExitPlanMode' }, notice('permission_prompt')],
    ['PermissionRequest', { tool_name: 'AskUserQuestion' }, notice('agent_needs_input')],
    ['Elicitation', {}, notice('agent_needs_input')],
    ['SubagentStart', {}, observe('post_tool_use')],
    ['SubagentStop', {}, observe('transcript_discovered')],
    ['SubagentStop', { agent_id: 'x' }, observe('post_tool_use')],
    ['PreCompact', {}, observe('post_tool_use')],
    ['PostCompact', { trigger: 'auto' }, observe('transcript_discovered')],
    ['PostCompact', { trigger: 'manual' }, observe('stop', { outcome: 'none' })],
    ['SessionEnd', { reason: 'clear', message: 'bye' }, { op: 'end', reason: 'clear' }],
    ['SessionEnd', { message: 'bye' }, { op: 'end', reason: 'bye' }],
    ['SessionEnd', {}, { op: 'end' }],
    ['MessageDisplay', {}, undefined],
    ['CwdChanged', {}, undefined],
    ['constructor', {}, undefined],
  ])('C-141 C-152 R-06 R-07 R-08 R-17 R-18: %s %j', (name, extra, expected) => {
    expect(claude(name, extra) as unknown).toEqual(expected);
  });

  test.each([
    [{ notification_type: 'permission_prompt' }, 'permission_prompt'],
    [{ notification_type: 'worker_permission_prompt' }, 'permission_prompt'],
    [{ notification_type: 'idle_prompt' }, 'idle_prompt'],
    [{ notification_type: 'elicitation_dialog' }, 'agent_needs_input'],
    [{ notification_type: 'agent_needs_input' }, 'agent_needs_input'],
    [{ notification_type: 'auth_success', message: 'needs your permission' }, 'other'],
    [{ message: 'Claude needs your PERMISSION to use Bash' }, 'permission_prompt'],
    [{ message: 'Please approve' }, 'permission_prompt'],
    [{ message: 'Claude is waiting for your input' }, 'idle_prompt'],
    [{ message: 'idle for a minute' }, 'idle_prompt'],
    [{ message: 'hello' }, 'other'],
    [{}, 'other'],
    [{ notification_type: '', message: 'needs your input' }, 'idle_prompt'],
  ])('C-144 S-411 R-11: notification %j → %s', (extra, kind) => {
    expect(claude('Notification', extra) as unknown).toEqual(notice(kind));
  });
});

describe('Codex’s hooks (S-420)', () => {
  test.each([
    ['SessionStart', { source: 'startup' }, observe('session_start')],
    ['SessionStart', { source: 'compact' }, observe('transcript_discovered')],
    ['UserPromptSubmit', {}, observe('user_prompt_submit')],
    ['PreToolUse', { tool_name: 'Bash' }, observe('pre_tool_use')],
    ['PreToolUse', { tool_name: 'request_user_input' }, notice('agent_needs_input')],
    ['PostToolUse', {}, observe('post_tool_use')],
    ['PermissionRequest', { tool_name: 'Bash' }, notice('permission_prompt')],
    ['Stop', {}, observe('stop')],
    ['Interrupt', {}, observe('stop', { outcome: 'stopped' })],
    ['SubagentStart', {}, observe('post_tool_use')],
    ['SubagentStop', {}, observe('transcript_discovered')],
    ['SubagentStart', { agent_id: 'child' }, observe('transcript_discovered')],
    ['SubagentStop', { agent_id: 'child' }, observe('post_tool_use')],
    ['SubagentStart', { agent_id: ID }, observe('post_tool_use')],
    ['PreCompact', {}, observe('post_tool_use')],
    ['PostCompact', { trigger: 'auto' }, observe('transcript_discovered')],
    ['PostCompact', { trigger: 'manual' }, observe('stop', { outcome: 'none' })],
    ['SessionEnd', { reason: 'other' }, { op: 'end', reason: 'other' }],
    ['PreModelRequest', {}, undefined],
    ['PostModelRequest', {}, undefined],
  ])('C-142 R-14 R-18 S-414: %s %j', (name, extra, expected) => {
    expect(codex(name, extra) as unknown).toEqual(expected);
  });

  test('a thread without a file (`--ephemeral`) is reported by nothing', () => {
    expect(codex('Stop', { transcript_path: null })).toBeUndefined();
  });
});

describe('every recorded hook of Codex', () => {
  const folder = join(RECORDINGS, '..', 'codex');
  const payloads = readdirSync(folder)
    .map((name) => join(folder, name, 'hooks.jsonl'))
    .filter((path) => existsSync(path))
    .flatMap((path) => lines(path) as Readonly<Record<string, unknown>>[])
    .map((line) => (line['input'] ?? line['payload'] ?? line) as Readonly<Record<string, unknown>>);

  test('R-14 R-18: the sink and the adapter’s mapping say the same, to the outcome', () => {
    const mapped = payloads.filter((payload) => mapHook('codex', payload));
    expect(mapped.length).toBeGreaterThan(200);
    for (const payload of payloads) expect(bySink(payload) as unknown).toEqual(byAdapter(payload));
  });

  const bySink = (payload: Readonly<Record<string, unknown>>) => {
    const op = mapHook('codex', payload);
    if (!op) return undefined;
    if (op.op === 'end') return { event: 'end', ending: undefined };
    return { event: wordOf(op), ending: op.outcome };
  };
  const byAdapter = (payload: Readonly<Record<string, unknown>>) => {
    const report = mapCodexHook(payload, 0)?.report;
    return report && { event: report.event, ending: report.noTurn ? 'none' : report.outcome };
  };
});

interface RecordedHook {
  readonly ts: number;
  readonly ppid: number;
  readonly ppid_comm: string;
  readonly gppid: number;
  readonly gppid_comm: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly input: Readonly<Record<string, unknown>>;
}

const lines = (path: string): unknown[] =>
  readFileSync(path, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
const recordings = readdirSync(RECORDINGS)
  .map((name) => ({
    name,
    hooks: join(RECORDINGS, name, 'hooks.jsonl'),
    key: join(RECORDINGS, name, 'expected.jsonl'),
  }))
  .filter(({ hooks }) => existsSync(hooks))
  .map(({ name, hooks, key }) => ({
    name,
    hooks: lines(hooks) as RecordedHook[],
    key: lines(key) as Record<string, unknown>[],
  }));
const allHooks = recordings.flatMap(({ hooks }) => hooks);

describe('every recorded hook of Claude Code', () => {
  test('the recordings are there', () => expect(allHooks.length).toBeGreaterThan(800));

  test('the sink and the adapter’s mapping say the same', () => {
    for (const { input } of allHooks) {
      const op = mapHook('claude', input);
      const report = claudeHook(input, 0)?.report;
      expect([input['hook_event_name'], op && wordOf(op)]).toEqual([input['hook_event_name'], report?.event]);
    }
  });

  test('R-24: from the first bytes alone, cut in the tool’s input, the operation is the same', () => {
    for (const { input } of allHooks) {
      const text = JSON.stringify(input);
      const big = /"(tool_input|tool_response|tool_calls|prompt)":/.exec(text);
      if (!big) continue;
      const prefix = fieldsOfPrefix(text.slice(0, big.index + big[0].length + 3), FIELDS_READ);
      expect(mapHook('claude', prefix)).toEqual(mapHook('claude', input));
      for (const name of ['session_id', 'cwd', 'transcript_path', 'agent_id'])
        expect(prefix[name]).toEqual(input[name]);
    }
  });

  test('R-03: the owner is the Claude process, with and without CLAUDE_PID', () => {
    for (const hook of allHooks) {
      const glance = (pid: number): ProcessGlance | undefined =>
        pid === hook.ppid
          ? { name: hook.ppid_comm, parent: hook.gppid }
          : pid === hook.gppid
            ? { name: hook.gppid_comm, parent: 1 }
            : undefined;
      const options = { agent: 'claude', parent: hook.ppid, glance } as const;
      expect(ownerPid({ ...options, env: hook.env ?? {} })).toBe(hook.gppid);
      expect(ownerPid({ ...options, env: {} })).toBe(hook.gppid);
    }
  });

  test('R-07: replayed through S-410 and S-103 the rows have the states of the answer keys', () => {
    const wrong: string[] = [];
    let scored = 0;
    for (const { name, hooks, key } of recordings) {
      const { E, engine } = scene();
      hooks.forEach(({ input }, index) => {
        const id = String(input['session_id']);
        const op = mapHook('claude', input);
        const agent_id = typeof input['agent_id'] === 'string' ? { agent_id: input['agent_id'] } : {};
        if (op?.op === 'observe')
          engine.observe({ session_id: id, event: op.event, ...agent_id } satisfies Observe, 'local');
        if (op?.op === 'end') E(id);
        const expected = key.find((row) => row['src'] === 'hook' && row['line'] === index + 1)?.[
          'hook_state'
        ];
        if (typeof expected !== 'string') return;
        scored += 1;
        const state = engine.list().sessions.find((row) => row.session_id === id)?.state ?? 'none';
        if (state !== expected)
          wrong.push(`${name}:${index + 1} ${input['hook_event_name']} ${state} for ${expected}`);
      });
    }
    expect(scored).toBeGreaterThan(800);
    // R-07 names two: a `SessionEnd` of an id never seen, which S-119 ignores.
    expect(wrong.filter((line) => !line.includes('SessionEnd none for ended'))).toEqual([]);
    expect(wrong.length).toBeLessThanOrEqual(2);
  });
});

function wordOf(op: NonNullable<ReturnType<typeof mapHook>>): string {
  if (op.op === 'end') return 'end';
  if (typeof op.event === 'string') return op.event;
  if ('stream_state' in op.event) return op.event.stream_state;
  return op.event.notification === 'other' ? 'other_notification' : op.event.notification;
}

describe('the owner of a hook (R-03)', () => {
  const tree = (names: Record<number, [string, number]>) => (pid: number) => {
    const [name, parent] = names[pid] ?? [];
    return name === undefined || parent === undefined ? undefined : { name, parent };
  };
  const ask = (names: Record<number, [string, number]>, env = {}, agent: 'claude' | 'codex' = 'claude') =>
    ownerPid({ agent, env, parent: 10, glance: tree(names) });

  test.each([
    ['the parent itself', { 10: ['codex', 9] }, 10],
    ['behind one shell', { 10: ['sh', 9], 9: ['claude', 8] }, 9],
    ['behind two', { 10: ['env', 9], 9: ['zsh', 8], 8: ['node', 7] }, 8],
    [
      'three shells are the end',
      { 10: ['sh', 9], 9: ['bash', 8], 8: ['-zsh', 7], 7: ['claude', 1] },
      undefined,
    ],
    ['orphaned', { 10: ['sh', 1] }, undefined],
    ['gone', {}, undefined],
  ] as const)('%s', (_what, names, expected) => {
    expect(ask(names as never)).toBe(expected as never);
  });

  test('CLAUDE_PID wins for Claude, is never read for Codex, and has to be a pid', () => {
    const names: Record<number, [string, number]> = { 10: ['sh', 9], 9: ['codex', 1] };
    expect(ask(names, { CLAUDE_PID: '77' })).toBe(77);
    expect(ask(names, { CLAUDE_PID: '77' }, 'codex')).toBe(9);
    for (const bad of ['', '1', '0', '-5', 'x', '7.5']) expect(ask(names, { CLAUDE_PID: bad })).toBe(9);
  });

  test.skipIf(process.platform !== 'linux')('S-641 real: ourselves through /proc', () => {
    expect(glanceOnLinux(process.pid)).toMatchObject({ parent: process.ppid });
    expect(glanceOnLinux(4_194_303)).toBeUndefined();
  });

  test('R-46: macOS through an injected libproc, and nothing where there is none', () => {
    const asked: unknown[] = [];
    const glance = glanceOnMac((pid, flavor, arg, buffer, size) => {
      asked.push([pid, flavor, arg, size]);
      if (pid !== 10) return 0;
      Buffer.from(buffer.buffer, buffer.byteOffset).writeUInt32LE(9, 16);
      Buffer.from(buffer.buffer, buffer.byteOffset).write('zsh\0junk', 48);
      return size;
    });
    expect(glance(10)).toEqual({ name: 'zsh', parent: 9 });
    expect(glance(11)).toBeUndefined();
    expect(asked[0]).toEqual([10, 3, 0n, 136]);
    expect(glanceOnMac(undefined)(10)).toBeUndefined();
  });
});

describe('the reader of a prefix (R-24)', () => {
  const wanted = new Set(['a', 'b', 'session_id']);
  const pick = (value: Record<string, unknown>) =>
    Object.fromEntries(Object.entries(value).filter(([name]) => wanted.has(name)));
  const key = fc.oneof(fc.constantFrom('a', 'b', 'session_id', 'tool_input'), fc.string({ maxLength: 6 }));

  test('a whole object is read as JSON reads it', () => {
    fc.assert(
      fc.property(
        fc.dictionary(key, fc.jsonValue(), { noNullPrototype: true }),
        fc.constantFrom(0, 1, 2),
        (value, indent) => {
          expect({ ...fieldsOfPrefix(JSON.stringify(value, null, indent), wanted) }).toEqual(
            pick(JSON.parse(JSON.stringify(value))),
          );
        },
      ),
    );
  });

  test('of a cut one, only whole values, and each as it was', () => {
    fc.assert(
      fc.property(fc.dictionary(key, fc.jsonValue(), { noNullPrototype: true }), fc.nat(), (value, cut) => {
        const text = JSON.stringify(value);
        const all = pick(JSON.parse(text));
        const some = fieldsOfPrefix(text.slice(0, cut % (text.length + 1)), wanted);
        for (const [name, part] of Object.entries(some)) expect(part).toEqual(all[name]);
      }),
    );
  });

  test('anything else gives nothing, and does not throw', () => {
    fc.assert(fc.property(fc.string(), (text) => void fieldsOfPrefix(text, wanted)));
    for (const text of [
      '',
      '[',
      '{',
      '{"a"',
      '{"a":',
      '{"a":tru',
      '{"a":12',
      '{"a":nope,',
      '{a:1}',
      '"a"',
      '{"a" 1}',
      '\ufeff',
    ]) {
      expect({ ...fieldsOfPrefix(text, wanted) }).toEqual({});
    }
    expect({ ...fieldsOfPrefix('\ufeff{"a":1,"b"', wanted) }).toEqual({ a: 1 });
  });
});

describe('reading stdin', () => {
  const stream = (chunks: readonly string[], end = true) =>
    new ReadableStream<Uint8Array>({
      start(controller) {
        for (const chunk of chunks) controller.enqueue(Buffer.from(chunk));
        if (end) controller.close();
      },
    });

  test('S-401 R-24: to its end, keeping the first bytes', async () => {
    expect(await readBounded(stream(['ab', 'cd', 'ef']), { keepBytes: 4 })).toEqual({
      text: 'abcd',
      cut: true,
      ended: true,
    });
    expect(await readBounded(stream(['ab', 'cd']), { keepBytes: 4 })).toEqual({
      text: 'abcd',
      cut: false,
      ended: true,
    });
    expect(await readBounded(stream([]))).toEqual({ text: '', cut: false, ended: true });
  });

  test('an end that never comes, and a stream that fails', async () => {
    expect(await readBounded(stream(['ab'], false), { waitMs: 5 })).toEqual({
      text: 'ab',
      cut: false,
      ended: false,
    });
    const broken = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.error(new Error('EBADF')),
    });
    expect(await readBounded(broken)).toMatchObject({ ended: false });
  });
});
