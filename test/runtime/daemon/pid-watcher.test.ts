import { describe, expect, test } from 'bun:test';
import { createPeriodic } from '../../../src/runtime/daemon/periodic.ts';
import { createPidWatcher, type PidSight, systemPidProbe } from '../../../src/runtime/daemon/pid-watcher.ts';
import { systemHost } from '../../../src/runtime/process/spawn.ts';
import { createFakeTime, recordLog, settle } from './harness.ts';
import { A, B, START, scene } from './sessions/dsl.ts';

const ALIVE: PidSight = { alive: true, token: 't1' };
const GONE: PidSight = { alive: false, token: undefined };

function watched() {
  const scenery = scene();
  const sights = new Map<number, PidSight>();
  const asked: number[] = [];
  const watcher = createPidWatcher({
    engine: scenery.engine,
    probe: async (pid) => {
      asked.push(pid);
      return sights.get(pid) ?? GONE;
    },
    scheduler: createFakeTime(),
    log: () => {},
  });
  return { ...scenery, sights, asked, watcher };
}

describe('owner processes (S-640 … S-648)', () => {
  test('C-230 S-642: a pid never seen alive was a shell, and ends nothing', async () => {
    const { O, state, watcher } = watched();
    O(A, 'prompt', { pid: 100 });
    await watcher.scan();
    await watcher.scan();
    expect(state(A)).toBe('working');
  });

  test('C-231 S-643: a process seen alive and now gone ends every session it owned, at once', async () => {
    const { O, state, watcher, sights, engine, clock } = watched();
    O(A, 'prompt', { pid: 100 });
    O(B, 'stop', { pid: 100 });
    O('c', 'stop', { pid: 200 });
    sights.set(100, ALIVE);
    await watcher.scan();
    sights.set(100, GONE);
    const version = engine.version();
    await watcher.scan();
    expect([state(A), state(B), state('c')]).toEqual(['ended', 'ended', 'idle']);
    expect(engine.version()).toBeGreaterThan(version);
    clock.plus(11);
    expect([state(A), state(B)]).toEqual([undefined, undefined]);
  });

  test('C-232 S-645: alive, prompted and with a token: kept, and the token taken once', async () => {
    const { O, watcher, sights, engine, clock } = watched();
    O(A, 'prompt', { pid: 100 });
    sights.set(100, ALIVE);
    clock.plus(9);
    await watcher.scan();
    expect(engine.entry(A)).toMatchObject({ pidStart: 't1', lastActive: 9_000, lastSeen: START + 9_000 });
  });

  test('S-645 S-647: an unprompted spare ages out; so does a wrapped chat (C-237), whose exit still ends it', async () => {
    const { O, watcher, sights, state, clock } = watched();
    O(A, 'start', { pid: 100 });
    O(B, 'prompt', { pid: 200 });
    O(B, 'ss:idle', { pid: 200 });
    O('busy', 'ss:working', { pid: 300 });
    for (const pid of [100, 200, 300]) sights.set(pid, ALIVE);
    for (let second = 0; second <= 300; second += 10) {
      await watcher.scan();
      if (second % 30 === 0) O('busy', 'ss:working', { pid: 300 });
      clock.plus(10);
    }
    expect([state(A), state(B), state('busy')]).toEqual([undefined, undefined, 'working']);
    sights.set(300, GONE);
    await watcher.scan();
    expect(state('busy')).toBe('ended');
  });

  test('C-234 S-645 S-647: of several sessions in a process the last active one is kept, and activity decides anew', async () => {
    const { O, watcher, sights, engine, clock } = watched();
    O('old', 'prompt', { pid: 100 });
    clock.plus(99);
    O('new', 'prompt', { pid: 100 });
    clock.plus(1);
    sights.set(100, ALIVE);
    await watcher.scan();
    expect([engine.entry('old')?.lastActive, engine.entry('new')?.lastActive]).toEqual([0, 100_000]);
    clock.plus(5);
    O('old', 'stop', { pid: 100 });
    clock.plus(5);
    await watcher.scan();
    expect([engine.entry('old')?.lastActive, engine.entry('new')?.lastActive]).toEqual([110_000, 100_000]);
  });

  test('S-645: of equals the newest start, then the lowest id: one only', async () => {
    const { O, watcher, sights, engine, clock } = watched();
    O('b', 'prompt', { pid: 100 });
    O('a', 'prompt', { pid: 100 });
    sights.set(100, ALIVE);
    clock.plus(3);
    await watcher.scan();
    expect([engine.entry('a')?.lastActive, engine.entry('b')?.lastActive]).toEqual([3_000, 0]);
  });

  test('C-235 S-644 D1: a pid that another process has now ends the session whose start is known', async () => {
    const { O, watcher, sights, state } = watched();
    O(A, 'prompt', { pid: 100 });
    sights.set(100, ALIVE);
    await watcher.scan();
    sights.set(100, { alive: true, token: 't2' });
    await watcher.scan();
    expect(state(A)).toBe('ended');
    // The confirmation is dropped with it: the new process must be seen for itself first.
    O(B, 'prompt', { pid: 100 });
    sights.set(100, GONE);
    await watcher.scan();
    expect(state(B)).toBe('working');
  });

  test('C-236 S-645: alive without a readable start is confirmed, neither kept nor ended', async () => {
    const { O, watcher, sights, state, engine, clock } = watched();
    O(A, 'prompt', { pid: 100 });
    sights.set(100, { alive: true, token: undefined });
    clock.plus(5);
    await watcher.scan();
    expect(engine.entry(A)).toMatchObject({ pidStart: undefined, lastActive: 0 });
    sights.set(100, GONE);
    await watcher.scan();
    expect(state(A)).toBe('ended');
  });

  test('C-239 S-646: a resume between the look and the end keeps its session', async () => {
    const { O, engine, state, clock } = scene();
    O(A, 'prompt', { pid: 100 });
    const sight = { now: ALIVE };
    const watcher = createPidWatcher({
      engine,
      probe: async () => {
        if (!sight.now.alive) O(A, 'start', { pid: 200 });
        return sight.now;
      },
      scheduler: createFakeTime(),
      log: () => {},
    });
    await watcher.scan();
    sight.now = GONE;
    clock.plus(10);
    await watcher.scan();
    expect(state(A)).toBe('starting');
  });

  test('C-240 S-640: fifty sessions of one process are one look', async () => {
    const { O, watcher, asked } = watched();
    for (let n = 0; n < 50; n += 1) O(`s${n}`, 'prompt', { pid: 100 });
    O('other', 'prompt', { pid: 200 });
    O('without', 'prompt');
    await watcher.scan();
    expect(asked).toEqual([100, 200]);
  });

  test('C-242 S-645: an idle, prompted session of a living process is listed for an hour', async () => {
    const { O, watcher, sights, state, clock } = watched();
    O(A, 'prompt', { pid: 100 });
    O(A, 'stop', { pid: 100 });
    sights.set(100, ALIVE);
    for (let n = 0; n < 360; n += 1) {
      clock.plus(10);
      await watcher.scan();
    }
    expect(state(A)).toBe('idle');
  });

  test('C-241 S-640 S-641: real processes: ourselves, and one that has ended', async () => {
    const probe = systemPidProbe(systemHost);
    const self = await probe(process.pid);
    expect(self.alive).toBe(true);
    expect(self.token).toMatch(/./);
    expect((await probe(process.pid)).token).toBe(self.token ?? '');
    const child = Bun.spawn([process.execPath, '-e', '']);
    await child.exited;
    expect((await probe(child.pid)).alive).toBe(false);
    expect((await probe(1)).alive).toBe(false);
  });
});

describe('watchers in general (S-343)', () => {
  test('C-380: started twice it is one; scans never overlap; a failure resets this watcher alone and is said', async () => {
    const time = createFakeTime();
    const { log, events } = recordLog();
    const gate = {
      open: Promise.withResolvers<void>(),
      running: 0,
      most: 0,
      scans: 0,
      resets: 0,
      fail: false,
    };
    const watcher = createPeriodic({
      name: 'things',
      everyMs: 10_000,
      scheduler: time,
      log,
      reset: () => {
        gate.resets += 1;
      },
      scan: async () => {
        gate.scans += 1;
        gate.running += 1;
        gate.most = Math.max(gate.most, gate.running);
        await gate.open.promise;
        gate.running -= 1;
        if (gate.fail) throw new Error('disk gone');
        return { seen: gate.scans };
      },
    });
    watcher.start();
    watcher.start();
    await time.advance(25_000);
    expect([gate.scans, gate.most]).toEqual([1, 1]);
    gate.open.resolve();
    await settle();
    await time.advance(10_000);
    expect(gate.scans).toBe(2);
    gate.fail = true;
    await time.advance(10_000);
    expect(gate.resets).toBe(1);
    expect(events.at(-1)).toMatchObject({
      level: 'warn',
      event: 'watcher_failed',
      fields: { watcher: 'things', error: 'disk gone' },
    });
    watcher.stop();
    const before = gate.scans;
    await time.advance(60_000);
    expect(gate.scans).toBe(before);
  });
});
