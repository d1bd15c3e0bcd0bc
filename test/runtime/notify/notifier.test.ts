import { afterEach, describe, expect, test } from 'bun:test';
import { existsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { followConfig } from '../../../src/runtime/config/live.ts';
import { configPathIn } from '../../../src/runtime/config/path.ts';
import { CONFIG, NOTIFY } from '../../../src/runtime/limits.ts';
import { LEDGER_NAME, openLedger } from '../../../src/runtime/notify/ledger.ts';
import type { Notice } from '../../../src/runtime/notify/notice.ts';
import { startNotifier } from '../../../src/runtime/notify/notifier.ts';
import type { Sink, SinkResult } from '../../../src/runtime/notify/sinks/sink.ts';
import { createRegistry } from '../../../src/runtime/session/registry.ts';
import type { Session, Sighting } from '../../../src/runtime/session/session.ts';
import { RUNNING, type SessionState, waitingOn } from '../../../src/runtime/session/state.ts';
import { createCleanup, createFakeTime, recordLog, settle, tempFolder } from '../daemon/harness.ts';
import { rested, session, T } from './sessions.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());

type Send = (notice: Notice) => Promise<SinkResult>;

/** A notifier over sessions that the test shows, with a command sink that the test is. */
async function bench(
  sends: Readonly<Partial<Record<Sink['name'], Send>>>,
  settings: object = {},
  home = tempFolder(cleanup),
) {
  const write = (value: object) => writeFileSync(configPathIn(home), JSON.stringify(value));
  write({ notifications: { enabled: true }, ...settings });
  const time = createFakeTime();
  const { log, events } = recordLog();
  const state = { sessions: [] as readonly Session[], listeners: new Set<() => void>() };
  const notifier = startNotifier({
    source: {
      ready: Promise.resolve(),
      onChange(listener) {
        state.listeners.add(listener);
        return () => void state.listeners.delete(listener);
      },
      sessions: () => state.sessions,
      instances: () => [],
      now: () => T + time.at,
    },
    config: followConfig(home, time),
    ledger: openLedger(join(home, LEDGER_NAME)),
    scheduler: time,
    log,
    labelOf: () => 'Codex CLI',
    sinks: () =>
      (['desktop', 'command', 'webhook'] as const).flatMap((name) => {
        const send = sends[name];
        return send ? [{ name, words: 'test', send }] : [];
      }),
  });
  await settle();
  return {
    home,
    time,
    events,
    notifier,
    write,
    listeners: state.listeners,
    async show(...sessions: readonly Session[]) {
      state.sessions = sessions;
      for (const listener of state.listeners) listener();
      await settle();
    },
  };
}

const working = (opened: number, more = {}) =>
  session(RUNNING, { opened: T + opened, at: T + opened, ...more });
const done = (opened: number, ended: number, more = {}) =>
  session(rested('completed'), { opened: T + opened, ended: T + ended, at: T + ended, ...more });
const delivered: SinkResult = { kind: 'delivered' };

/** A sink that remembers. */
function recorder() {
  const told: Notice[] = [];
  return {
    told,
    async send(notice: Notice) {
      told.push(notice);
      return delivered;
    },
  };
}

describe('the notifier', () => {
  test('tells what has settled by its own clock, without another change', async () => {
    const { told, send } = recorder();
    const b = await bench({ command: send });
    await b.show(working(1));
    await b.show(done(1, 2));
    expect(told).toEqual([]);
    await b.time.advance(NOTIFY.settleMs);
    expect(told.map(({ event }) => event)).toEqual(['connector.session.completed']);
    expect(b.notifier.status()).toMatchObject({ enabled: true, told: 1, delivered: 1, failed: 0 });
    await b.notifier.stop();
    expect(b.listeners.size).toBe(0);
  });

  test('N5: what is told is written down before any way hears of it, privately, and by ids and times', async () => {
    const seen: boolean[] = [];
    const home = tempFolder(cleanup);
    const file = join(home, LEDGER_NAME);
    const b = await bench(
      {
        command: async () => {
          seen.push(openLedger(file).get('codex:transcripts:a')?.through === T + 2);
          return delivered;
        },
      },
      {},
      home,
    );
    await b.show(working(1));
    await b.show(done(1, 2));
    await b.time.advance(NOTIFY.settleMs);
    expect(seen).toEqual([true]);
    if (process.platform !== 'win32') expect(statSync(file).mode & 0o777).toBe(0o600);
    await b.notifier.stop();
  });

  test('a way that is slow keeps no other back; one that fails is logged and counted, and not repeated', async () => {
    const { told, send } = recorder();
    const held = Promise.withResolvers<SinkResult>();
    const b = await bench({
      webhook: () => held.promise,
      command: send,
      desktop: async () => ({ kind: 'failed', reason: 'no bus' }),
    });
    await b.show(working(1, { id: 'a' }), working(1, { id: 'b' }));
    await b.show(done(1, 2, { id: 'a' }), working(1, { id: 'b' }));
    await b.time.advance(NOTIFY.settleMs);
    await b.show(done(1, 2, { id: 'a' }), done(1, 3_000, { id: 'b' }));
    await b.time.advance(NOTIFY.settleMs);
    expect(told).toHaveLength(2);
    expect(b.notifier.status()).toMatchObject({
      told: 2,
      delivered: 2,
      failed: 2,
      lastFailure: 'desktop: no bus',
    });
    const failures = b.events.filter(
      ({ event, fields }) => event === 'notified' && fields['outcome'] === 'failed',
    );
    expect(failures.map(({ level, fields }) => [level, fields['sink'], fields['reason']])).toEqual([
      ['warn', 'desktop', 'no bus'],
      ['warn', 'desktop', 'no bus'],
    ]);
    held.resolve(delivered);
    await settle();
    expect(b.notifier.status().delivered).toBe(4);
    await b.notifier.stop();
  });

  const tries = (results: readonly SinkResult['kind'][]) => {
    const left = [...results];
    const told: string[] = [];
    const send = async ({ id }: Notice): Promise<SinkResult> => {
      told.push(id);
      return left.shift() === 'delivered' ? delivered : { kind: 'failed', reason: 'gone' };
    };
    return { told, send };
  };

  test('N5: what no way could deliver is taken back, and brought again until one does', async () => {
    const { told, send } = tries(['failed', 'failed', 'delivered']);
    const home = tempFolder(cleanup);
    const b = await bench({ command: send }, {}, home);
    const through = () => openLedger(join(home, LEDGER_NAME)).get('codex:transcripts:a')?.through;
    await b.show(working(1));
    await b.show(done(1, 2));
    await b.time.advance(NOTIFY.settleMs);
    expect([told.length, through()]).toEqual([1, undefined]);
    await b.time.advance(NOTIFY.againMs[0]);
    expect([told.length, through()]).toEqual([2, undefined]);
    await b.time.advance(NOTIFY.againMs[1]);
    expect([told.length, through()]).toEqual([3, T + 2]);
    await b.time.advance(10 * NOTIFY.resumeMs);
    expect(new Set(told).size).toBe(1);
    expect(told).toHaveLength(3);
    expect(b.notifier.status()).toMatchObject({ told: 1, delivered: 1, failed: 2 });
    await b.notifier.stop();
  });

  test('N5: it is not brought again for ever, nor where another way delivered it', async () => {
    const [never, first, second] = [tries([]), tries([]), tries(['delivered'])];
    const b = await bench({ command: never.send });
    const both = await bench({ command: first.send, webhook: second.send });
    for (const one of [b, both]) {
      await one.show(working(1));
      await one.show(done(1, 2));
      await one.time.advance(10 * NOTIFY.resumeMs);
    }
    expect(never.told).toHaveLength(1 + NOTIFY.againMs.length);
    expect([first.told.length, second.told.length]).toEqual([1, 1]);
    await b.notifier.stop();
    await both.notifier.stop();
  });

  test('N5: what is no longer so is not brought again: a wait that was answered, a turn after which another began', async () => {
    const { told, send } = tries([]);
    const b = await bench({ command: send });
    const asks = session(waitingOn('tool'), { opened: T + 1, at: T + 2 });
    await b.show(working(1));
    await b.show(asks);
    await b.time.advance(NOTIFY.settleMs);
    expect(told).toHaveLength(1);
    await b.show(working(1));
    await b.time.advance(10 * NOTIFY.resumeMs);
    expect(told).toHaveLength(1);
    await b.show(done(1, b.time.at));
    await b.time.advance(NOTIFY.settleMs);
    expect(told).toHaveLength(2);
    await b.show(working(b.time.at));
    await b.time.advance(10 * NOTIFY.resumeMs);
    expect(told).toHaveLength(2);
    await b.notifier.stop();
  });

  test('N5 N3: one that was never delivered is told by the next start, and one cut off on its way is not', async () => {
    const cut = Promise.withResolvers<SinkResult>();
    const gone: Send = async () => ({ kind: 'failed', reason: 'gone' });
    for (const [send, again] of [
      [gone, 1],
      [() => cut.promise, 0],
    ] as const) {
      const home = tempFolder(cleanup);
      const b = await bench({ command: send }, {}, home);
      await b.show(working(1));
      await b.show(done(1, 2));
      await b.time.advance(NOTIFY.settleMs);
      const stopped = b.notifier.stop();
      if (again === 0) cut.resolve({ kind: 'failed', reason: 'stopped' });
      await stopped;
      const { told, send: next } = recorder();
      const after = await bench({ command: next }, {}, home);
      await after.show(done(1, 2));
      await after.time.advance(10 * NOTIFY.settleMs);
      expect(told).toHaveLength(again);
      await after.notifier.stop();
    }
  });

  test('a way that never comes back has a bounded queue', async () => {
    const b = await bench({ webhook: () => new Promise(() => {}) });
    const many = Array.from({ length: NOTIFY.queued + 5 }, (_, i) => `s${i}`);
    await b.show(...many.map((id) => working(1, { id })));
    await b.show(...many.map((id) => done(1, 2, { id })));
    await b.time.advance(NOTIFY.settleMs);
    expect(b.events.filter(({ event }) => event === 'notify_dropped')).toHaveLength(5);
    expect(b.notifier.status().failed).toBe(5);
  });

  test('R-25: off it tells nothing and writes nothing; turned on it begins with what is then', async () => {
    const { told, send } = recorder();
    const b = await bench({ command: send }, { notifications: { enabled: false } });
    await b.show(working(1, { id: 'a' }));
    await b.show(done(1, 2, { id: 'a' }));
    await b.time.advance(10 * NOTIFY.settleMs);
    expect([told.length, existsSync(join(b.home, LEDGER_NAME))]).toEqual([0, false]);
    b.write({ notifications: { enabled: true } });
    await b.time.advance(CONFIG.lookMs);
    await b.time.advance(10 * NOTIFY.settleMs);
    expect(told).toEqual([]);
    await b.show(done(1, 2, { id: 'a' }), working(b.time.at, { id: 'b' }));
    await b.show(done(1, 2, { id: 'a' }), done(b.time.at, b.time.at + 1, { id: 'b' }));
    await b.time.advance(NOTIFY.settleMs);
    expect(told.map(({ session: ref }) => ref?.sessionId)).toEqual(['b']);
    await b.notifier.stop();
  });

  test('R-37: privacy.titles binds the details of every way, too', async () => {
    const { told, send } = recorder();
    const b = await bench({ command: send }, { privacy: { titles: 'hidden' } });
    const facts = { title: 'secret', workDir: '/secret/shop' };
    await b.show(working(1, { facts }));
    await b.show(session(rested('failed'), { opened: T + 1, ended: T + 2, error: 'secret', facts }));
    await b.time.advance(NOTIFY.settleMs);
    expect(told.map(({ details, folder }) => [details, folder])).toEqual([[{}, 'shop']]);
    await b.notifier.stop();
  });

  test('a ledger file that is no use begins anew', () => {
    const file = join(tempFolder(cleanup), LEDGER_NAME);
    for (const text of [
      '',
      '{',
      '[]',
      '{"version":2,"sessions":{}}',
      '{"version":1,"sessions":{"a":{"at":"x"}}}',
    ]) {
      writeFileSync(file, text);
      const ledger = openLedger(file);
      expect(ledger.all()).toEqual({});
      ledger.set('k', { at: T, through: T });
      expect(ledger.save()).toBeUndefined();
      expect(openLedger(file).all()).toEqual({ k: { at: T, through: T } });
    }
  });
});

describe('sub-agents fold (R-14, N8)', () => {
  const sighting = (id: string, says: SessionState, more: object = {}, parentId?: string): Sighting => ({
    session: { runtimeId: 'codex', instanceId: 'transcripts', sessionId: id },
    facts: { workDir: '/home/me/shop', ...(parentId ? { lineage: { parentId } } : {}) },
    claims: [
      {
        feed: 'codex.app-server',
        confidence: 'exact',
        at: T,
        says,
        life: 'alive',
        detail: '',
        turn: { openedAt: T },
        ...more,
      },
    ],
  });

  test('a sub-agent’s wait is its parent’s, its end is nobody’s', async () => {
    const { told, send } = recorder();
    const b = await bench({ command: send });
    const registry = createRegistry();
    const step = async (...sightings: readonly Sighting[]) => {
      registry.apply('live', sightings, T + b.time.at);
      await b.show(...registry.sessions());
      await b.time.advance(NOTIFY.settleMs);
      await b.show(...registry.sessions());
    };
    await step(sighting('parent', RUNNING), sighting('child', RUNNING, {}, 'parent'));
    await step(sighting('child', waitingOn('tool'), { at: T + b.time.at }, 'parent'));
    expect(told.map(({ kind, session: ref }) => [kind, ref?.sessionId])).toEqual([['approval', 'parent']]);
    const end = { at: T + b.time.at, turn: { openedAt: T, endedAt: T + b.time.at, end: 'completed' } };
    await step(sighting('child', rested('completed'), end, 'parent'));
    expect(told).toHaveLength(1);
    await step(sighting('parent', rested('completed'), end));
    expect(told.map(({ kind }) => kind)).toEqual(['approval', 'done']);
    await b.notifier.stop();
  });
});
