import { describe, expect, test } from 'bun:test';
import type { FeedScan, FeedSink, RuntimeFeed } from '../../src/runtime/feed.ts';
import { createMonitor, type MonitorClock } from '../../src/runtime/monitor.ts';
import { publicState } from '../../src/runtime/session/project.ts';
import type { Sighting } from '../../src/runtime/session/session.ts';
import { IDLE, RUNNING, type SessionState, waitingOn } from '../../src/runtime/session/state.ts';

const T = 1_796_000_000_000;

function sighting(runtimeId: string, sessionId: string, says: SessionState, feed = 'rows'): Sighting {
  return {
    session: { runtimeId, instanceId: 'i', sessionId },
    claims: [
      { feed, confidence: feed === 'rows' ? 'inferred' : 'exact', at: T, says, life: 'alive', detail: '' },
    ],
  };
}
const scanOf = (...sightings: Sighting[]): FeedScan => ({ instances: [], sightings, problems: [] });

/** A clock that moves when told; timers run in order. */
function manualClock(): MonitorClock & { advance(ms: number): void } {
  const clock = { at: T };
  const timers: { at: number; run: () => void }[] = [];
  return {
    now: () => clock.at,
    after(ms, run) {
      const timer = { at: clock.at + ms, run };
      timers.push(timer);
      return () => void timers.splice(timers.indexOf(timer), timers.includes(timer) ? 1 : 0);
    },
    advance(ms) {
      const end = clock.at + ms;
      for (;;) {
        const due = timers.filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0];
        if (!due) break;
        timers.splice(timers.indexOf(due), 1);
        clock.at = due.at;
        due.run();
      }
      clock.at = end;
    },
  };
}

interface FakeFeed extends RuntimeFeed<null> {
  scans: number;
  answer: () => Promise<FeedScan>;
  sink: FeedSink | undefined;
  withoutLive: (boolean | undefined)[];
}

function fakeFeed(id: string, answer: () => Promise<FeedScan>): FakeFeed {
  const feed: FakeFeed = {
    id,
    scans: 0,
    answer,
    sink: undefined,
    withoutLive: [],
    scan(_context, options) {
      feed.scans += 1;
      feed.withoutLive.push(options?.withoutLive);
      return feed.answer();
    },
    async watch(_context, sink) {
      feed.sink = sink;
      return { close: async () => {}, status: () => 'files' };
    },
  };
  return feed;
}

const states = (monitor: ReturnType<typeof createMonitor<null>>) =>
  Object.fromEntries(monitor.registry.sessions().map((s) => [s.ref.sessionId, publicState(s.shown.state)]));
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('monitor', () => {
  test('R-42: what a process of ours runs is ours as long as it runs; nothing else is copied', async () => {
    const feed = fakeFeed('f', async () => scanOf(sighting('f', 'a', RUNNING), sighting('f', 'b', IDLE)));
    const owned = { keys: new Set(['f:i:a']) };
    const monitor = createMonitor({
      feeds: [feed],
      context: null,
      clock: manualClock(),
      owned: () => owned.keys,
    });
    const origins = () => monitor.registry.sessions().map((one) => one.origin);
    await monitor.scan();
    expect(origins()).toEqual(['connectorOwned', 'unboundLocal']);
    owned.keys = new Set();
    await monitor.scan();
    expect(origins()).toEqual(['unboundLocal', 'unboundLocal']);
    expect(monitor.registry.sessions()[1]?.facts.origin).toBeUndefined();
    await monitor.close();
  });

  test('a feed that fails costs only itself, and its old sessions stay', async () => {
    const good = fakeFeed('good', async () => scanOf(sighting('good', 'a', RUNNING)));
    const bad = fakeFeed('bad', async () => scanOf(sighting('bad', 'b', RUNNING)));
    const monitor = createMonitor({ feeds: [good, bad], context: null, clock: manualClock() });
    await monitor.scan();
    bad.answer = async () => {
      throw new Error('database disk image is malformed');
    };
    await monitor.scan();
    expect(states(monitor)).toEqual({ a: 'running', b: 'running' });
    expect(monitor.problems()).toEqual([
      { subject: 'bad', reason: 'database disk image is malformed', skipped: 0 },
    ]);
  });

  test('however often something changes during a scan, one more scan follows it', async () => {
    const gate = Promise.withResolvers<void>();
    const feed = fakeFeed('x', async () => scanOf());
    const monitor = createMonitor({ feeds: [feed], context: null, clock: manualClock() });
    await monitor.watch(() => {});
    await settle();
    feed.scans = 0;
    feed.answer = async () => {
      await gate.promise;
      return scanOf();
    };
    for (let i = 0; i < 100; i += 1) feed.sink?.changed();
    expect(feed.scans).toBe(1);
    gate.resolve();
    await settle();
    await settle();
    expect(feed.scans).toBe(2);
    await monitor.close();
  });

  test('a watched feed is polled without asking its live sources again', async () => {
    const clock = manualClock();
    const feed = fakeFeed('x', async () => scanOf());
    const monitor = createMonitor({ feeds: [feed], context: null, clock, pollMs: 5_000 });
    await monitor.scan();
    await monitor.watch(() => {});
    await settle();
    expect(feed.withoutLive).toEqual([false, true]);
    clock.advance(5_000);
    await settle();
    expect(feed.withoutLive).toEqual([false, true, true]);
    await monitor.close();
  });

  test('what changed between the first scan and the start of the watch is seen at once', async () => {
    const feed = fakeFeed('x', async () => scanOf(sighting('x', 's', IDLE)));
    const monitor = createMonitor({ feeds: [feed], context: null, clock: manualClock() });
    await monitor.scan();
    feed.answer = async () => scanOf(sighting('x', 's', RUNNING));
    await monitor.watch(() => {});
    await settle();
    expect(states(monitor)).toEqual({ s: 'running' });
    await monitor.close();
  });

  test('a live source’s word stands over scans until the source is lost', async () => {
    const feed = fakeFeed('x', async () => scanOf(sighting('x', 's', RUNNING)));
    const monitor = createMonitor({ feeds: [feed], context: null, clock: manualClock() });
    await monitor.scan();
    await monitor.watch(() => {});
    feed.sink?.sighted('x.live', [sighting('x', 's', waitingOn('tool'), 'live')]);
    await monitor.scan();
    expect(states(monitor)).toEqual({ s: 'waiting_for_approval' });
    feed.sink?.lost('x.live', 'connection closed');
    await settle();
    expect(states(monitor)).toEqual({ s: 'running' });
    await monitor.close();
  });

  test('a feed that can’t be watched is polled, and says so', async () => {
    const feed = fakeFeed('x', async () => scanOf(sighting('x', 's', IDLE)));
    feed.watch = async () => {
      throw new Error('ENOSPC: no space for another watch');
    };
    const clock = manualClock();
    const monitor = createMonitor({ feeds: [feed], context: null, clock, pollMs: 5_000 });
    await monitor.watch(() => {});
    expect(monitor.status()).toEqual({ x: 'polling only' });
    expect(monitor.problems()[0]?.reason).toBe('ENOSPC: no space for another watch');
    clock.advance(10_000);
    await settle();
    expect(feed.scans).toBeGreaterThanOrEqual(1);
    await monitor.close();
  });

  test('after closing, late answers and timers change nothing', async () => {
    const gate = Promise.withResolvers<void>();
    const feed = fakeFeed('x', async () => {
      await gate.promise;
      return scanOf(sighting('x', 's', RUNNING));
    });
    const clock = manualClock();
    const monitor = createMonitor({ feeds: [feed], context: null, clock });
    await monitor.watch(() => {});
    feed.sink?.changed();
    const closed = monitor.close();
    gate.resolve();
    await closed;
    clock.advance(60_000);
    expect([monitor.registry.size, feed.scans]).toEqual([0, 1]);
  });
});
