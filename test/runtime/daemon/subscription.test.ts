import { afterEach, describe, expect, test } from 'bun:test';
import type { Service } from '../../../src/runtime/daemon/service.ts';
import { type FrameSink, startSubscription, streamTickMs } from '../../../src/runtime/daemon/subscription.ts';
import {
  createCleanup,
  createFakeTime,
  recordLog,
  settle,
  startServer,
  until,
  watchable,
} from './harness.ts';
import { connectWire, type WireClient } from './wire-client.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());

/** A reader that can stop to read. */
function createSink() {
  const frames: unknown[] = [];
  const state = { open: true, waiting: undefined as (() => void) | undefined };
  const sink: FrameSink = {
    write(frame) {
      frames.push(JSON.parse(Buffer.from(frame).toString('utf8')).payload);
      return state.open;
    },
    onceWritable: (run) => {
      state.waiting = run;
    },
  };
  return {
    sink,
    frames,
    stopReading: () => {
      state.open = false;
    },
    readAgain() {
      state.open = true;
      const run = state.waiting;
      state.waiting = undefined;
      run?.();
    },
  };
}

function start(initial: unknown) {
  const time = createFakeTime();
  const source = watchable(initial);
  const reader = createSink();
  const stalled: number[] = [];
  const { log, events } = recordLog();
  const stop = startSubscription({
    source,
    sink: reader.sink,
    scheduler: time,
    log,
    onStalled: () => stalled.push(time.at),
  });
  return { time, source, reader, stop, stalled, events };
}

describe('one subscription', () => {
  test('S-320: the snapshot at once, then one per change', async () => {
    const { source, reader } = start({ n: 0 });
    expect(reader.frames).toEqual([{ n: 0 }]);
    source.set({ n: 1 });
    await settle();
    source.set({ n: 2 });
    await settle();
    expect(reader.frames).toEqual([{ n: 0 }, { n: 1 }, { n: 2 }]);
  });

  test('C-087 S-122: three changes before the subscriber wakes are one sample', async () => {
    const { source, reader } = start(0);
    const before = source.samples;
    for (const n of [1, 2, 3]) source.set(n);
    await settle();
    expect(source.samples).toBe(before + 1);
    expect(reader.frames).toEqual([0, 3]);
  });

  test('S-319: a change that races the first snapshot still wakes the stream', async () => {
    const source = watchable('old');
    const reader = createSink();
    const racing = {
      ...source,
      sample() {
        const value = source.sample();
        // Somebody changes it while the first frame is made.
        if (value === 'old') source.set('new');
        return value;
      },
    };
    startSubscription({
      source: racing,
      sink: reader.sink,
      scheduler: createFakeTime(),
      log: () => {},
      onStalled: () => {},
    });
    await settle();
    expect(reader.frames).toEqual(['old', 'new']);
  });

  test('C-119 S-320: a change that changes nothing visible, and quiet ticks, send no frame', async () => {
    const { source, reader, time } = start('same');
    source.set('same');
    await settle();
    await time.advance(30_000);
    expect(reader.frames).toEqual(['same']);
    expect(source.samples).toBe(5);
  });

  test('C-118 S-320 S-324: what fires no change is seen at the next tick, not before', async () => {
    const { source, reader, time } = start({ last_seen: 1 });
    source.set({ last_seen: 2 }, false);
    source.set({ last_seen: 3 }, false);
    await time.advance(9_999);
    expect(reader.frames).toHaveLength(1);
    await time.advance(1);
    expect(reader.frames).toEqual([{ last_seen: 1 }, { last_seen: 3 }]);
  });

  test('S-323: while nobody reads, later snapshots replace the one that waits', async () => {
    const { source, reader, time, stalled } = start(0);
    reader.stopReading();
    source.set(1);
    await settle();
    for (let n = 2; n <= 1_000; n += 1) source.set(n);
    await time.advance(20_000);
    expect(reader.frames).toEqual([0, 1]);
    const before = source.samples;
    reader.readAgain();
    await settle();
    expect(reader.frames).toEqual([0, 1, 1_000]);
    expect(source.samples).toBe(before + 1);
    await time.advance(60_000);
    expect(stalled).toEqual([]);
  });

  test('S-323: 30 s without reading is the end', async () => {
    const { source, reader, time, stalled } = start(0);
    reader.stopReading();
    source.set(1);
    await settle();
    await time.advance(29_999);
    expect(stalled).toEqual([]);
    await time.advance(1);
    expect(stalled).toEqual([30_000]);
  });

  test('S-322: after its end it neither samples nor sends', async () => {
    const { source, reader, time, stop } = start(0);
    source.set(1);
    stop();
    await time.advance(60_000);
    source.set(2);
    await settle();
    expect(reader.frames).toEqual([0]);
    expect(source.samples).toBe(1);
  });

  test('S-935: each sample is logged with its trigger and result', async () => {
    const { source, time, events } = start(0);
    source.set(1);
    await settle();
    await time.advance(10_000);
    expect(events.map(({ fields }) => [fields['trigger'], fields['result']])).toEqual([
      ['initial', 'pushed'],
      ['change_notification', 'pushed'],
      ['periodic_tick', 'suppressed_identical'],
    ]);
  });

  test('S-304: a snapshot over the line limit is not sent, and the next one that fits is', async () => {
    const { source, reader, events } = start('x'.repeat(1024 * 1024));
    source.set('small');
    await settle();
    expect(reader.frames).toEqual(['small']);
    expect(events[0]).toMatchObject({ level: 'warn', fields: { result: 'too_large' } });
  });
});

test('C-122 K-28: the tick is whole seconds above zero, else ten', () => {
  const given = ['0', 'abc', '  ', '3', undefined, '-1', '2.5', ' 7 ', '1e3'];
  expect(given.map((text) => streamTickMs(text) / 1_000)).toEqual([10, 10, 10, 3, 10, 10, 10, 7, 10]);
});

describe('a subscription on a socket', () => {
  async function serve(initial: unknown, limits = {}) {
    const source = watchable(initial);
    const service: Service = {
      name: 'things',
      ops: { list: () => source.sample(), set: (value) => source.set(value) },
      subscriptions: {
        subscribe(payload) {
          if (payload === 'bad') throw new Error('invalid `subscribe` payload');
          return source;
        },
      },
    };
    const { log, events } = recordLog();
    const started = await startServer(cleanup, [service], { log, limits });
    const ends = () =>
      events.filter(({ event }) => event === 'subscription_ended').map(({ fields }) => fields['reason']);
    return { ...started, source, events, ends };
  }

  async function client(path: string): Promise<WireClient> {
    const wire = await connectWire(path);
    cleanup.add(() => wire.close());
    return wire;
  }

  const SUBSCRIBE = { service: 'things', op: 'subscribe' };

  test('C-117 S-321: the frame is byte for byte what `list` replies', async () => {
    const { path } = await serve({ sessions: [{ a: 'é\u2028', b: [1, null] }] });
    const lister = await client(path);
    const subscriber = await client(path);
    lister.raw(`${JSON.stringify({ service: 'things', op: 'list' })}\n`);
    subscriber.raw(`${JSON.stringify(SUBSCRIBE)}\n`);
    expect(await subscriber.nextText()).toBe(await lister.nextText());
  });

  test('S-319 S-322: requests before it are answered; any line after it cancels', async () => {
    const { path, ends } = await serve(1);
    const wire = await client(path);
    expect(await wire.ask({ op: 'ping' })).toMatchObject({ ok: true });
    expect(await wire.ask(SUBSCRIBE)).toEqual({ ok: true, payload: 1 });
    wire.raw('{"op":"ping"}\n');
    await wire.ended;
    expect(wire.waiting).toBe(0);
    expect(ends()).toEqual(['ClientCancel']);
  });

  test('S-322: a line that came together with the subscription cancels it too', async () => {
    const { path, ends } = await serve(1);
    const wire = await client(path);
    wire.raw(`${JSON.stringify(SUBSCRIBE)}\n{"op":"ping"}\n`);
    expect(await wire.next()).toEqual({ ok: true, payload: 1 });
    await wire.ended;
    expect(ends()).toEqual(['ClientCancel']);
  });

  test('S-322: half a line is no line', async () => {
    const { path, source } = await serve(1);
    const wire = await client(path);
    await wire.ask(SUBSCRIBE);
    wire.raw('{"op":');
    source.set(2);
    expect(await wire.next()).toEqual({ ok: true, payload: 2 });
  });

  test('S-322 S-935: end of file, broken framing and shutdown have names of their own', async () => {
    const { path, ends, server } = await serve(1);
    const leaving = await client(path);
    await leaving.ask(SUBSCRIBE);
    leaving.socket.end();
    await leaving.ended;
    expect(ends()).toEqual(['ClientEof']);
    const broken = await client(path);
    await broken.ask(SUBSCRIBE);
    broken.raw(Buffer.from([0xff, 10]));
    await broken.ended;
    expect(ends()).toEqual(['ClientEof', 'ReadDecodeError']);
    const last = await client(path);
    await last.ask(SUBSCRIBE);
    await server.stop();
    await last.ended;
    expect(ends()).toEqual(['ClientEof', 'ReadDecodeError', 'DaemonShutdown']);
  });

  test('S-325: a refused subscription is an error reply, and the connection stays open', async () => {
    const { path } = await serve(1);
    const wire = await client(path);
    expect(await wire.ask({ ...SUBSCRIBE, payload: 'bad' })).toMatchObject({ ok: false });
    expect(await wire.ask({ ...SUBSCRIBE, op: 'subscribe2' })).toEqual({
      ok: false,
      error: 'unknown things op: subscribe2',
    });
    expect(await wire.ask(SUBSCRIBE)).toMatchObject({ ok: true });
  });

  test('S-337: a subscriber is no idle connection', async () => {
    const { path, source, server } = await serve(1, { idleMs: 30 });
    const wire = await client(path);
    await wire.ask(SUBSCRIBE);
    const other = await client(path);
    await other.ended;
    source.set(2);
    expect(await wire.next()).toEqual({ ok: true, payload: 2 });
    await until('only the subscriber is left', () => server.connections === 1);
  });

  test('C-121 S-323: a subscriber that stops reading costs one frame, hinders nobody, and is dropped', async () => {
    const { path, source, ends, server } = await serve({ fill: '' }, { stalledMs: 400 });
    const stuck = await client(path);
    await stuck.ask(SUBSCRIBE);
    stuck.socket.pause();
    const other = await client(path);
    await other.ask(SUBSCRIBE);
    const fill = 'z'.repeat(300 * 1024);
    for (let n = 1; n <= 1_000; n += 1) {
      source.set({ fill, n });
      if (n % 100 === 0) await settle();
    }
    await until('the other one is up to date', async () =>
      JSON.stringify(await other.next()).endsWith('"n":1000}}'),
    );
    expect(await (await client(path)).ask({ op: 'ping' })).toMatchObject({ ok: true });
    await until('it is dropped', () => ends().includes('WriteFailure'));
    await until('and forgotten', () => server.connections === 2);
  });
});
