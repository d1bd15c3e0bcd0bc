/** What a long life brings: sleep, a clock that is set, folders that may not be written, full tables. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import {
  chmodSync,
  chownSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { startResident } from '../../../src/runtime/daemon/feeds/resident.ts';
import { SESSIONS } from '../../../src/runtime/limits.ts';
import { systemHost } from '../../../src/runtime/process/spawn.ts';
import { hookBench } from '../../commands/hook-bench.ts';
import { compiledBinary } from '../../helpers/binary.ts';
import { createCleanup, createFakeTime, settle, tempFolder, until } from './harness.ts';
import { connectWire, type WireClient } from './wire-client.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());
beforeAll(async () => void (await compiledBinary()), 120_000);

const START = Date.parse('2026-10-03T03:40:00Z');
const idOf = (n: number): string => `0b7e6c1a-2f4d-4a8e-9c3b-${String(n).padStart(12, '0')}`;

interface Row {
  readonly session_id: string;
  readonly state: string;
  readonly last_seen: string;
}

/** A real daemon whose clocks are ours: time that passes, and wall time that jumps without it. */
async function bench() {
  const home = tempFolder(cleanup);
  const socketPath = join(home, 'daemon.sock');
  const time = createFakeTime();
  const jump = { ms: 0 };
  const resident = await startResident({
    socketPath,
    home,
    build: { version: 'test' },
    env: {},
    host: systemHost,
    clock: { now: () => START + time.at + jump.ms, awakeMs: () => time.at },
    scheduler: time,
    feeds: [],
    context: undefined,
    builders: { list: () => ({}), why: () => ({}) },
  });
  cleanup.add(() => resident.stop());
  await resident.ready;
  const wire = async (): Promise<WireClient> => {
    const client = await connectWire(socketPath);
    cleanup.add(() => client.close());
    return client;
  };
  const ask = async (op: string, payload?: object): Promise<Record<string, unknown>> => {
    const client = await wire();
    const reply = await client.ask({ service: 'sessions', op, ...(payload ? { payload } : {}) });
    client.close();
    return reply['payload'] as Record<string, unknown>;
  };
  return {
    resident,
    time,
    jump,
    wire,
    ask,
    rows: async () => (await ask('list'))['sessions'] as Row[],
    stamp: (seq: string) => ({ ts: new Date(START + time.at + jump.ms).toISOString(), seq }),
  };
}

describe('a computer that sleeps, and clocks that are set', () => {
  test('S-201 D8: a night of sleep ages nothing, ends nothing, and the next report is taken', async () => {
    const b = await bench();
    await b.ask('observe', { session_id: idOf(1), event: 'pre_tool_use' });
    await b.ask('observe', { session_id: idOf(2), event: 'session_start' });
    await b.ask('end', { session_id: idOf(2) });
    await b.ask('window', { key: 'w', folders: ['/p'], tabs: 1 });
    b.jump.ms = 8 * 3_600_000;
    await settle();
    expect((await b.rows()).map(({ state }) => state)).toEqual(['working', 'ended']);
    await b.ask('observe', { session_id: idOf(1), event: 'stop', stamp: b.stamp('after') });
    expect((await b.rows())[0]).toMatchObject({ state: 'idle', last_seen: '2026-10-03T11:40:00Z' });
    // Awake time goes on where it stood: the ended row goes after its ten seconds, the other after its five minutes.
    await b.time.advance(11_000);
    expect((await b.rows()).map(({ session_id }) => session_id)).toEqual([idOf(1)]);
    await b.time.advance(SESSIONS.ttlMs);
    expect(await b.rows()).toEqual([]);
  });

  test('S-113 C-049: a wall clock that steps back, or leaps ahead, freezes no session and ends none', async () => {
    const b = await bench();
    const id = idOf(1);
    for (const [n, ms] of [0, -3_600_000, 86_400_000, -1_000, 0].entries()) {
      b.jump.ms = ms;
      await b.time.advance(20_000);
      const event = n % 2 === 0 ? 'pre_tool_use' : 'stop';
      await b.ask('observe', { session_id: id, event, stamp: b.stamp(String(n)) });
      expect([n, (await b.rows())[0]?.state]).toEqual([n, n % 2 === 0 ? 'working' : 'idle']);
    }
    expect(await b.rows()).toHaveLength(1);
  });

  test('S-320: a subscription lives through a leap of the clock, and is told of the next change', async () => {
    const b = await bench();
    const wire = await b.wire();
    await wire.ask({ service: 'sessions', op: 'subscribe' });
    b.jump.ms = 8 * 3_600_000;
    await b.ask('observe', { session_id: idOf(1), event: 'pre_tool_use' });
    expect(await wire.next()).toMatchObject({ payload: { sessions: [{ state: 'working' }] } });
  });
});

describe('full tables', () => {
  test('S-203 C-360: 600 sessions and 300 windows over the socket: 512 and 256 are kept, the newest', async () => {
    const b = await bench();
    const wire = await b.wire();
    for (let n = 0; n < 600; n += 1) {
      const payload = { session_id: idOf(n), event: 'pre_tool_use', cwd: `/p/${n}/x` };
      await wire.ask({ service: 'sessions', op: 'observe', payload });
      await b.time.advance(1);
    }
    for (let n = 0; n < 300; n += 1) {
      const payload = { key: `w${n}`, folders: [`/p/${n + 200}`], tabs: 1 };
      await wire.ask({ service: 'sessions', op: 'window', payload });
      await b.time.advance(1);
    }
    const rows = (await b.rows()) as (Row & { source: { kind: string } })[];
    expect(rows.map(({ session_id }) => session_id)).toEqual(
      Array.from({ length: 512 }, (_, n) => idOf(n + 88)),
    );
    const shown = rows.filter(({ source }) => source.kind === 'vs_code').map(({ session_id }) => session_id);
    expect(shown).toEqual(Array.from({ length: 256 }, (_, n) => idOf(n + 244)));
  }, 60_000);

  test('S-320 S-322: 64 subscribers are each told of each change, once, and a leaving one disturbs none', async () => {
    const b = await bench();
    const wires = await Promise.all(Array.from({ length: 64 }, b.wire));
    const subscribe = { service: 'sessions', op: 'subscribe' };
    await Promise.all(wires.map((wire) => wire.ask(subscribe)));
    for (let change = 0; change < 3; change += 1) {
      await b.ask('observe', { session_id: idOf(change), event: 'pre_tool_use' });
      const frames = await Promise.all(wires.map((wire) => wire.next()));
      const counts = frames.map((frame) => (frame['payload'] as { sessions: Row[] }).sessions.length);
      expect(new Set(counts)).toEqual(new Set([change + 1]));
      for (const gone of wires.splice(0, 8)) gone.close();
    }
    expect(wires.map((wire) => wire.waiting)).toEqual(wires.map(() => 0));
    await until('those that left are forgotten', () => b.resident.server.connections === wires.length);
  });
});

describe.skipIf(process.platform === 'win32')('folders that may not be written', () => {
  /** A user that owns nothing; as root, permissions bind nobody. */
  const NOBODY = 65_534;
  const isRoot = process.getuid?.() === 0;

  /** The executable where that user can reach it. */
  const reachable = { path: '' };
  beforeAll(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sc-'));
    reachable.path = join(folder, 'shadowob-connector');
    copyFileSync(await compiledBinary(), reachable.path, constants.COPYFILE_FICLONE);
    chmodSync(folder, 0o755);
    chmodSync(reachable.path, 0o755);
  });
  afterAll(() => rmSync(dirname(reachable.path), { recursive: true, force: true }));

  async function run(user: string, home: string, ...args: string[]) {
    const child = Bun.spawn([reachable.path, ...args], {
      ...(isRoot ? { uid: NOBODY, gid: NOBODY } : {}),
      stdin: Buffer.from(JSON.stringify({ session_id: idOf(1), hook_event_name: 'Stop' })),
      stdout: 'pipe',
      stderr: 'pipe',
      cwd: '/',
      env: { HOME: user, SHADOWOB_CONNECTOR_HOME: home, PATH: '/usr/bin:/bin' },
    });
    cleanup.add(() => child.kill('SIGKILL'));
    const [stdout, stderr, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    return { code, stdout, stderr };
  }

  /** A home that is not there, in a folder that its user may not write to. */
  function closedFolder(): { user: string; home: string } {
    const user = tempFolder(cleanup);
    const closed = join(user, 'closed');
    mkdirSync(closed, { mode: 0o700 });
    if (isRoot) for (const path of [user, closed]) chownSync(path, NOBODY, NOBODY);
    chmodSync(closed, 0o500);
    cleanup.add(() => chmodSync(closed, 0o700));
    return { user, home: join(closed, 'connector') };
  }

  test('S-331 R-34: the daemon says what it can’t make, and serves nothing', async () => {
    const { user, home } = closedFolder();
    const ran = await run(user, home, 'daemon', 'run');
    expect([ran.code, ran.stdout, ran.stderr]).toEqual([60, '', expect.stringContaining('EACCES')]);
    expect(ran.stderr).toContain(home);
    expect(existsSync(home)).toBe(false);
  });

  test('S-509 S-402 R-31: a hook is silent, and the list is there', async () => {
    const { user, home } = closedFolder();
    expect(await run(user, home, 'hook', '--agent', 'claude')).toEqual({ code: 0, stdout: '', stderr: '' });
    const list = await run(user, home, 'session-list', '--json');
    expect([list.code, JSON.parse(list.stdout).sessions]).toEqual([0, []]);
    expect(existsSync(home)).toBe(false);
  });
});

test('S-336: SIGHUP ends the service as SIGTERM does, and what hooks said is there after the next start', async () => {
  const b = hookBench(cleanup, { run: false });
  mkdirSync(b.home, { mode: 0o700 });
  const start = async () => {
    const child = Bun.spawn([await compiledBinary(), 'daemon', 'run', '--json'], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'ignore',
      cwd: b.user,
      env: { HOME: b.user, SHADOWOB_CONNECTOR_HOME: b.home, PATH: '/usr/bin:/bin' },
    });
    cleanup.add(() => child.kill('SIGKILL'));
    await child.stdout.getReader().read();
    return child;
  };
  const first = await start();
  await b.hook({ session_id: idOf(1), hook_event_name: 'UserPromptSubmit' }, undefined, {
    CLAUDE_PID: String(process.pid),
  });
  first.kill('SIGHUP');
  expect([await first.exited, existsSync(b.socketPath)]).toEqual([0, false]);
  await start();
  const wire = await connectWire(b.socketPath);
  cleanup.add(() => wire.close());
  expect(await wire.ask({ service: 'sessions', op: 'list' })).toMatchObject({
    payload: { sessions: [{ session_id: idOf(1), state: 'working' }] },
  });
});
