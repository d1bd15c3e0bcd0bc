import { describe, expect, test } from 'bun:test';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fireMarked } from '../../../src/install/hooks/delivery.ts';
import { heardInJournals } from '../../../src/install/hooks/heard.ts';
import type { RunOptions, RunResult } from '../../../src/runtime/process/types.ts';
import { stage } from './context.ts';

const COMMAND = { command: 'x', argv: ['/bin/sh', '-c', 'x'], agent: 'claude' };
const ran = (result: Partial<Extract<RunResult, { kind: 'exited' }>> = {}): RunResult => ({
  kind: 'exited',
  code: 0,
  signal: null,
  stdout: '',
  stderr: '',
  stdoutBytes: new Uint8Array(),
  bytesSeen: 0,
  timedOut: false,
  truncated: false,
  survivors: [],
  ...result,
});

describe('the marked event (H15, R-48)', () => {
  const fire = async (result: RunResult, asked?: (options: RunOptions) => void) => {
    using one = stage();
    const run = async (options: RunOptions) => {
      asked?.(options);
      return result;
    };
    return fireMarked(
      one.context({ run, env: { CLAUDE_PID: '7', HOME: '/h' } }),
      COMMAND,
      join(one.home, 's.sock'),
    );
  };

  test('is the end of a session that nobody saw (S-119), told as the runtime would, without marks of a session', async () => {
    const seen: RunOptions[] = [];
    await fire(ran(), (options) => seen.push(options));
    expect(seen[0]).toMatchObject({
      argv: COMMAND.argv,
      env: { HOME: '/h', SHADOWOB_CONNECTOR_LOG: 'debug' },
    });
    expect(seen[0]?.env?.['CLAUDE_PID']).toBeUndefined();
    const payload = JSON.parse(String(seen[0]?.stdin));
    expect(payload).toEqual({
      session_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      hook_event_name: 'SessionEnd',
      reason: 'hooks-status',
    });
  });

  test('arrived at the daemon, or was heard by nobody, as the sink says', async () => {
    const journal = 'session_hook_journal outcome=journal_failed why=skipped\n';
    const delivered = ran({ stderr: `${journal}session_hook_report outcome=delivered\n` });
    expect(await fire(delivered)).toEqual({ kind: 'daemon' });
    const alone = ran({ stderr: `${journal}session_hook_report outcome=transport_failed\n` });
    expect(await fire(alone)).toEqual({ kind: 'nobody' });
  });

  test.each([
    [ran({ code: 127, stderr: 'sh: x: not found\n' }), 'it left with 127: sh: x: not found'],
    [ran({ stdout: 'welcome\n' }), 'something prints to stdout, which the runtime may take for a decision'],
    [ran(), 'it did not report: it said nothing'],
    [{ ...ran(), kind: 'timedOut', timedOut: true } as RunResult, 'it did not end within 5 s'],
    [
      { kind: 'failedToStart', reason: 'notFound', message: '' } as RunResult,
      '/bin/sh could not be started (notFound)',
    ],
  ])('anything else is said: %#', async (result, message) => {
    expect(await fire(result)).toEqual({ kind: 'broken', message });
  });

  test('its journal is proof, and is taken away', async () => {
    using one = stage();
    const folder = join(one.home, 'run', 'sessions', 'claude');
    mkdirSync(folder, { recursive: true });
    const run = async (options: RunOptions) => {
      writeFileSync(join(folder, `${JSON.parse(String(options.stdin)).session_id}.jsonl`), 'x');
      return ran({ stderr: 'session_hook_report outcome=timeout\n' });
    };
    expect(await fireMarked(one.context({ run }), COMMAND, join(one.home, 's.sock'))).toEqual({
      kind: 'journal',
    });
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe('when hooks were last heard, by journals (R-48)', () => {
  test('the newest report of the agent; ends, junk and other agents’ do not count', () => {
    using one = stage();
    const id = '0b7e6c1a-2f4d-4a8e-9c3b-5d1e7f9a2b4c';
    const base = { v: 1, seq: '1-1', agent: 'claude', session_id: id };
    const lines = [
      { ...base, ts: '2026-11-12T08:15:42.000000000Z', op: 'observe', event: 'stop' },
      { ...base, ts: '2026-11-12T08:15:41.000000000Z', op: 'observe', event: 'pre_tool_use' },
      { ...base, ts: '2026-11-12T08:15:43.000000000Z', op: 'end' },
      { ...base, ts: '2026-11-12T08:15:44.000000000Z', agent: 'codex', op: 'observe', event: 'stop' },
    ];
    one.write(
      `run/sessions/claude/${id}.jsonl`,
      `${lines.map((line) => JSON.stringify(line)).join('\n')}\n{"v":1,"ts":`,
    );
    one.write('run/sessions/claude/other.txt', 'x');
    const socket = join(one.home, 's.sock');
    expect(heardInJournals(socket, 'claude')).toBe(Date.parse('2026-11-12T08:15:42Z'));
    expect(heardInJournals(socket, 'codex')).toBeUndefined();
    expect(heardInJournals(socket, 'pi')).toBeUndefined();
  });
});
