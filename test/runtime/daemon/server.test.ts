import { afterEach, describe, expect, test } from 'bun:test';
import { existsSync, rmSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createServer } from '../../../src/runtime/daemon/server.ts';
import type { Service } from '../../../src/runtime/daemon/service.ts';
import { createCleanup, holdLock, recordLog, settle, startServer, tempFolder, until } from './harness.ts';
import { connectWire, type WireClient } from './wire-client.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());

async function client(path: string): Promise<WireClient> {
  const wire = await connectWire(path);
  cleanup.add(() => wire.close());
  return wire;
}

/** Whether somebody listens: a socket's file is there a moment before. */
async function reachable(path: string): Promise<boolean> {
  try {
    (await connectWire(path)).close();
    return true;
  } catch {
    // Not yet.
    return false;
  }
}

const echo: Service = {
  name: 'echo',
  ops: {
    say: (payload) => payload,
    nothing: () => undefined,
    fail() {
      throw new Error('outer', { cause: new Error('middle', { cause: new Error('inner') }) });
    },
    big: () => 'x'.repeat(1024 * 1024),
  },
  status: () => ({ healthy: true, summary: 'listens' }),
};

describe('requests and replies', () => {
  test('S-309 S-302 C-375: ping without a service and with "daemon"', async () => {
    const { path } = await startServer(cleanup, []);
    const wire = await client(path);
    const reply = await wire.ask({ op: 'ping', origin_invocation_id: 'x', unknown: 1 });
    expect(reply).toMatchObject({ ok: true, payload: { pong: true, version: '1.2.3', commit: 'abc' } });
    expect(await wire.ask({ service: 'daemon', op: 'ping' })).toEqual(reply);
  });

  test('S-310 C-375: status names every service, also one whose own status throws', async () => {
    const broken: Service = {
      name: 'broken',
      ops: {},
      status: () => {
        throw new Error('no disk');
      },
    };
    const { path } = await startServer(cleanup, [echo, broken, { name: 'plain', ops: {} }]);
    const reply = await (await client(path)).ask({ op: 'status' });
    expect(reply).toMatchObject({
      ok: true,
      payload: {
        version: '1.2.3',
        services: [
          { name: 'echo', healthy: true, summary: 'listens' },
          { name: 'broken', healthy: false, summary: 'no disk' },
          { name: 'plain', healthy: true, summary: 'running' },
        ],
      },
    });
  });

  test('C-374 S-303 S-307: no payload key without a payload; an error carries the chain of causes', async () => {
    const { path } = await startServer(cleanup, [echo]);
    const wire = await client(path);
    expect(await wire.ask({ service: 'echo', op: 'nothing' })).toEqual({ ok: true });
    expect(await wire.ask({ service: 'echo', op: 'fail' })).toEqual({
      ok: false,
      error: 'outer: middle: inner',
    });
  });

  test('C-111 S-305: junk, no op, no object: an error each, and the connection stays open', async () => {
    const { path } = await startServer(cleanup, []);
    const wire = await client(path);
    for (const junk of ['junk{', '{}', '[]', 'null', '{"op":7}', '', '{"op":"ping"']) {
      wire.raw(`${junk}\n`);
      const reply = await wire.next();
      expect(reply['ok']).toBe(false);
      expect(String(reply['error'])).not.toContain('junk');
    }
    expect(await wire.ask({ op: 'ping' })).toMatchObject({ ok: true });
  });

  test('S-907: of a refused request the log gets the beginning, however long its names are', async () => {
    const { log, events } = recordLog();
    const { path } = await startServer(cleanup, [echo], { log });
    const wire = await client(path);
    await wire.ask({ service: 'x'.repeat(500_000), op: 'y' });
    const rejected = events.filter(({ event }) => event === 'request_rejected');
    expect(rejected.map(({ fields }) => String(fields['error']).length)).toEqual([200]);
  });

  test('C-114 S-306: unknown service and unknown op are named, and the connection stays open', async () => {
    const { path } = await startServer(cleanup, [echo]);
    const wire = await client(path);
    expect(await wire.ask({ service: 'nope', op: 'x' })).toEqual({
      ok: false,
      error: 'unknown service: nope',
    });
    expect(await wire.ask({ service: 'echo', op: 'nope' })).toEqual({
      ok: false,
      error: 'unknown echo op: nope',
    });
    expect(await wire.ask({ op: 'nope' })).toEqual({ ok: false, error: 'unknown daemon op: nope' });
    // Names of the language are no names of ours.
    for (const op of ['constructor', 'toString', '__proto__']) {
      expect(await wire.ask({ service: 'echo', op })).toEqual({ ok: false, error: `unknown echo op: ${op}` });
    }
  });

  test('S-301: requests written together are answered in order, also across a half-close', async () => {
    const { path } = await startServer(cleanup, [echo]);
    const wire = await client(path);
    const count = 300;
    wire.socket.end(
      Array.from({ length: count }, (_, n) => `{"service":"echo","op":"say","payload":${n}}\r\n`).join(''),
    );
    for (let n = 0; n < count; n += 1) expect(await wire.next()).toEqual({ ok: true, payload: n });
    await wire.ended;
  });

  test('C-112 S-304: 1 MiB passes; one byte more gets one error reply and the end', async () => {
    const { path, server } = await startServer(cleanup, [echo]);
    const wire = await client(path);
    const frame = '{"service":"echo","op":"nothing","payload":""}';
    wire.raw(`${frame.slice(0, -2)}${'x'.repeat(1024 * 1024 - frame.length)}"}\n`);
    expect(await wire.next()).toEqual({ ok: true });
    wire.raw('x'.repeat(1024 * 1024 + 1));
    expect(await wire.next()).toEqual({ ok: false, error: 'the line is over 1 MiB' });
    await wire.ended;
    wire.close();
    await until('the connection is forgotten', () => server.connections === 0);
  });

  test('C-113 S-304: bytes that are not UTF-8 get one error reply and the end', async () => {
    const { path } = await startServer(cleanup, []);
    const wire = await client(path);
    wire.raw(Buffer.from([0x7b, 0xff, 0xfe, 0x7d, 10]));
    wire.raw('{"op":"ping"}\n');
    expect(await wire.next()).toEqual({ ok: false, error: 'the line is not UTF-8' });
    await wire.ended;
    expect(wire.waiting).toBe(0);
  });

  test('S-304: a reply over the ceiling becomes an error, and the connection stays usable', async () => {
    const { path } = await startServer(cleanup, [echo]);
    const wire = await client(path);
    expect(await wire.ask({ service: 'echo', op: 'big' })).toMatchObject({ ok: false });
    expect(await wire.ask({ op: 'ping' })).toMatchObject({ ok: true });
  });

  test('S-902 JSON nested 300,000 deep is malformed, not a crash', async () => {
    const { path } = await startServer(cleanup, []);
    const wire = await client(path);
    wire.raw(`${'['.repeat(300_000)}\n`);
    expect(await wire.next()).toEqual({ ok: false, error: 'malformed JSON' });
    expect(await wire.ask({ op: 'ping' })).toMatchObject({ ok: true });
  });
});

describe('connections', () => {
  test('S-337: a connection that asks nothing is closed; one whose request runs is not', async () => {
    const gate = Promise.withResolvers<string>();
    const slow: Service = { name: 'slow', ops: { wait: () => gate.promise } };
    const { path } = await startServer(cleanup, [slow], { limits: { idleMs: 40 } });
    const quiet = await client(path);
    const busy = await client(path);
    const answer = busy.ask({ service: 'slow', op: 'wait' });
    quiet.raw('{"op":'); // Bytes of a line that never ends are no request.
    await quiet.ended;
    gate.resolve('done');
    expect(await answer).toEqual({ ok: true, payload: 'done' });
    await busy.ended;
  });

  test('S-337 S-209: beyond the cap clients are turned away at once, logged once, credited when it is over', async () => {
    const credits: number[] = [];
    const { log, events } = recordLog();
    const awake = { ms: 0 };
    const service: Service = { name: 'x', ops: {}, creditOutage: (ms) => void credits.push(ms) };
    const { path, server } = await startServer(cleanup, [service], {
      limits: { connections: 3 },
      log,
      awakeMs: () => awake.ms,
    });
    const inside = await Promise.all([client(path), client(path), client(path)]);
    await until('three are in', () => server.connections === 3);
    for (let n = 0; n < 5; n += 1) {
      const turnedAway = await connectWire(path).catch(() => undefined);
      await turnedAway?.ended;
    }
    expect(await inside[0]?.ask({ op: 'ping' })).toMatchObject({ ok: true });
    awake.ms = 25_000;
    inside[1]?.close();
    await until('the outage is over', () => credits.length === 1);
    expect(credits).toEqual([25_000]);
    expect(events.filter(({ event }) => event === 'accept_failed')).toHaveLength(1);
    expect(events.filter(({ event }) => event === 'accept_recovered')).toHaveLength(1);
    expect(await (await client(path)).ask({ op: 'ping' })).toMatchObject({ ok: true });
  });

  test('S-337 K-37: without descriptors our listener closes, backs off, and comes back', async () => {
    const credits: number[] = [];
    const room = { left: true, asked: 0 };
    const { path, server } = await startServer(
      cleanup,
      [{ name: 'x', ops: {}, creditOutage: (ms) => void credits.push(ms) }],
      {
        descriptorsLeft: () => {
          room.asked += 1;
          return room.left;
        },
      },
    );
    const idle = await client(path);
    await until('it is served', () => server.connections === 1);
    room.left = false;
    await idle.ended;
    await until('the listener is closed', () => !existsSync(path));
    const before = room.asked;
    await until('it tries again', () => room.asked > before + 1);
    room.left = true;
    await until('it listens again', () => existsSync(path));
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(await (await client(path)).ask({ op: 'ping' })).toMatchObject({ ok: true });
    expect(credits).toHaveLength(1);
  });

  test('R-34: a socket that somebody has removed is bound again, 0600; who was connected stays', async () => {
    const { path, server } = await startServer(cleanup, []);
    const before = await client(path);
    unlinkSync(path);
    await until('it is there again', () => existsSync(path) && (statSync(path).mode & 0o777) === 0o600);
    expect(await before.ask({ op: 'ping' })).toMatchObject({ ok: true });
    await until('it answers', async () => (await reachable(path)) && server.connections >= 1);
  });

  test('R-34 D1: with its lock file gone another daemon may start, so this one ends', async () => {
    const { server, folder } = await startServer(cleanup, []);
    rmSync(folder, { recursive: true });
    await server.shutdownRequested;
    await server.stop();
  });

  test('S-323: a client that takes no replies is dropped; others are served meanwhile', async () => {
    const chunk = 'y'.repeat(512 * 1024);
    const service: Service = { name: 'bulk', ops: { get: () => chunk } };
    const { log, events } = recordLog();
    const { path, server } = await startServer(cleanup, [service], { limits: { stalledMs: 60 }, log });
    const greedy = await client(path);
    greedy.socket.pause();
    greedy.raw('{"service":"bulk","op":"get"}\n'.repeat(64));
    const other = await client(path);
    expect(await other.ask({ op: 'ping' })).toMatchObject({ ok: true });
    await until('the greedy one is dropped', () => server.connections === 1);
    expect(events.some(({ event }) => event === 'connection_stalled')).toBe(true);
  });
});

describe('shutdown', () => {
  test('S-311 C-375: `shutdown` is answered, then its owner is told', async () => {
    const { path, server } = await startServer(cleanup, []);
    const wire = await client(path);
    expect(await wire.ask({ op: 'shutdown' })).toEqual({ ok: true, payload: { stopping: true } });
    await server.shutdownRequested;
    await server.stop();
    await wire.ended;
  });

  test('C-129 S-335 S-336: path gone before the drain, accepted requests answered, idle clients ended', async () => {
    const gate = Promise.withResolvers<string>();
    const started = Promise.withResolvers<void>();
    const stopped: string[] = [];
    const service: Service = {
      name: 'slow',
      ops: {
        wait: () => {
          started.resolve();
          return gate.promise;
        },
      },
      stop: async () => void stopped.push('slow'),
    };
    const { path, server } = await startServer(cleanup, [service]);
    const idle = await client(path);
    const busy = await client(path);
    const answer = busy.ask({ service: 'slow', op: 'wait' });
    await started.promise;
    await until('both are in', () => server.connections === 2);
    const done = server.stop();
    expect(existsSync(path)).toBe(false);
    await idle.ended;
    await expect(connectWire(path)).rejects.toThrow();
    expect(stopped).toEqual([]);
    gate.resolve('late');
    expect(await answer).toEqual({ ok: true, payload: 'late' });
    await done;
    expect(stopped).toEqual(['slow']);
  });

  test('S-336 K-35: what takes longer than the drain is cut and told so', async () => {
    const aborted = Promise.withResolvers<void>();
    const started = Promise.withResolvers<void>();
    const service: Service = {
      name: 'slow',
      ops: {
        wait: (_payload, { signal }) => {
          signal.addEventListener('abort', () => aborted.resolve());
          started.resolve();
          return new Promise(() => {});
        },
      },
    };
    const { path, server } = await startServer(cleanup, [service], { limits: { drainMs: 30 } });
    const wire = await client(path);
    wire.raw('{"service":"slow","op":"wait"}\n');
    await started.promise;
    await server.stop();
    await aborted.promise;
    await wire.ended;
  });
});

describe('binding', () => {
  test('C-124 S-331: the socket is 0600 from birth, whatever the umask, and never anything else', async () => {
    const folder = tempFolder(cleanup);
    const path = join(folder, 'daemon.sock');
    // Another process looks at the file as fast as it can, over several births of it.
    const script = `const { statSync } = require('node:fs'); const seen = new Set();
      process.stdin.on('end', () => { console.log(JSON.stringify([...seen])); process.exit(0); }); process.stdin.resume();
      console.log('ready');
      const look = () => { for (let n = 0; n < 200; n += 1) { try { seen.add(statSync(${JSON.stringify(path)}).mode & 0o777); } catch {} } setImmediate(look); }; look();`;
    const watcher = Bun.spawn([process.execPath, '-e', script], { stdin: 'pipe', stdout: 'pipe' });
    cleanup.add(() => watcher.kill());
    const reader = watcher.stdout.getReader();
    const read = async () => new TextDecoder().decode((await reader.read()).value);
    expect(await read()).toContain('ready');
    const before = process.umask(0o002);
    const lock = await holdLock(folder, cleanup);
    for (let n = 0; n < 20; n += 1) {
      const server = createServer({
        plan: { kind: 'bind', endpoint: { kind: 'unix', path }, lock },
        services: [],
        build: { version: '1' },
      });
      await server.listen();
      await settle();
      expect(process.umask()).toBe(0o002);
      await server.stop();
    }
    process.umask(before);
    watcher.stdin.end();
    const seen: number[] = JSON.parse(await read());
    expect(seen.filter((mode) => mode !== 0o600)).toEqual([]);
  });

  test('C-126 R-34: a stale socket file of a dead process is replaced by the holder of the lock', async () => {
    const folder = tempFolder(cleanup);
    const path = join(folder, 'daemon.sock');
    const dead = Bun.spawnSync([
      process.execPath,
      '-e',
      `require('node:net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`,
    ]);
    expect(dead.signalCode).toBe('SIGKILL');
    expect(statSync(path).isSocket()).toBe(true);
    const lock = await holdLock(folder, cleanup);
    const server = createServer({
      plan: { kind: 'bind', endpoint: { kind: 'unix', path }, lock },
      services: [],
      build: { version: '1' },
    });
    await server.listen();
    cleanup.add(() => server.stop());
    expect(await (await client(path)).ask({ op: 'ping' })).toMatchObject({ ok: true });
  });

  test('S-333: a file at the path that is no socket is left alone, and named', async () => {
    const folder = tempFolder(cleanup);
    const path = join(folder, 'daemon.sock');
    writeFileSync(path, 'mine');
    const lock = await holdLock(folder, cleanup);
    const server = createServer({
      plan: { kind: 'bind', endpoint: { kind: 'unix', path }, lock },
      services: [],
      build: { version: '1' },
    });
    await expect(server.listen()).rejects.toThrow('is no socket');
    await server.stop();
    expect(existsSync(path)).toBe(true);
  });

  test('C-132 S-332: a path of 103 bytes is bound, one of 104 refused with a message', async () => {
    const folder = tempFolder(cleanup);
    const lock = await holdLock(folder, cleanup);
    const named = (bytes: number) =>
      join(folder, 'é'.repeat(5).padEnd(bytes - Buffer.byteLength(folder) - 1 - 5, 's'));
    for (const [bytes, fits] of [
      [103, true],
      [104, false],
    ] as const) {
      const path = named(bytes);
      expect(Buffer.byteLength(path)).toBe(bytes);
      const server = createServer({
        plan: { kind: 'bind', endpoint: { kind: 'unix', path }, lock },
        services: [],
        build: { version: '1' },
      });
      if (fits) await server.listen();
      else await expect(server.listen()).rejects.toThrow('104 bytes');
      await server.stop();
      expect(existsSync(path)).toBe(false);
    }
  });
});
