import { describe, expect, test } from 'bun:test';
import { toRecord } from '../../../src/adapters/codex/records.ts';
import { recordsClaim } from '../../../src/adapters/codex/thread.ts';
import { applyRecord, NO_ANSWER, NO_TURN, type Turn, turnState } from '../../../src/adapters/codex/turn.ts';
import { publicState } from '../../../src/runtime/session/project.ts';
import { finished, Lines, T0 } from './home.ts';

function turnOf(lines: readonly string[]): Turn {
  return lines.map((line) => toRecord(JSON.parse(line))).reduce(applyRecord, NO_TURN);
}

const stateOf = (lines: Lines) => publicState(turnState(turnOf(lines.lines)));
const begun = () => new Lines().meta().started().prompt('Go');

describe('the turn (CX §2.7, R-12)', () => {
  test('task_complete with an error is a failed turn, with its text and code', () => {
    const error = { message: 'You’ve hit your usage limit.', codex_error_info: 'usage_limit_exceeded' };
    const turn = turnOf(begun().complete({ error, last_agent_message: null }).lines);
    expect(turn).toMatchObject({ end: 'failed', error: error.message, errorCode: 'usage_limit_exceeded' });
  });

  test('the code may be an object with one key', () => {
    const error = { message: 'x', codex_error_info: { http_connection_failed: { http_status_code: 401 } } };
    expect(turnOf(begun().complete({ error }).lines).errorCode).toBe('http_connection_failed');
  });

  test('a failed command is no failed turn (exec-command-fails)', () => {
    const lines = begun()
      .call('exec_command', { cmd: 'nope' })
      .item({ type: 'CommandExecution', status: 'failed' });
    expect(stateOf(lines)).toBe('running');
    expect(stateOf(lines.output().complete())).toBe('completed');
  });

  test('turn_aborted stops its own turn only', () => {
    expect(stateOf(begun().aborted())).toBe('stopped');
    expect(stateOf(begun().aborted('another-turn'))).toBe('running');
  });

  test('what comes after the end does not reopen it (tui-command-outlives-turn)', () => {
    const lines = finished('Go')
      .item({ type: 'CommandExecution', status: 'completed' })
      .said('late')
      .call('exec_command', { cmd: 'ls' })
      .output();
    expect(stateOf(lines)).toBe('completed');
  });

  test('a new turn replaces one that was never closed', () => {
    const turn = turnOf(begun().call('exec_command', { cmd: 'ls' }).started().lines);
    expect(turn.calls.size).toBe(0);
    expect(turn.id).toBe('turn-2');
  });

  test('X11 an unanswered request_user_input is blocked, also beside another call', () => {
    const asking = begun().call('request_user_input', { questions: [] }, 'q');
    expect(stateOf(asking)).toBe('blocked');
    const beside = asking.call('exec_command', { cmd: 'ls' }, 'c').output('c');
    expect(stateOf(beside)).toBe('blocked');
    expect(stateOf(beside.output('q'))).toBe('running');
  });

  test('with several calls open, the newest that is left is shown', () => {
    const lines = begun()
      .call('exec_command', { cmd: 'npm test' }, 'a')
      .call('exec_command', { cmd: 'ls' }, 'b');
    const state = turnState(turnOf(lines.output('b').lines));
    expect(state).toMatchObject({ kind: 'working', doing: 'tool', tool: { command: 'npm test' } });
  });

  test('a calls table of a damaged file is bounded', () => {
    const lines = begun();
    for (let call = 0; call < 400; call += 1) lines.call('exec_command', { cmd: 'ls' }, `call-${call}`);
    expect(turnOf(lines.lines).calls.size).toBe(256);
  });

  test('thread_rolled_back leaves the thread stopped (legacy-0.104-tui-backtrack)', () => {
    expect(stateOf(finished('Go').event('thread_rolled_back', { num_turns: 1 }))).toBe('stopped');
  });
});

describe('R-10 which record answers a wait', () => {
  test('the result of the only open call does', () => {
    const lines = begun().call('exec_command', { cmd: 'touch x' });
    expect(turnOf(lines.lines).answeredAt).toBe(T0 + 10);
    expect(turnOf(lines.output().lines).answeredAt).toBe(T0 + 40);
  });

  test('with two calls open, the first result does not: the other may be what waits', () => {
    const lines = begun()
      .call('exec_command', { cmd: 'a' }, 'a')
      .call('exec_command', { cmd: 'b' }, 'b')
      .output('a');
    expect(turnOf(lines.lines).answeredAt).toBe(T0 + 10);
  });

  test('a background command of an earlier call that ends now does not', () => {
    const lines = begun().call('exec_command', { cmd: 'server' }, 'a').output('a');
    const waiting = lines.call('exec_command', { cmd: 'touch x' }, 'b');
    const old = { turn_id: 'turn-1', started_at_ms: T0 + 30, item: { type: 'CommandExecution', id: 'a' } };
    expect(turnOf(waiting.event('item_completed', old).lines).answeredAt).toBe(T0 + 40);
  });

  test('nor does one of an earlier turn', () => {
    const lines = finished('Go').started().call('exec_command', { cmd: 'touch x' }, 'b');
    const late = { turn_id: 'turn-1', item: { type: 'CommandExecution', id: 'a' } };
    expect(stateOf(lines.event('item_completed', late))).toBe('tool_call');
  });

  test('a command that a script began after the call does (tui-approval-codemode)', () => {
    const lines = begun().call('exec', {}, 'c');
    const done = {
      turn_id: 'turn-1',
      started_at_ms: T0 + 35,
      item: { type: 'CommandExecution', id: 'exec-1' },
    };
    expect(turnOf(lines.event('item_completed', done).lines).answeredAt).toBe(T0 + 40);
  });
});

describe('older generations', () => {
  const legacy = (type: string, payload: Record<string, unknown>) =>
    JSON.stringify({ timestamp: new Date(T0).toISOString(), type, payload });
  const start = legacy('event_msg', { type: 'task_started', turn_id: 't' });
  const end = legacy('event_msg', { type: 'task_complete', turn_id: 't', last_agent_message: null });
  const spoke = legacy('event_msg', { type: 'agent_message', message: 'Hi' });

  test('0.104 writes no error: a turn without a word of the model failed', () => {
    expect(turnOf([start, end])).toMatchObject({ end: 'failed', error: NO_ANSWER });
  });

  test('but not one in which the model spoke, that was compacted, or whose start was not read', () => {
    expect(turnOf([start, spoke, end]).end).toBe('completed');
    expect(turnOf([start, legacy('compacted', {}), end]).end).toBe('completed');
    expect(turnOf([end]).end).toBe('completed');
  });

  test('nor one that a version with error records wrote (tui-compact)', () => {
    expect(turnOf(begun().complete({ last_agent_message: null }).lines).end).toBe('completed');
  });

  test('files without task events: a message that leaves no call open ends the turn', () => {
    const prompt = legacy('event_msg', { type: 'user_message', message: 'Go' });
    const call = legacy('response_item', {
      type: 'function_call',
      name: 'shell',
      arguments: '{}',
      call_id: 'c',
    });
    const output = legacy('response_item', { type: 'function_call_output', call_id: 'c' });
    expect(publicState(turnState(turnOf([prompt])))).toBe('running');
    expect(publicState(turnState(turnOf([prompt, spoke])))).toBe('completed');
    expect(publicState(turnState(turnOf([prompt, spoke, call])))).toBe('tool_call');
    expect(publicState(turnState(turnOf([prompt, spoke, call, output])))).toBe('running');
    expect(publicState(turnState(turnOf([prompt, spoke, call, output, spoke])))).toBe('completed');
  });

  test('such a claim is no ledger: its ends are inferred', () => {
    const context = { now: T0, mtimeMs: T0 };
    const prompt = legacy('event_msg', { type: 'user_message', message: 'Go' });
    expect(recordsClaim(turnOf([prompt, spoke]), context).ledger).toBeUndefined();
    expect(recordsClaim(turnOf(finished('Go').lines), context).ledger).toBe(true);
  });
});

describe('the records’ claim', () => {
  const context = { now: T0 + 1_000, mtimeMs: T0 + 500 };

  test('S6 a running call says that records never show an approval', () => {
    const claim = recordsClaim(turnOf(begun().call('exec_command', { cmd: 'ls' }).lines), context);
    expect(claim).toMatchObject({ confidence: 'inferred', says: { kind: 'working', doing: 'tool' } });
    expect(claim.detail).toContain('never show whether it waits for an approval');
  });

  test('a turn from before its present owner was started is stopped (kill9-midstream)', () => {
    const turn = turnOf(begun().said('half').lines);
    const restarted = recordsClaim(turn, { ...context, ownerStartedAt: T0 + 900 });
    expect(restarted).toMatchObject({
      says: { kind: 'rested', outcome: 'stopped' },
      turn: { endedAt: T0 + 900 },
    });
    expect(recordsClaim(turn, { ...context, ownerStartedAt: T0 - 5_000 }).says.kind).toBe('working');
  });

  test('C21 a clock that runs ahead: the file’s time is taken', () => {
    const turn = turnOf(new Lines(T0 + 600_000).meta().started().lines);
    expect(recordsClaim(turn, context).at).toBe(T0 + 500);
    expect(recordsClaim(turn, context).turn?.openedAt).toBe(T0 + 500);
  });

  test('an error is one clean line with secrets masked', () => {
    const message = 'key \u001b[31msk-abcdefghijklmnop1234\u001b[0m\nrefused';
    const turn = turnOf(begun().complete({ error: { message } }).lines);
    expect(recordsClaim(turn, context).turn?.error).toBe('key ••• refused');
  });
});
