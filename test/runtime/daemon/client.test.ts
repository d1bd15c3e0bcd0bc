import { afterEach, describe, expect, test } from 'bun:test';
import { createServer as createNetServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { createClient, type SubscriptionEvent } from '../../../src/runtime/daemon/client.ts';
import type { Service } from '../../../src/runtime/daemon/service.ts';
import {
  createCleanup,
  createFakeTime,
  settle,
  startServer,
  tempFolder,
  until,
  watchable,
} from './harness.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());

/** A stranger's server: answers each line with what it is told, and can drop its clients. */
async function oldServer(answer: (line: string) => string | Buffer | undefined) {
  const path = join(tempFolder(cleanup), 'daemon.sock');
  const lines: string[] = [];
  const sockets = new Set<Socket>();
  const state = { connections: 0 };
  const server = createNetServer((socket) => {
    state.connections += 1;
    sockets.add(socket);
    socket.on('error', () => {
      // A client may leave at any time.
    });
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', (chunk) => {
      for (const line of chunk.toString().split('\n').filter(Boolean)) {
        lines.push(line);
        const reply = answer(line);
        if (reply !== undefined) socket.write(reply);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const drop = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  cleanup.add(() => {
    drop();
    server.close();
  });
  return { path, lines, state, drop };
}

describe('one request', () => {
  const service: Service = {
    name: 'echo',
    ops: {
      say: (payload) => payload,
      fail: () => {
        throw new Error('not today');
      },
      hang: () => new Promise(() => {}),
      big: () => 'x'.repeat(900_000),
    },
  };

  test('answers, refusals, and large replies', async () => {
    const { path } = await startServer(cleanup, [service], { limits: { drainMs: 10 } });
    const client = createClient({ socketPath: path });
    expect(await client.request('echo', 'say', { a: 'é' })).toEqual({ kind: 'ok', payload: { a: 'é' } });
    expect(await client.request('daemon', 'ping')).toMatchObject({ kind: 'ok', payload: { pong: true } });
    expect(await client.request('echo', 'fail')).toEqual({ kind: 'rejected', error: 'not today' });
    expect(await client.request('echo', 'nope')).toEqual({
      kind: 'rejected',
      error: 'unknown echo op: nope',
    });
    expect(await client.request('echo', 'big')).toMatchObject({ kind: 'ok' });
    expect(await client.request('echo', 'say', 'y'.repeat(900_000))).toMatchObject({ kind: 'ok' });
    expect(await client.request('echo', 'say', 'y'.repeat(1024 * 1024))).toMatchObject({ kind: 'rejected' });
  });

  test('D10: slow is told from absent, and neither throws', async () => {
    const { path } = await startServer(cleanup, [service], { limits: { drainMs: 10 } });
    const client = createClient({ socketPath: path });
    expect(await client.request('echo', 'hang', undefined, { timeoutMs: 20 })).toMatchObject({
      kind: 'unreachable',
      reason: 'timeout',
    });
    const nobody = createClient({ socketPath: join(tempFolder(cleanup), 'daemon.sock') });
    expect(await nobody.request('daemon', 'ping')).toMatchObject({ kind: 'unreachable', reason: 'none' });
    const aborted = AbortSignal.abort();
    expect(await client.request('echo', 'hang', undefined, { signal: aborted })).toMatchObject({
      kind: 'unreachable',
      reason: 'broken',
    });
  });

  test.each([
    ['junk', 'hello\n'],
    ['no reply of ours', '{"pong":true}\n'],
    ['an array', '[]\n'],
    ['over the limit', 'x'.repeat(1024 * 1024 + 2)],
    ['not UTF-8', Buffer.from([0x22, 0xff, 0x22, 10])],
  ])('S-304 C-392: a server that says %s is broken, not believed', async (_what, reply) => {
    const { path } = await oldServer(() => reply);
    const client = createClient({ socketPath: path });
    expect(await client.request('daemon', 'ping')).toMatchObject({ kind: 'unreachable', reason: 'broken' });
  });

  test('a server that hangs up without an answer is broken', async () => {
    const { path, drop, lines } = await oldServer(() => undefined);
    const asking = createClient({ socketPath: path }).request('daemon', 'ping');
    await until('it has asked', () => lines.length === 1);
    drop();
    expect(await asking).toMatchObject({ kind: 'unreachable', reason: 'broken' });
  });
});

describe('a subscription', () => {
  /** Takes events as they come into a list. */
  function follow(client: ReturnType<typeof createClient>, options = {}) {
    const stop = new AbortController();
    const events: SubscriptionEvent[] = [];
    const done = (async () => {
      for await (const event of client.subscribe('things', 'subscribe', { ...options, signal: stop.signal }))
        events.push(event);
    })();
    cleanup.add(() => stop.abort());
    return { events, stop, done };
  }

  test('whole snapshots as they change, until it is stopped', async () => {
    const source = watchable({ n: 0 });
    const service: Service = { name: 'things', ops: {}, subscriptions: { subscribe: () => source } };
    const { path, server } = await startServer(cleanup, [service]);
    const { events, stop, done } = follow(createClient({ socketPath: path }));
    await until('the first', () => events.length === 1);
    source.set({ n: 1 });
    await until('the second', () => events.length === 2);
    expect(events).toEqual([
      { kind: 'snapshot', payload: { n: 0 } },
      { kind: 'snapshot', payload: { n: 1 } },
    ]);
    stop.abort();
    await done;
    await until('the connection is gone', () => server.connections === 0);
  });

  test('of snapshots that come faster than they are taken only the newest is kept', async () => {
    const source = watchable(0);
    const service: Service = { name: 'things', ops: {}, subscriptions: { subscribe: () => source } };
    const { path } = await startServer(cleanup, [service]);
    const stop = new AbortController();
    const stream = createClient({ socketPath: path })
      .subscribe('things', 'subscribe', { signal: stop.signal })
      [Symbol.asyncIterator]();
    expect((await stream.next()).value).toEqual({ kind: 'snapshot', payload: 0 });
    for (let n = 1; n <= 50; n += 1) {
      source.set(n);
      await settle();
    }
    const seen: unknown[] = [];
    while (seen.at(-1) !== 50) {
      const { value } = await stream.next();
      seen.push(value?.kind === 'snapshot' ? value.payload : value);
    }
    expect(seen.length).toBeLessThan(50);
    stop.abort();
    await stream.return?.();
  });

  test('K-39: a lost connection is tried again, half a second doubling to ten, plus up to a half', async () => {
    const time = createFakeTime();
    const { path, drop, lines } = await oldServer(() => '{"ok":true,"payload":1}\n');
    const draws = [0, 1, 0.5, 0, 0, 0, 0];
    const client = createClient({ socketPath: path, scheduler: time, random: () => draws.shift() ?? 0 });
    const { events } = follow(client);
    await until('the first', () => events.length === 1);
    drop();
    await until('it is lost', () => events.length === 2);
    expect(events[1]).toMatchObject({ kind: 'lost', retryMs: 500 });
    await time.advance(499);
    expect(lines).toHaveLength(1);
    await time.advance(1);
    await until('it is back', () => events.length === 3);
    expect(events[2]).toEqual({ kind: 'snapshot', payload: 1 });
  });

  test('K-39 D8: while nobody listens it never gives up, and never hurries', async () => {
    const time = createFakeTime();
    const path = join(tempFolder(cleanup), 'daemon.sock');
    const draws = [0, 1, 0.5];
    const client = createClient({ socketPath: path, scheduler: time, random: () => draws.shift() ?? 0 });
    const { events } = follow(client);
    for (let n = 1; n <= 8; n += 1) {
      await until('it is told', () => events.length >= n);
      await settle();
      await time.advance(20_000);
    }
    const waits = events.slice(0, 8).map((event) => event.kind === 'lost' && event.retryMs);
    expect(waits).toEqual([500, 1_500, 2_500, 4_000, 8_000, 10_000, 10_000, 10_000]);
  });

  test('C-123 S-325: a service that can’t stream is polled, on no loop of connections, and streamed when it has changed', async () => {
    const time = createFakeTime();
    const mode = { old: true, rows: 1 };
    const { path, drop, lines, state } = await oldServer((line) => {
      if (line.includes('subscribe')) {
        return mode.old
          ? '{"ok":false,"error":"unknown sessions op: subscribe"}\n'
          : '{"ok":true,"payload":"streamed"}\n';
      }
      return mode.old ? `{"ok":true,"payload":${mode.rows}}\n` : undefined;
    });
    const { events } = follow(createClient({ socketPath: path, scheduler: time, random: () => 0 }));
    await until('it polls', () => events.length === 2);
    expect(events).toEqual([
      { kind: 'polling', error: 'unknown sessions op: subscribe' },
      { kind: 'snapshot', payload: 1 },
    ]);
    const asked = lines.length;
    await settle();
    expect([lines.length, state.connections]).toEqual([asked, asked]);
    for (const rows of [1, 2]) {
      mode.rows = rows;
      const before = lines.length;
      await settle();
      await time.advance(2_000);
      await until('it has asked again', () => lines.length === before + 1);
    }
    await until('the change is told', () => events.length === 3);
    expect(events[2]).toEqual({ kind: 'snapshot', payload: 2 });
    expect(lines.filter((line) => line.includes('subscribe'))).toHaveLength(1);
    // The service is replaced by a newer one.
    mode.old = false;
    await settle();
    await time.advance(2_000);
    await until('the question is open', () => lines.length === asked + 3);
    drop();
    await until('it is lost', () => events.at(-1)?.kind === 'lost');
    await settle();
    await time.advance(500);
    await until('it streams', () => events.length === 5);
    expect(events.at(-1)).toEqual({ kind: 'snapshot', payload: 'streamed' });
  });
});
