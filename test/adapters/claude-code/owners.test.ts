import { describe, expect, test } from 'bun:test';
import type { LiveFile } from '../../../src/adapters/claude-code/live-file.ts';
import { ownerJudge } from '../../../src/adapters/claude-code/owners.ts';
import { systemHost } from '../../../src/runtime/process/spawn.ts';
import type { ProcessHost, RunOptions } from '../../../src/runtime/process/types.ts';

const START = Date.parse('Mon Nov 30 09:05:01 2026 UTC');
const file = (pid: number, more: Partial<LiveFile> = {}): LiveFile => ({
  pid,
  sessionId: `s${pid}`,
  procStart: 'Mon Nov 30 09:05:01 2026',
  startedAt: START + 400,
  ...more,
});

function mac(alive: readonly number[], ps: string | undefined): { host: ProcessHost; calls: RunOptions[] } {
  const calls: RunOptions[] = [];
  const host: ProcessHost = {
    ...systemHost,
    platform: 'darwin',
    now: () => START + 60_000,
    kill(pid) {
      if (!alive.includes(pid)) throw Object.assign(new Error('no such process'), { code: 'ESRCH' });
    },
    async run(options) {
      calls.push(options);
      if (ps === undefined) return { kind: 'failedToStart', reason: 'notFound', message: 'no ps' };
      return {
        kind: 'exited',
        code: 1,
        signal: null,
        stdout: ps,
        stderr: '',
        stdoutBytes: new Uint8Array(),
        bytesSeen: ps.length,
        timedOut: false,
        truncated: false,
        survivors: [],
      };
    },
  };
  return { host, calls };
}
async function lives(host: ProcessHost, ...files: readonly LiveFile[]): Promise<readonly string[]> {
  const judged = await ownerJudge(host)(files);
  return files.map((candidate) => judged.get(candidate) ?? 'none');
}

describe('owners on macOS (R-16, S14)', () => {
  test('one question for all pids that live', async () => {
    const ps = '  10 S    Mon Nov 30 09:05:01 2026\n  11 Ss   Mon Nov 30 09:05:01 2026\n';
    const { host, calls } = mac([10, 11], ps);
    expect(await lives(host, file(10), file(11), file(12))).toEqual(['alive', 'alive', 'dead']);
    expect(calls.map((call) => call.argv)).toEqual([['ps', '-o', 'pid=,state=,lstart=', '-p', '10,11']]);
    expect(calls[0]?.env).toEqual({ LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/bin:/bin' });
  });

  test('a start in another form: not younger than its file', async () => {
    const { host } = mac([10, 11], ' 10 S Mon Nov 30 09:05:00 2026\n 11 S Mon Nov 30 11:00:00 2026\n');
    expect(await lives(host, file(10, { procStart: '77' }), file(11, { procStart: '77' }))).toEqual([
      'alive',
      'dead',
    ]);
  });

  test('a zombie, and a pid that ps does not know, have ended', async () => {
    const { host } = mac([10, 11], ' 10 Z Mon Nov 30 09:05:01 2026\n');
    expect(await lives(host, file(10), file(11))).toEqual(['dead', 'dead']);
  });

  test('without ps nothing is proven of those that live', async () => {
    const { host } = mac([10], undefined);
    expect(await lives(host, file(10), file(12))).toEqual(['unknown', 'dead']);
  });

  test('nothing is started where nobody lives', async () => {
    const { host, calls } = mac([], '');
    expect(await lives(host, file(10))).toEqual(['dead']);
    expect(calls).toEqual([]);
  });
});

describe('owners on Windows', () => {
  const windows = (alive: readonly number[]): ProcessHost => ({
    ...mac(alive, undefined).host,
    platform: 'win32',
    now: () => Date.now(),
  });

  test('a pid that lives, from this start of the system', async () => {
    const now = Date.now();
    expect(await lives(windows([10]), file(10, { startedAt: now }), file(11, { startedAt: now }))).toEqual([
      'alive',
      'dead',
    ]);
  });

  test('a file from before the system started is nobody’s', async () => {
    expect(await lives(windows([10]), file(10, { startedAt: 1_000 }))).toEqual(['dead']);
  });
});
