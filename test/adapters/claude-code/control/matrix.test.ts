import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { chmodSync, copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { EXIT } from '../../../../src/runtime/errors.ts';
import { isAlive } from '../../../../src/runtime/process/identity.ts';
import { endGroup, noHosts, openElsewhere, openStage, type Stage } from './stage.ts';

// Each starts several programs, and the machine may be busy.
setDefaultTimeout(120_000);

describe.skipIf(process.platform !== 'linux')('R-47: the push matrix of docs/acting.md', () => {
  /** Puts a session into the hands of one owner, and says what ends that. */
  const OWNERS: Record<string, (stage: Stage) => Promise<{ id: string; [Symbol.dispose](): void }>> = {
    nobody: async (stage) => ({ id: stage.session(), [Symbol.dispose]: () => {} }),
    ours: async (stage) => {
      const id = stage.session();
      await stage.run(['session-send', id, '--message', 'hang', '--keep', '1m']);
      return { id, [Symbol.dispose]: () => {} };
    },
    'a terminal': (stage) => elsewhere(stage, { status: 'busy' }),
    'another program': (stage) => elsewhere(stage, { entrypoint: 'sdk-cli', status: 'busy' }),
    "Claude's daemon": (stage) => elsewhere(stage, { kind: 'bg', jobId: '14a017a9' }),
    'a container': (stage) => elsewhere(stage, { pidDomain: 'linux:0:pid:[1]' }),
    'an old version': (stage) => renamed(stage, stage.session(undefined, '2.1.100'), 'sleep', ['1000']),
    'a set-up screen': (stage) => {
      const id = stage.session();
      return renamed(stage, id, 'sh', ['-c', 'sleep 1000; true', '--resume', id]);
    },
  };

  async function elsewhere(stage: Stage, more: object) {
    const id = stage.session();
    const owner = await openElsewhere(stage, id, more);
    return { id, [Symbol.dispose]: () => owner[Symbol.dispose]() };
  }

  /** A program that is called `claude`, in the session's folder, without a live file. */
  async function renamed(stage: Stage, id: string, program: string, args: readonly string[]) {
    const path = join(stage.home, 'claude');
    copyFileSync(Bun.which(program) ?? '', path);
    chmodSync(path, 0o755);
    const child = Bun.spawn([path, ...args], {
      cwd: stage.folder,
      env: { HOME: stage.home, PATH: '/usr/bin:/bin' },
      stdio: ['ignore', 'ignore', 'ignore'],
      detached: true,
    });
    return { id, child, [Symbol.dispose]: () => void endGroup(child.pid) };
  }

  test('K1: a process that only seems to have the session is not killed for it', async () => {
    await using stage = openStage();
    using held = await renamed(stage, stage.session(undefined, '2.1.100'), 'sleep', ['1000']);
    const ran = await stage.run(['session-abort', held.id, '--kill']);
    expect([ran.code, isAlive(held.child.pid)]).toEqual([EXIT.unsupported, true]);
    expect(ran.stderr).toContain(`kill ${held.child.pid}`);
  });

  const table = readFileSync(join(import.meta.dir, '..', '..', '..', '..', 'docs', 'acting.md'), 'utf8');
  const rows = table
    .split('\n')
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .filter((cells) => cells[1] === 'claude-code');

  test('has a row for every owner, and only those', () => {
    expect(rows.map((cells) => cells[2] ?? '').sort()).toEqual(Object.keys(OWNERS).sort());
  });

  for (const [, , owner = '', send, , , , , abort] of rows) {
    test(`${owner}: send ${send}, abort ${abort}`, async () => {
      await using stage = openStage();
      using held = await (OWNERS[owner] ?? Promise.reject)(stage);
      const sent = await stage.run(['session-send', held.id, '--message', 'hi', '--keep', '0', '--json']);
      const aborted = await stage.run(['session-abort', held.id, '--json']);
      expect([sent.code, aborted.code]).toEqual([Number(send), Number(abort)]);
      await stage.run(['session-abort', held.id, '--kill']);
      await noHosts(stage);
    });
  }
});
