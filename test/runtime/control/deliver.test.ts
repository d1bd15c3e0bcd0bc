import { afterEach, describe, expect, test } from 'bun:test';
import { randomUUID } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { deliverLeft } from '../../../src/runtime/control/deliver.ts';
import type { HostSpec } from '../../../src/runtime/control/driver.ts';
import { lockSession } from '../../../src/runtime/control/push-lock.ts';
import { openQueue, type QueuedMessage } from '../../../src/runtime/control/queue.ts';
import { run } from '../../../src/runtime/process/spawn.ts';
import { createCleanup, recordLog, tempFolder } from '../daemon/harness.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());

const NOW = 1_790_000_000_000;
const SESSION = { runtimeId: 'claude-code', instanceId: 'transcripts', sessionId: 'a' };
const ORDER: HostSpec = {
  session: SESSION,
  start: { kind: 'resume' },
  workDir: '/w',
  approvalMs: 1_000,
  keepMs: 0,
  native: {},
};

function bench() {
  const home = realpathSync(tempFolder(cleanup));
  const { log, events } = recordLog();
  const context = {
    env: {},
    home,
    platform: process.platform,
    now: () => NOW,
    connectorHome: home,
    self: [],
    version: 'test',
    run,
    log: { debug() {}, warn() {} },
  };
  const orders: HostSpec[] = [];
  const queue = openQueue(home, SESSION);
  return {
    context,
    orders,
    queue,
    events,
    put(extra: Partial<QueuedMessage> = {}) {
      const base = { id: randomUUID(), text: 'hi', whenOwned: 'queue', approvals: 'ask' } as const;
      const times = { createdAt: NOW, expiresAt: NOW + 1_000, attempted: false };
      queue.put({ ...base, session: SESSION, ...times, order: ORDER, ...extra });
    },
    look: (isBusy = false, refuse = false) =>
      deliverLeft({
        context,
        isBusy: () => isBusy,
        log,
        async reach(_context, spec) {
          orders.push(spec);
          const refusal = { reason: 'no program', kind: 'runtimeMissing', next: '' } as const;
          if (refuse) return { kind: 'refused', refusal };
          return { kind: 'reached', client: { call: async () => ({}), close() {} } };
        },
      }),
  };
}

describe('messages whose command and host are gone', () => {
  test('R-38: a host is started with the order that lies with them', async () => {
    const b = bench();
    expect(await b.look()).toMatchObject({ sessions: 0, started: 0 });
    b.put();
    expect(await b.look()).toMatchObject({ sessions: 1, started: 1 });
    expect(b.orders).toEqual([ORDER]);
    expect(b.events).toContainEqual({
      level: 'info',
      event: 'message_delivery',
      fields: { session: 'a', messages: 1, outcome: 'started' },
    });
  });

  test('M1: while the owner is in a turn nothing is begun', async () => {
    const b = bench();
    b.put();
    expect(await b.look(true)).toMatchObject({ busy: 1, started: 0 });
    expect(b.orders).toEqual([]);
    expect(await b.look(false)).toMatchObject({ started: 1 });
  });

  test('one whose host lives is left to it', async () => {
    const b = bench();
    b.put();
    const lock = await lockSession(b.context, SESSION);
    if (lock.kind !== 'held') throw new Error(lock.kind);
    expect(await b.look()).toMatchObject({ tended: 1, started: 0 });
    lock.release();
  });

  test('R-38 M7: what is too old, or may have arrived, is deleted and never sent', async () => {
    const b = bench();
    b.put({ expiresAt: NOW });
    b.put({ attempted: true, createdAt: NOW + 1 });
    expect(await b.look()).toMatchObject({ deleted: 2, started: 0 });
    expect(b.queue.list()).toEqual([]);
    expect(b.orders).toEqual([]);
  });

  test('a host that can’t be started is tried again, and the message stays', async () => {
    const b = bench();
    b.put();
    expect(await b.look(false, true)).toMatchObject({ failed: 1 });
    expect(b.events.at(-1)?.fields).toMatchObject({ outcome: 'refused', reason: 'no program' });
    expect(b.queue.list()).toHaveLength(1);
  });

  test('the order in the file is checked: one that is none of ours makes the file no message', () => {
    const b = bench();
    b.put();
    expect(b.queue.list()).toMatchObject([{ order: ORDER }]);
    b.put({ createdAt: NOW + 1, order: { ...ORDER, start: { kind: 'new' } } });
    expect(b.queue.list()).toHaveLength(1);
  });
});
