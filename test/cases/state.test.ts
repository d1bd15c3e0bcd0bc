import { describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { claudeHook } from '../../src/adapters/claude-code/hooks.ts';
import { readRow } from '../../src/adapters/claude-code/rows.ts';
import { applyRow, NO_TURN } from '../../src/adapters/claude-code/turn.ts';
import type { Claim } from '../../src/runtime/session/evidence.ts';
import { fuse } from '../../src/runtime/session/fuse.ts';
import { needsUser, publicState } from '../../src/runtime/session/project.ts';
import { applyReport, type Reported, reportedClaim } from '../../src/runtime/session/reported.ts';
import { IDLE } from '../../src/runtime/session/state.ts';

const ID = 'eeeeeeee-0000-4000-8000-000000000001';
const T = Date.parse('2026-11-30T12:00:00Z');
const at = (ms: number) => new Date(T + ms).toISOString();

/** The claim of hooks that fired one after another, a second apart. */
function hooks(...payloads: readonly Record<string, unknown>[]): Claim {
  const reported = payloads.reduce<Reported | undefined>((before, payload, i) => {
    const seen = claudeHook({ session_id: ID, cwd: '/home/dev/acme', ...payload }, T + i * 1_000);
    return seen ? applyReport(before, seen.report) : before;
  }, undefined);
  if (!reported) throw new Error('no hook said anything');
  return reportedClaim('claude-code.hooks', reported);
}

/** The claim of transcript rows. */
function rows(...values: readonly Record<string, unknown>[]): Claim {
  const turn = values.reduce((before, value) => {
    const row = readRow({ sessionId: ID, cwd: '/home/dev/acme', ...value });
    return row ? applyRow(before, row) : before;
  }, NO_TURN);
  return {
    feed: 'claude-code.transcript',
    confidence: 'inferred',
    at: turn.at ?? T,
    says: turn.state,
    turn: turn.turn,
    ...(turn.answeredAt === undefined ? {} : { answeredAt: turn.answeredAt }),
    detail: '',
  };
}
const prompt = (ms: number) => ({
  type: 'user',
  uuid: 'u1',
  timestamp: at(ms),
  message: { role: 'user', content: 'Go on' },
});
const call = (ms: number, name: string, id = 'toolu_1') => ({
  type: 'assistant',
  uuid: 'a1',
  timestamp: at(ms),
  message: {
    role: 'assistant',
    model: 'm',
    stop_reason: 'tool_use',
    content: [{ type: 'tool_use', id, name, input: {} }],
  },
});
const result = (ms: number, id = 'toolu_1') => ({
  type: 'user',
  uuid: 'u2',
  timestamp: at(ms),
  message: { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'ok' }] },
});
const said = (ms: number) => ({
  type: 'assistant',
  uuid: 'a2',
  timestamp: at(ms),
  message: {
    role: 'assistant',
    model: 'm',
    stop_reason: 'end_turn',
    content: [{ type: 'text', text: 'Done' }],
  },
});
const word = (claims: readonly Claim[], now = T + 10_000) => publicState(fuse(claims, undefined, now).state);

describe('S: state stuck or wrong', () => {
  test('S3a a Stop with a background shell ends the turn, and the shell is counted beside it', () => {
    const stop = {
      hook_event_name: 'Stop',
      background_tasks: [{ id: 'b1', type: 'shell', status: 'running', description: '' }],
    };
    const claim = hooks({ hook_event_name: 'UserPromptSubmit', prompt: 'Go on' }, stop);
    const fused = fuse([claim, rows(prompt(0), said(900))], undefined, T + 5_000);
    expect([publicState(fused.state), fused.backgroundWork]).toEqual(['completed', 1]);
  });

  test('S3b, R-10 the result of the tool that was asked for clears the wait, without any hook', () => {
    const asked = hooks(
      { hook_event_name: 'UserPromptSubmit', prompt: 'Go on' },
      { hook_event_name: 'PreToolUse', tool_name: 'Bash', tool_input: {} },
      { hook_event_name: 'PermissionRequest', tool_name: 'Bash', tool_input: {} },
    );
    expect(word([asked, rows(prompt(0), call(900, 'Bash'))])).toBe('waiting_for_approval');
    expect(word([asked, rows(prompt(0), call(900, 'Bash'), result(7_000))])).toBe('running');
  });

  test('S5, S16 a question is a wait for input, whatever says "running" or "idle" beside it', () => {
    const asking = rows(prompt(0), call(900, 'AskUserQuestion'));
    expect(word([asking])).toBe('blocked');
    const live: Claim = {
      feed: 'claude-code.live-file',
      owner: '1',
      confidence: 'exact',
      at: T + 950,
      says: { kind: 'waiting', for: 'input', on: 'unspecified' },
      life: 'alive',
      detail: '',
    };
    const fused = fuse([live, asking], undefined, T + 10_000);
    expect([publicState(fused.state), needsUser(fused)]).toEqual(['blocked', true]);
  });

  test('S13 one flag that sticks on busy after death does not keep a session working', () => {
    const stuck: Claim = {
      feed: 'claude-code.live-file',
      owner: '1',
      confidence: 'exact',
      at: T,
      says: { kind: 'working', doing: 'running' },
      life: 'dead',
      detail: '',
    };
    expect(word([stuck, rows(prompt(0), call(900, 'Bash'))])).toBe('stopped');
    expect(word([stuck, rows(prompt(0), said(900))])).toBe('completed');
  });

  test('N1 a Stop with a running sub-agent is not the end of the turn', () => {
    const stop = {
      hook_event_name: 'Stop',
      background_tasks: [{ id: 'b1', type: 'subagent', status: 'running', description: '' }],
    };
    expect(word([hooks({ hook_event_name: 'UserPromptSubmit', prompt: 'Go on' }, stop)])).toBe('running');
    const after = hooks({ hook_event_name: 'UserPromptSubmit', prompt: 'Go on' }, stop, {
      hook_event_name: 'Stop',
      background_tasks: [],
    });
    expect(word([after])).toBe('completed');
  });

  test('N3 a second Stop without a prompt between changes nothing', () => {
    const first = hooks(
      { hook_event_name: 'UserPromptSubmit', prompt: 'Go on' },
      { hook_event_name: 'Stop' },
    );
    const again = hooks(
      { hook_event_name: 'UserPromptSubmit', prompt: 'Go on' },
      { hook_event_name: 'Stop' },
      { hook_event_name: 'Stop' },
    );
    expect(word([again])).toBe(word([first]));
  });

  test('N8, R-14 what a sub-agent’s own hook says ends nothing of its parent', () => {
    const claim = hooks(
      { hook_event_name: 'UserPromptSubmit', prompt: 'Go on' },
      { hook_event_name: 'Stop', agent_id: 'agent-7', agent_type: 'other' },
    );
    expect(word([claim])).toBe('running');
  });

  test('a live owner that rests without any turn is idle, never completed', () => {
    expect(word([{ feed: 'x', confidence: 'exact', at: T, says: IDLE, life: 'alive', detail: '' }])).toBe(
      'idle',
    );
  });
});

describe('what no state is ever made of', () => {
  const src = resolve(import.meta.dir, '..', '..', 'src');
  const sources = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  );
  const grep = (pattern: RegExp) =>
    sources.filter((name) => pattern.test(readFileSync(join(src, name), 'utf8')));

  test('S19, R-36 no screen is read and no key is typed', () => {
    expect(grep(/capture-pane|send-keys|osascript.*keystroke|TIOCSTI|screen -X/)).toEqual([]);
  });

  test('S18, design rule 4: no state is derived from child processes', () => {
    const asked = grep(/\bppid\b/).filter(
      (name) => name.startsWith('adapters') || name.startsWith('runtime/session'),
    );
    // Hooks look for their owner upwards, and a child of Claude's is left out of the processes at a dialog.
    expect(asked.filter((name) => !/hooks|control|claude-code\/processes/.test(name))).toEqual([]);
  });
});
