import { afterEach, describe, expect, test } from 'bun:test';
import { existsSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { adoptSocket } from '../../../src/runtime/daemon/activation.ts';
import { createServer } from '../../../src/runtime/daemon/server.ts';
import { createCleanup, tempFolder, until } from './harness.ts';
import { connectWire } from './wire-client.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());

const SERVER = join(import.meta.dir, 'fixtures', 'small-server.ts');
/** Binds, passes the socket on as descriptor 3, and becomes the server: what systemd does. */
const MANAGER = `
import os, socket, sys
path, pid_offset, bun, script = sys.argv[1:5]
listener = socket.socket(socket.AF_UNIX); listener.bind(path); listener.listen(16)
os.dup2(listener.fileno(), 3); os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid() + int(pid_offset)), LISTEN_FDS='1', LISTEN_FDNAMES='x')
os.execv(bun, [bun, script, sys.argv[5]])
`;
const python = Bun.which('python3');

async function startManaged(offset: number) {
  const folder = tempFolder(cleanup);
  const managed = join(folder, 'managed.sock');
  const own = join(folder, 'daemon.sock');
  const argv = [python ?? '', '-c', MANAGER, managed, String(offset), process.execPath, SERVER, own];
  const child = Bun.spawn(argv, { stdout: 'pipe', stderr: 'inherit' });
  cleanup.add(async () => {
    child.kill('SIGKILL');
    await child.exited;
  });
  const said = new TextDecoder().decode((await child.stdout.getReader().read()).value).trim();
  return { child, said, managed, own };
}

describe('socket activation under systemd', () => {
  test.skipIf(!python)('C-127 S-334 S-335: descriptor 3 is served, and the path outlives us', async () => {
    const { child, said, managed, own } = await startManaged(0);
    expect(said).toBe('ready adopted');
    const wire = await connectWire(managed);
    expect(await wire.ask({ op: 'ping' })).toMatchObject({ ok: true });
    expect(await wire.ask({ service: 'probe', op: 'env' })).toEqual({ ok: true, payload: [] });
    expect(await wire.ask({ op: 'shutdown' })).toMatchObject({ ok: true });
    expect(await child.exited).toBe(0);
    expect(existsSync(managed)).toBe(true);
    expect(existsSync(own)).toBe(false);
  });

  test('S-334: a descriptor that is no listening socket is an error that says so', async () => {
    const server = createServer({
      plan: { kind: 'adopted', socket: { fd: openSync('/dev/null', 'r'), manager: 'systemd' } },
      services: [],
      build: { version: '1' },
    });
    await expect(server.listen()).rejects.toThrow('the socket of the service manager');
    await server.stop();
  });

  test.skipIf(!python)('C-128: a LISTEN_PID of another process means we bind our own', async () => {
    const { child, said, own } = await startManaged(1);
    expect(said).toBe('ready bound');
    const wire = await connectWire(own);
    expect(await wire.ask({ service: 'probe', op: 'env' })).toEqual({ ok: true, payload: [] });
    wire.close();
    child.kill('SIGTERM');
    expect(await child.exited).toBe(0);
    expect(existsSync(own)).toBe(false);
  });

  test('S-334: the three variables never reach our children, whoever they were meant for', () => {
    const executed: number[] = [];
    const env: Record<string, string | undefined> = {
      LISTEN_PID: '7',
      LISTEN_FDS: '2',
      LISTEN_FDNAMES: 'a:b',
      HOME: '/h',
    };
    const options = { env, platform: 'linux', closeOnExec: (fd: number) => void executed.push(fd) } as const;
    expect(adoptSocket({ ...options, pid: 8 })).toBeUndefined();
    expect(env).toEqual({ HOME: '/h' });
    expect(executed).toEqual([]);
    Object.assign(env, { LISTEN_PID: '7', LISTEN_FDS: '2' });
    expect(adoptSocket({ ...options, pid: 7 })).toEqual({ fd: 3, manager: 'systemd' });
    expect(executed).toEqual([3]);
    Object.assign(env, { LISTEN_PID: '7', LISTEN_FDS: '0' });
    expect(adoptSocket({ ...options, pid: 7 })).toBeUndefined();
  });
});

describe('socket activation under launchd (injected library, R-46)', () => {
  test('S-334: the first socket is kept, the rest closed; none or an error means not activated', () => {
    const closed: number[] = [];
    const names: string[] = [];
    const ask = (sockets: readonly number[] | undefined) =>
      adoptSocket({
        env: {},
        pid: 1,
        platform: 'darwin',
        launchdSockets: (name) => {
          names.push(name);
          return sockets;
        },
        close: (fd) => void closed.push(fd),
      });
    expect(ask([5, 6, 7])).toEqual({ fd: 5, manager: 'launchd' });
    expect(closed).toEqual([6, 7]);
    expect(ask([])).toBeUndefined();
    expect(ask(undefined)).toBeUndefined();
    expect(new Set(names)).toEqual(new Set(['Listener']));
  });

  test('a system without that function is not activated, and Windows never is', () => {
    expect(adoptSocket({ env: {}, pid: 1, platform: 'darwin' })).toBeUndefined();
    expect(
      adoptSocket({ env: { LISTEN_PID: '1', LISTEN_FDS: '1' }, pid: 1, platform: 'win32' }),
    ).toBeUndefined();
  });
});

describe('few descriptors', () => {
  test.skipIf(process.platform !== 'linux')(
    'C-131 S-337: limit 40 and 80 clients: little processor time, one warning, recovery said once',
    async () => {
      const folder = tempFolder(cleanup);
      const path = join(folder, 'daemon.sock');
      const child = Bun.spawn(
        ['sh', '-c', `ulimit -n 40; exec "${process.execPath}" "${SERVER}" "${path}"`],
        {
          stdout: 'pipe',
          stderr: 'inherit',
        },
      );
      cleanup.add(async () => {
        child.kill('SIGKILL');
        await child.exited;
      });
      expect(new TextDecoder().decode((await child.stdout.getReader().read()).value)).toContain('ready');
      const usage = async (wire: Awaited<ReturnType<typeof connectWire>>) => {
        const { payload } = await wire.ask({ service: 'probe', op: 'usage' });
        return payload as {
          cpu: NodeJS.CpuUsage;
          at: number;
          credits: number[];
          events: Record<string, number>;
        };
      };
      const probe = await connectWire(path);
      const before = await usage(probe);
      const clients = await Promise.all(
        Array.from({ length: 80 }, () => connectWire(path).catch(() => undefined)),
      );
      const turnedAway = clients.filter((wire) => wire !== undefined);
      await Bun.sleep(1_500);
      const after = await usage(probe);
      const cpuMs = (after.cpu.user + after.cpu.system - before.cpu.user - before.cpu.system) / 1_000;
      expect(cpuMs / (after.at - before.at)).toBeLessThan(0.2);
      expect(after.events['accept_failed']).toBe(1);
      for (const wire of turnedAway) wire.close();
      await until('it has recovered', async () => (await usage(probe)).credits.length > 0);
      const end = await usage(probe);
      expect(end.events['accept_recovered']).toBe(1);
      expect(end.credits).toHaveLength(1);
      expect(await (await connectWire(path)).ask({ op: 'ping' })).toMatchObject({ ok: true });
    },
    20_000,
  );
});
