import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ControlContext } from '../../../../src/adapters/adapter.ts';
import { abortElsewhere } from '../../../../src/adapters/claude-code/control/abort.ts';
import {
  obstacleOf,
  type Possessor,
  possessorsOf,
} from '../../../../src/adapters/claude-code/control/possession.ts';
import { systemHost } from '../../../../src/runtime/process/spawn.ts';
import type { ProcessHost, RunOptions, RunResult } from '../../../../src/runtime/process/types.ts';
import type { Session } from '../../../../src/runtime/session/session.ts';

const ID = '26d42a99-e094-4b78-9646-1c016f4888d3';
const PID = 4_242;
const LSTART = 'Mon Nov 30 20:21:08 2026';
const temp = { home: '' };

beforeEach(() => {
  temp.home = mkdtempSync(join(tmpdir(), 'possession-'));
});
afterEach(() => rmSync(temp.home, { recursive: true, force: true }));

function live(more: object = {}): void {
  const folder = join(temp.home, '.claude', 'sessions');
  mkdirSync(folder, { recursive: true });
  const file = { pid: PID, sessionId: ID, procStart: LSTART, entrypoint: 'cli', kind: 'interactive' };
  const more2 = { startedAt: Date.parse(`${LSTART} UTC`), status: 'idle', version: '2.1.332', ...more };
  writeFileSync(join(folder, `${PID}.json`), JSON.stringify({ ...file, ...more2 }));
}

function outcome(stdout: string): RunResult {
  return {
    kind: 'exited',
    code: 0,
    signal: null,
    stdout,
    stderr: '',
    stdoutBytes: Buffer.from(stdout),
    bytesSeen: stdout.length,
    timedOut: false,
    truncated: false,
    survivors: [],
  };
}

/** A Mac or a Windows computer on which process 4242 runs. */
function hostOf(platform: 'darwin' | 'win32', ps = ''): ProcessHost & { ran: string[][]; sent: unknown[] } {
  const ran: string[][] = [];
  const sent: unknown[] = [];
  return {
    ...systemHost,
    platform,
    ran,
    sent,
    run: async (options: RunOptions) => {
      ran.push([...options.argv]);
      return outcome(ps);
    },
    kill: (pid, signal) => {
      if (signal !== 0) sent.push([pid, signal]);
      if (pid !== PID) throw Object.assign(new Error('gone'), { code: 'ESRCH' });
    },
  };
}

function contextOf(host: ProcessHost): ControlContext {
  return {
    env: {},
    home: temp.home,
    platform: host.platform,
    now: () => Date.now(),
    connectorHome: join(temp.home, 'connector'),
    self: [],
    version: '1',
    run: host.run,
    log: { debug: () => {}, warn: () => {} },
  };
}

const asked = { sessionId: ID, workDir: '/app', version: '2.1.332', entrypoint: 'cli' };

describe('who has a session, on other systems', () => {
  test('macOS: the live file’s process must have the same start, which ps tells in UTC', async () => {
    live();
    const host = hostOf('darwin', `${PID} S+ ${LSTART}\n`);
    expect(await possessorsOf(asked, contextOf(host), host)).toEqual([
      { pid: PID, startToken: null, by: 'terminal', status: 'idle' },
    ]);
    expect(host.ran[0]?.slice(0, 3)).toEqual(['ps', '-o', 'pid=,state=,lstart=']);
    const later = hostOf('darwin', `${PID} S+ Mon Nov 30 23:59:59 2026\n`);
    expect(await possessorsOf(asked, contextOf(later), later)).toEqual([]);
  });

  test('Windows: a living pid whose file is of this start of the system', async () => {
    live({ startedAt: Date.now() });
    const host = hostOf('win32');
    expect(await possessorsOf(asked, contextOf(host), host)).toMatchObject([{ pid: PID, by: 'terminal' }]);
    expect(host.ran).toEqual([]);
  });

  test('a session that nobody’s file names is nobody’s', async () => {
    live({ sessionId: 'another' });
    const host = hostOf('darwin', `${PID} S+ ${LSTART}\n`);
    expect(await possessorsOf(asked, contextOf(host), host)).toEqual([]);
  });
});

describe('Windows has no interrupt', () => {
  test('a turn of another program is not stopped, and the way to end it is named', async () => {
    // A pid that lives: nothing is sent to it, or this test would not end.
    live({ startedAt: Date.now(), entrypoint: 'sdk-cli', pid: process.pid });
    const session = {
      ref: { runtimeId: 'claude-code', instanceId: 'transcripts', sessionId: ID },
      facts: { workDir: '/app', headless: true, native: { version: '2.1.332' } },
    } as unknown as Session;
    const context = contextOf(hostOf('win32'));
    const result = await abortElsewhere(context, session, false);
    expect(result).toMatchObject({
      kind: 'refused',
      refusal: { kind: 'unsupported', next: expect.stringContaining('--kill') },
    });
  });
});

describe('what stands in the way, in words (M1, A4, S8)', () => {
  const by = (kind: Possessor['by'], more: object = {}): Possessor => ({
    pid: 7,
    startToken: '1',
    by: kind,
    ...more,
  });

  test('nobody is no obstacle', () => {
    expect(obstacleOf([], ID)).toBeUndefined();
  });

  test.each(['terminal', 'headless', 'background', 'old version', 'elsewhere'] as const)(
    '%s: the process, the choices, and what each does',
    (kind) => {
      const obstacle = obstacleOf([by(kind)], ID);
      expect(obstacle).toMatchObject({ kind: 'owned', refusal: { kind: 'ownedElsewhere' } });
      expect(obstacle?.refusal.reason).toContain('process 7');
      expect(obstacle?.refusal.next).toMatch(/queue \(.+\), fork \(.+\), or force \(.+\)/);
    },
  );

  test('S8: a set-up screen is no owner to wait for, and force does not reach it', () => {
    expect(obstacleOf([by('start dialog')], ID)).toMatchObject({
      kind: 'other',
      refusal: { kind: 'refused' },
    });
  });

  test('A4: an owner that waits for its user is said to', () => {
    const obstacle = obstacleOf([by('terminal', { status: 'waiting' })], ID);
    expect(obstacle?.refusal.reason).toContain('which waits for an answer there');
    expect(obstacle?.until).toContain('which waits for an answer there');
  });
});
