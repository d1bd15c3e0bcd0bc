import { afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startDaemon } from '../../../src/runtime/daemon/daemon.ts';
import { prepareSocketFolder } from '../../../src/runtime/daemon/listener.ts';
import { systemHost } from '../../../src/runtime/process/spawn.ts';
import { hookBench, ID } from '../../commands/hook-bench.ts';
import { compiledBinary } from '../../helpers/binary.ts';
import { startDaemonProcess } from './daemon-process.ts';
import { createCleanup, tempFolder } from './harness.ts';
import { connectWire, type WireClient } from './wire-client.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());
beforeAll(async () => void (await compiledBinary()), 120_000);

async function client(path: string): Promise<WireClient> {
  const wire = await connectWire(path);
  cleanup.add(() => wire.close());
  return wire;
}

const ask = (op: string, payload?: unknown) => ({
  service: 'sessions',
  op,
  ...(payload === undefined ? {} : { payload }),
});
type Row = { session_id: string; state: string; agent: string; cwd?: string };

async function rows(wire: WireClient): Promise<Row[]> {
  const { payload } = await wire.ask(ask('list'));
  return (payload as { sessions: Row[] }).sessions;
}

const payloadOf = (hook_event_name: string, extra = {}) => ({
  session_id: ID,
  hook_event_name,
  cwd: '/home/me/web',
  ...extra,
});

describe('the service as a process', () => {
  test('C-361: real sink, real service, real subscriber: a turn with a permission prompt, and a resume', async () => {
    const bench = hookBench(cleanup, { run: false });
    mkdirSync(bench.home, { mode: 0o700 });
    expect((await startDaemonProcess(cleanup, bench.socketPath)).said).toBe('ready');
    const subscriber = await client(bench.socketPath);
    expect(await subscriber.ask(ask('subscribe'))).toEqual({ ok: true, payload: { sessions: [] } });
    const owner = { CLAUDE_PID: String(process.pid) };
    const turn: [string, Record<string, unknown>, string][] = [
      ['SessionStart', { source: 'startup' }, 'starting'],
      ['UserPromptSubmit', {}, 'working'],
      ['PermissionRequest', { tool_name: 'Bash' }, 'waiting_for_permission'],
      ['PostToolUse', {}, 'working'],
      ['Stop', {}, 'idle'],
      ['SessionStart', { source: 'resume' }, 'starting'],
    ];
    const seen: string[] = [];
    for (const [event, extra] of turn) {
      await bench.hook(payloadOf(event, extra), undefined, owner);
      const frame = (await subscriber.next()) as { payload: { sessions: Row[] } };
      seen.push(frame.payload.sessions[0]?.state ?? 'none');
    }
    expect(seen).toEqual(turn.map(([, , state]) => state));
    expect(bench.journal()).toHaveLength(6);
  }, 30_000);

  test('C-195 S-521: killed with five sessions in five states, and started again: the same rows', async () => {
    const home = tempFolder(cleanup);
    const socketPath = join(home, 'daemon.sock');
    const first = await startDaemonProcess(cleanup, socketPath);
    const bench = { ...hookBench(cleanup), home };
    const sessions: [string, [string, Record<string, unknown>?][], string][] = [
      ['starting', [['SessionStart']], 'starting'],
      ['working', [['UserPromptSubmit'], ['PreToolUse']], 'working'],
      ['idle', [['UserPromptSubmit'], ['Stop']], 'idle'],
      ['input', [['UserPromptSubmit'], ['Elicitation']], 'waiting_for_input'],
      [
        'permission',
        [['UserPromptSubmit'], ['PermissionRequest', { tool_name: 'Bash' }]],
        'waiting_for_permission',
      ],
    ];
    const idOf = (index: number) => `0b7e6c1a-2f4d-4a8e-9c3b-00000000000${index}`;
    const env = { SHADOWOB_CONNECTOR_HOME: home, CLAUDE_PID: String(process.pid) };
    for (const [index, [, events]] of sessions.entries()) {
      for (const [event, extra] of events) {
        await bench.hook(
          { session_id: idOf(index), hook_event_name: event, cwd: `/p${index}`, ...extra },
          undefined,
          env,
        );
      }
    }
    const expected = sessions.map(([, , state], index) => [idOf(index), state, `/p${index}`]);
    const seen = async () =>
      (await rows(await client(socketPath))).map((row) => [row.session_id, row.state, row.cwd ?? '']);
    expect(await seen()).toEqual(expected);
    await first.kill();
    expect(existsSync(socketPath)).toBe(true);
    expect((await startDaemonProcess(cleanup, socketPath)).said).toBe('ready');
    expect(await seen()).toEqual(expected);
  }, 30_000);

  test('C-196: hooks that fire while it is down are there when it is up', async () => {
    const bench = hookBench(cleanup);
    for (const event of ['SessionStart', 'UserPromptSubmit', 'Stop'])
      expect((await bench.hook(payloadOf(event))).code).toBe(0);
    await startDaemonProcess(cleanup, bench.socketPath);
    expect(await rows(await client(bench.socketPath))).toMatchObject([
      { session_id: ID, state: 'idle', cwd: '/home/me/web' },
    ]);
  });

  test('R-34 D10: a second one is refused with the name of the first; the socket stays the first one’s', async () => {
    const socketPath = join(tempFolder(cleanup), 'daemon.sock');
    const first = await startDaemonProcess(cleanup, socketPath);
    const second = await startDaemonProcess(cleanup, socketPath);
    expect(await second.exited).toBe(60);
    expect(second.said).toContain(`another daemon is already running (pid ${first.pid}`);
    // Even a first one that does not answer is not replaced.
    process.kill(first.pid, 'SIGSTOP');
    const third = await startDaemonProcess(cleanup, socketPath);
    process.kill(first.pid, 'SIGCONT');
    expect(third.said).toContain('already running');
    expect(await (await client(socketPath)).ask({ op: 'ping' })).toMatchObject({
      payload: { pid: first.pid },
    });
  });

  test('S-311 S-336: `shutdown`, and each of the three signals, end it with 0 and take the socket away', async () => {
    for (const how of ['shutdown', 'SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
      const socketPath = join(tempFolder(cleanup), 'daemon.sock');
      const daemon = await startDaemonProcess(cleanup, socketPath);
      const subscriber = await client(socketPath);
      await subscriber.ask(ask('subscribe'));
      if (how === 'shutdown')
        expect(await (await client(socketPath)).ask({ op: 'shutdown' })).toEqual({
          ok: true,
          payload: { stopping: true },
        });
      else process.kill(daemon.pid, how);
      expect([how, await daemon.exited]).toEqual([how, 0]);
      await subscriber.ended;
      expect(existsSync(socketPath)).toBe(false);
    }
  }, 20_000);

  test('C-124 C-358 S-331 S-901 C1: what it makes is 0700 and 0600, also under a umask of 002', async () => {
    const home = join(tempFolder(cleanup), 'deep', 'home');
    const socketPath = join(home, 'daemon.sock');
    const before = process.umask(0o002);
    await startDaemonProcess(cleanup, socketPath);
    process.umask(before);
    const modes = [
      home,
      ...readdirSync(home, { recursive: true }).map((name) => join(home, String(name))),
    ].map((path) => {
      const stats = statSync(path);
      return [
        path.slice(home.length),
        stats.isDirectory() ? 'folder' : 'file',
        (stats.mode & 0o777).toString(8),
      ];
    });
    expect(modes.sort()).toEqual([
      ['', 'folder', '700'],
      ['/daemon.lock', 'file', '600'],
      ['/daemon.sock', 'file', '600'],
      ['/run', 'folder', '700'],
    ]);
  });

  test('S-331: a looser connector home is tightened; a folder named with --socket keeps its mode', () => {
    const folder = tempFolder(cleanup);
    chmodSync(folder, 0o755);
    prepareSocketFolder(join(folder, 'x.sock'), join(folder, 'home'), process.platform);
    expect(statSync(folder).mode & 0o777).toBe(0o755);
    prepareSocketFolder(join(folder, 'x.sock'), folder, process.platform);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    writeFileSync(join(folder, 'file'), '');
    expect(() => prepareSocketFolder(join(folder, 'file', 'x.sock'), folder, process.platform)).toThrow(
      'of the socket',
    );
  });

  test('S-505 R-39: the folder that journals need is made by the service alone', async () => {
    const bench = hookBench(cleanup, { run: false });
    mkdirSync(bench.home, { mode: 0o700 });
    await bench.hook(payloadOf('SessionStart'));
    expect(bench.files()).toEqual([]);
    await startDaemonProcess(cleanup, bench.socketPath);
    await bench.hook(payloadOf('UserPromptSubmit'));
    expect(bench.journal()).toHaveLength(1);
  });

  test('S-643: the death of an owner process ends its rows', async () => {
    const home = tempFolder(cleanup);
    const socketPath = join(home, 'daemon.sock');
    const daemon = await startDaemon({
      socketPath,
      home,
      build: { version: 'test' },
      env: {},
      host: systemHost,
    });
    cleanup.add(() => daemon.stop());
    const owner = Bun.spawn([process.execPath, '-e', 'setInterval(() => {}, 1000)']);
    cleanup.add(() => owner.kill('SIGKILL'));
    const wire = await client(socketPath);
    await wire.ask(ask('observe', { session_id: ID, event: 'user_prompt_submit', pid: owner.pid }));
    await daemon.pids.scan();
    expect((await rows(wire))[0]?.state).toBe('working');
    owner.kill('SIGKILL');
    await owner.exited;
    await daemon.pids.scan();
    expect((await rows(wire))[0]?.state).toBe('ended');
  });
});
