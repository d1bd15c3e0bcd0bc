import { describe, expect, test } from 'bun:test';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ControlContext } from '../../../../src/adapters/adapter.ts';
import { obstacleOf } from '../../../../src/adapters/codex/control/obstacle.ts';
import { type Owner, ownerOf } from '../../../../src/adapters/codex/control/owner.ts';
import { sendByQueue } from '../../../../src/adapters/codex/control/queue-way.ts';
import type { Rpc, RpcAnswer } from '../../../../src/adapters/codex/control/rpc.ts';
import { run, systemHost } from '../../../../src/runtime/process/spawn.ts';
import { finished, ID, inHome, Lines, type TestHome } from '../home.ts';

const hostOf = (home: TestHome) => ({
  ...systemHost,
  platform: 'linux' as const,
  procRoot: join(home.folder, 'proc'),
});

function contextOf(home: TestHome, platform: NodeJS.Platform = 'linux'): ControlContext {
  return {
    ...home.context(),
    platform,
    connectorHome: join(home.folder, 'connector'),
    self: [],
    version: '0',
    run,
    log: { debug() {}, warn() {} },
  };
}

/** A process as `/proc` shows it, with one file open. */
function processIn(home: TestHome, pid: number, words: readonly string[], open: string): void {
  const folder = join(home.folder, 'proc', String(pid));
  mkdirSync(join(folder, 'fd'), { recursive: true });
  writeFileSync(join(folder, 'cmdline'), words.join('\0'));
  writeFileSync(join(folder, 'stat'), `${pid} (codex) S 1 ${pid} ${pid} ${'0 '.repeat(15)}4711 0`);
  symlinkSync(open, join(folder, 'fd', '9'));
}

describe('M1: who has a thread', () => {
  test('a process that only a container can see is in the way, and is never ended', () =>
    inHome(async (home) => {
      home.rollout(finished('Hi'));
      const owner: Owner = { kind: 'elsewhere' };
      expect(obstacleOf(owner, contextOf(home), ID)).toMatchObject({
        kind: 'owned',
        refusal: { kind: 'ownedElsewhere', reason: expect.stringContaining('container') },
      });
    }));

  test('a Codex of before the locks is known by the rollout that it has open', () =>
    inHome(async (home) => {
      const path = home.rollout(finished('Hi'));
      mkdirSync(home.path('thread-writer-locks'), { recursive: true });
      const host = hostOf(home);
      expect(ownerOf(contextOf(home), ID, host)).toEqual({ kind: 'nobody' });
      processIn(home, 4_100, ['vim', path], path);
      expect(ownerOf(contextOf(home), ID, host)).toEqual({ kind: 'nobody' });
      processIn(home, 4_200, ['node', '/usr/bin/codex', 'resume'], path);
      const owner = ownerOf(contextOf(home), ID, host);
      expect(owner).toMatchObject({ kind: 'process', by: 'old', identity: { pid: 4_200 } });
      expect(obstacleOf(owner, contextOf(home), ID)).toMatchObject({
        refusal: { reason: expect.stringContaining('an older Codex (process 4200)') },
      });
    }));

  test('where locks can’t be read nobody is called the owner, and nobody is called absent', () =>
    inHome(async (home) => {
      home.rollout(finished('Hi'));
      const host = { ...hostOf(home), platform: 'darwin' as const };
      expect(ownerOf(contextOf(home, 'darwin'), ID, host)).toEqual({ kind: 'unknown' });
    }));

  test('a terminal at work is waited for, one at rest is no obstacle', () =>
    inHome(async (home) => {
      const owner: Owner = {
        kind: 'process',
        by: 'terminal',
        identity: { pid: 12, startToken: '1' },
        threads: [ID],
      };
      home.rollout(finished('Hi'));
      expect(obstacleOf(owner, contextOf(home), ID)).toBeUndefined();
      home.rollout(new Lines().meta().started().prompt('Hi'));
      expect(obstacleOf(owner, contextOf(home), ID)).toMatchObject({
        kind: 'owned',
        until: expect.stringContaining('when the turn'),
      });
    }));
});

describe('Codex’s own queue', () => {
  /** A server that keeps the queue and says whether an entry could be taken back. */
  function queueOf(deleted: boolean): { rpc: Rpc; called: string[] } {
    const called: string[] = [];
    const result = (fields: Record<string, unknown>): RpcAnswer => ({ kind: 'result', result: fields });
    const rpc: Rpc = {
      async call(method) {
        called.push(method);
        if (method === 'thread/queue/add') return result({ queuedSubmission: { id: 'Q' } });
        if (method === 'thread/queue/list') return result({ data: [{ id: 'Q' }] });
        return result({ deleted });
      },
      notify: async () => true,
      reply: async () => true,
      decline: async () => true,
      open: true,
      close() {},
    };
    return { rpc, called };
  }

  for (const deleted of [true, false]) {
    test(`what nobody takes is taken back; ${deleted ? 'then it was not sent' : 'where that fails, nobody says so'}`, () =>
      inHome(async (home) => {
        home.rollout(finished('Hi'));
        const { rpc, called } = queueOf(deleted);
        const sent: string[] = [];
        const result = await sendByQueue(rpc, {
          context: contextOf(home),
          session: { runtimeId: 'codex', instanceId: 'transcripts', sessionId: ID },
          owner: { kind: 'process', by: 'terminal', identity: { pid: 12, startToken: '1' }, threads: [ID] },
          message: { id: crypto.randomUUID(), text: 'Hi', whenOwned: 'refuse', approvals: 'ask' },
          sink: { accepted() {}, progress() {}, note() {} },
          accepted: () => void sent.push('accepted'),
          signal: new AbortController().signal,
          takenMs: 1,
        });
        expect([sent, called.at(-1)]).toEqual([[], 'thread/queue/delete']);
        expect(result).toMatchObject({
          kind: 'refused',
          refusal: { kind: 'timedOut', reason: expect.stringContaining(deleted ? 'taken back' : 'lies in') },
        });
      }));
  }
});
