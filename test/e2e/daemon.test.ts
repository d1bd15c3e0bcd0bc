import { afterEach, beforeAll, describe, expect, test } from 'bun:test';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { EXIT } from '../../src/runtime/errors.ts';
import { isAlive } from '../../src/runtime/process/identity.ts';
import { compiledBinary } from '../helpers/binary.ts';
import { bareEnvironment, type CliResult, cli, temporaryHome } from '../helpers/cli.ts';
import { layClaude, layCodex } from '../helpers/recorded-home.ts';
import { createCleanup } from '../runtime/daemon/harness.ts';
import { connectWire, type WireClient } from '../runtime/daemon/wire-client.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());
beforeAll(async () => void (await compiledBinary()), 120_000);

interface Bench {
  readonly home: string;
  readonly connector: string;
  readonly socket: string;
  run(...args: string[]): Promise<CliResult>;
  hook(event: string, extra?: Record<string, unknown>, id?: string): Promise<CliResult>;
  wire(): Promise<WireClient>;
}

const ID = '0b7e6c1a-2f4d-4a8e-9c3b-5d1e7f9a2b4c';

function bench(): Bench {
  const home = temporaryHome();
  cleanup.add(() => home[Symbol.dispose]());
  const path = realpathSync(home.path);
  const connector = join(path, '.shadowob', 'connector');
  const socket = join(connector, 'daemon.sock');
  const run = (...args: string[]) => cli(args, { home: path, env: { SHADOWOB_CONNECTOR_LOG: 'debug' } });
  // Whatever a test has left running ends here; a killed one has no socket to be asked on.
  cleanup.add(() => run('daemon', 'stop'));
  return {
    home: path,
    connector,
    socket,
    run,
    hook: (event, extra = {}, id = ID) =>
      cli(['hook', '--agent', 'claude'], {
        home: path,
        env: { CLAUDE_PID: String(process.pid) },
        stdin: JSON.stringify({ session_id: id, hook_event_name: event, cwd: path, ...extra }),
      }),
    async wire() {
      const wire = await connectWire(socket);
      cleanup.add(() => wire.close());
      return wire;
    },
  };
}

const ask = (service: string, op: string, payload?: unknown) => ({
  service,
  op,
  ...(payload ? { payload } : {}),
});

interface Row {
  readonly sessionId: string;
  readonly state: string;
  readonly title: string | null;
}
interface Frame {
  readonly payload: {
    readonly version: number;
    readonly revision: number;
    readonly sessions: readonly Row[];
  };
}

/** Frames until one has what is looked for. */
async function until(wire: WireClient, test: (frame: Frame) => boolean): Promise<Frame> {
  for (;;) {
    const frame = (await wire.next()) as unknown as Frame;
    if (test(frame)) return frame;
  }
}

async function pidOf(bench: Bench): Promise<number> {
  const status = await bench.run('daemon', 'status', '--json');
  return JSON.parse(status.stdout).pid;
}

async function gone(pid: number): Promise<void> {
  while (isAlive(pid)) await Bun.sleep(10);
}

/** A `systemctl --user` that starts what is enabled, and a `loginctl`; what they were told stands in `manager.log`. */
function layManager(home: string): Record<string, string> {
  const bin = join(home, 'bin');
  const units = join(home, '.config', 'systemd', 'user');
  const socket = join(home, '.shadowob', 'connector', 'daemon.sock');
  mkdirSync(bin);
  mkdirSync(join(home, 'runtime', 'systemd'), { recursive: true });
  const script = (name: string, body: string) =>
    writeFileSync(join(bin, name), `#!/bin/sh\necho ${name} "$@" >> "${home}/manager.log"\n${body}`, {
      mode: 0o755,
    });
  script(
    'systemctl',
    `case "$*" in
*enable\\ --now*) words=$(sed -n s/^ExecStart=//p "${units}/shadowob-connector-daemon.service")
  [ -S "${socket}" ] || eval "setsid $words </dev/null >/dev/null 2>&1 &"
  until [ -S "${socket}" ]; do sleep 0.02; done ;;
*is-active*) exit 3 ;;
esac
`,
  );
  script(
    'loginctl',
    'case "$1" in show-user) grep -q enable-linger "$0.mark" 2>/dev/null && echo yes || echo no ;; *) echo "$1" > "$0.mark" ;; esac\n',
  );
  return { PATH: `${bin}:/usr/bin:/bin`, XDG_RUNTIME_DIR: join(home, 'runtime') };
}

describe('the daemon, from the outside', () => {
  test('S-338 S-341: started without a service manager it runs detached, says so, and tells how it runs', async () => {
    const b = bench();
    const started = await b.run('daemon', 'start');
    expect([started.code, started.stdout]).toEqual([
      0,
      expect.stringMatching(/^started \(pid \d+, detached\)\n$/),
    ]);
    expect(started.stderr).toContain('nothing starts it at login');
    const status = JSON.parse((await b.run('daemon', 'status', '--json')).stdout);
    expect(status).toMatchObject({ running: true, started_by: 'detached', socket: b.socket });
    const names = status.services.map((one: { name: string }) => one.name);
    expect(names).toEqual(['sessions', 'connector']);
    expect(status.services[0].summary).toBe('0 session(s)');
    const { feeds, memory } = status.services[1].detail;
    for (const feed of ['claude-code', 'codex', 'opencode']) expect(Object.keys(feeds)).toContain(feed);
    expect(memory.rssBytes).toBeGreaterThan(1e6);
    const text = await b.run('daemon', 'status');
    expect(text.stdout).toContain('started by detached');
    expect(text.stdout).toContain('Watching');
    // A session of its own: the group is its own, so that neither a terminal nor our end reaches it.
    if (process.platform === 'linux') {
      const stat = readFileSync(`/proc/${status.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
      expect([stat[2], stat[3]]).toEqual([String(status.pid), String(status.pid)]);
      expect(statSync(join(b.connector, 'daemon.log')).mode & 0o777).toBe(0o600);
      expect(statSync(b.socket).mode & 0o777).toBe(0o600);
    }
  }, 30_000);

  test('S-338: started three times at once there is one daemon, and each start tells of it', async () => {
    const b = bench();
    const all = await Promise.all(Array.from({ length: 3 }, () => b.run('daemon', 'start')));
    expect(all.map((one) => [one.code, one.stdout])).toEqual(
      all.map(() => [0, expect.stringMatching(/^(started|already running) \(pid \d+/)]),
    );
    const pid = await pidOf(b);
    expect(new Set(all.map((one) => /pid (\d+)/.exec(one.stdout)?.[1]))).toEqual(new Set([String(pid)]));
  }, 60_000);

  test.skipIf(process.platform !== 'linux')(
    'S-338 D5: install replaces a daemon started by hand; uninstall takes lingering back, units removed by hand or not',
    async () => {
      const b = bench();
      const env = layManager(b.home);
      const run = (...args: string[]) => cli(args, { home: b.home, env });
      await b.run('daemon', 'start');
      const before = await pidOf(b);
      const installed = await run('daemon', 'install', '--linger');
      expect([installed.code, installed.stderr]).toEqual([0, '']);
      expect(installed.stdout).toMatch(new RegExp(`^stopped \\(pid ${before}\\)`));
      expect(installed.stdout).toMatch(/started \(pid \d+, systemd\)/);
      const pid = await pidOf(b);
      const again = await run('daemon', 'install', '--linger');
      expect([again.code, again.stdout]).toEqual([0, expect.stringContaining(`pid ${pid}, systemd`)]);
      const outside = await b.run('daemon', 'uninstall');
      expect([outside.code, outside.stderr]).toEqual([
        EXIT.daemon,
        expect.stringContaining('it is installed, but the service manager'),
      ]);
      rmSync(join(b.home, '.config', 'systemd'), { recursive: true });
      const removed = await run('daemon', 'uninstall');
      expect([removed.code, removed.stdout]).toEqual([
        0,
        expect.stringContaining('end with the log-out again'),
      ]);
      expect((await run('daemon', 'uninstall')).stdout).toBe('not installed\n');
      const said = readFileSync(join(b.home, 'manager.log'), 'utf8');
      expect(said.match(/(en|dis)able-linger/g)).toEqual(['enable-linger', 'disable-linger']);
    },
    60_000,
  );

  test('S-326: a daemon that refuses to tell its status is there, and not said to be missing', async () => {
    const b = bench();
    mkdirSync(b.connector, { recursive: true });
    const old = createServer((socket) =>
      socket.on('data', () => socket.end('{"ok":false,"error":"unknown daemon op: status"}\n')),
    );
    const listening = Promise.withResolvers<void>();
    old.listen(b.socket, listening.resolve);
    cleanup.add(() => old.close());
    await listening.promise;
    const status = await b.run('daemon', 'status');
    expect([status.code, status.stderr]).toEqual([
      EXIT.daemon,
      expect.stringContaining('does not answer: unknown daemon op: status'),
    ]);
  });

  test('S-339 S-336: `daemon stop` leaves no process and no socket; a second one has nothing to do', async () => {
    const b = bench();
    await b.run('daemon', 'start');
    const pid = await pidOf(b);
    const stopped = await b.run('daemon', 'stop');
    expect([stopped.code, stopped.stdout]).toEqual([0, `stopped (pid ${pid})\n`]);
    expect([isAlive(pid), existsSync(b.socket)]).toEqual([false, false]);
    expect((await b.run('daemon', 'stop')).stdout).toBe('not running\n');
    const status = await b.run('daemon', 'status');
    expect([status.code, status.stdout]).toEqual([EXIT.daemon, '']);
    expect(status.stderr).toContain('no daemon is running');
  }, 30_000);

  test('R-34 D10: five starts at once make one daemon, and all of them say that it runs', async () => {
    const b = bench();
    const all = await Promise.all(Array.from({ length: 5 }, () => b.run('daemon', 'start', '--json')));
    const pid = await pidOf(b);
    const said = all.filter((one) => one.code === 0).map((one) => JSON.parse(one.stdout).running.pid);
    expect(said.length).toBeGreaterThan(0);
    expect(new Set(said)).toEqual(new Set([pid]));
    const late = await b.run('daemon', 'start');
    expect(late.stdout).toContain(`already running (pid ${pid}`);
  }, 60_000);

  test('D1 D2: a lock file with the pid of another process that lives is no daemon', async () => {
    const b = bench();
    mkdirSync(b.connector, { recursive: true, mode: 0o700 });
    const holder = { pid: process.pid, version: '0.0.1', since: '2020-01-01T00:00:00.000Z' };
    writeFileSync(join(b.connector, 'daemon.lock'), JSON.stringify(holder));
    const started = await b.run('daemon', 'start');
    expect(started.code).toBe(0);
    expect(await pidOf(b)).not.toBe(process.pid);
  }, 30_000);

  test('cli-surface §1: the flags of the link are refused by name until there is one', async () => {
    const b = bench();
    const refused = await b.run('daemon', '--server-url', 'https://example.test', '--api-key', 'x');
    expect([refused.code, refused.stdout]).toEqual([EXIT.notLinked, '']);
    expect(refused.stderr).toContain('--server-url');
    expect((await b.run('daemon', 'strat')).stderr).toContain('did you mean "start"?');
  }, 30_000);

  test('S-342: the log can be read without a daemon, and holds no content (S-903)', async () => {
    const b = bench();
    expect((await b.run('daemon', 'logs')).code).toBe(EXIT.notFound);
    await b.run('daemon', 'start');
    await b.hook('UserPromptSubmit', { prompt: 'a secret prompt' });
    await b.run('daemon', 'stop');
    const logs = await b.run('daemon', 'logs');
    expect(logs.stdout).toContain('info started');
    expect(logs.stdout).toContain('outcome=created');
    expect(logs.stdout).not.toContain('secret');
    expect((await b.run('daemon', 'logs', '-n', '1')).stdout.trim().split('\n')).toHaveLength(1);
  }, 30_000);
});

describe('one registry behind both services', () => {
  test('R-05 R-43: a hook through the real sink is a row of `sessions`, of `connector` and of session-list', async () => {
    const b = bench();
    await b.run('daemon', 'start');
    const wire = await b.wire();
    const stream = await b.wire();
    await stream.ask(ask('connector', 'subscribe'));
    await b.hook('UserPromptSubmit');
    // The frame comes first: a hook does not wait for the service to have heard it.
    const frame = await until(stream, (one) => one.payload.sessions.some((row) => row.sessionId === ID));
    const { payload } = await wire.ask(ask('sessions', 'list'));
    expect(payload).toMatchObject({ sessions: [{ session_id: ID, state: 'working', agent: 'claude' }] });
    expect(frame.payload).toMatchObject({ version: 1, sessions: [{ sessionId: ID, state: 'running' }] });
    const list = JSON.parse((await b.run('session-list', '--json')).stdout);
    expect(list.sessions).toMatchObject([
      { sessionId: ID, state: 'running', evidence: { confidence: 'reported' } },
    ]);
    const shown = JSON.parse((await b.run('session-show', ID, '--limit', '0', '--json')).stdout);
    expect(shown.session).toMatchObject({
      sessionId: ID,
      state: 'running',
      evidence: { confidence: 'reported' },
    });
    const own = JSON.parse((await b.run('session-list', '--json', '--no-daemon')).stdout);
    expect(own.sessions).toEqual([]);
    const status = JSON.parse((await b.run('daemon', 'status', '--json')).stdout);
    expect(status.services[0].summary).toBe('1 session(s): 1 working, 0 waiting, 0 idle');
    expect(status.services[1].detail.counters).toMatchObject({ 'session_observed.created': 1 });
  }, 30_000);

  test('R-26 S-320: a line that is appended to a transcript is a frame, without any hook', async () => {
    const b = bench();
    const id = layClaude(b.home, 'h-simple');
    await b.run('daemon', 'start');
    const why = JSON.parse((await b.run('session-why', id.slice(0, 8), '--json')).stdout);
    const stream = await b.wire();
    stream.raw(`${JSON.stringify(ask('connector', 'subscribe'))}\n`);
    await until(stream, (one) => one.payload.sessions.some((row) => row.sessionId === id));
    const title = { type: 'custom-title', customTitle: 'Renamed by its owner', sessionId: id };
    appendFileSync(why.session.file, `${JSON.stringify(title)}\n`);
    const frame = await until(stream, (one) =>
      one.payload.sessions.some((row) => row.title === title.customTitle),
    );
    expect(frame.payload.sessions.map((row) => row.sessionId)).toEqual([id]);
    await b.run('daemon', 'stop');
  }, 30_000);

  test('S-521 C-195: killed with SIGKILL and started again, it has what the journals prove', async () => {
    const b = bench();
    await b.run('daemon', 'start');
    await b.hook('UserPromptSubmit');
    await b.hook('PermissionRequest', { tool_name: 'Bash' });
    const pid = await pidOf(b);
    process.kill(pid, 'SIGKILL');
    await gone(pid);
    expect(existsSync(b.socket)).toBe(true);
    // Without a daemon the list is still there, from a scan.
    expect((await b.run('session-list')).code).toBe(0);
    expect((await b.run('daemon', 'start')).code).toBe(0);
    const { payload } = await (await b.wire()).ask(ask('sessions', 'list'));
    expect(payload).toMatchObject({ sessions: [{ session_id: ID, state: 'waiting_for_permission' }] });
    const list = JSON.parse((await b.run('session-list', '--json')).stdout);
    expect(list.sessions).toMatchObject([{ sessionId: ID, state: 'waiting_for_approval' }]);
  }, 30_000);

  test('S-603 S-621 S-629: sessions with recent files are found without a hook, and rest', async () => {
    const b = bench();
    const claude = layClaude(b.home, 'h-simple', 1_000);
    const codex = layCodex(b.home, 'exec-simple', 1_000);
    layCodex(b.home, 'exec-tool', 3_600_000);
    await b.run('daemon', 'start');
    const wire = await b.wire();
    const rows = async () => {
      const { payload } = await wire.ask(ask('sessions', 'list'));
      return (payload as { sessions: { session_id: string; agent: string; state: string }[] }).sessions;
    };
    while ((await rows()).length < 2) await Bun.sleep(20);
    expect((await rows()).map((row) => [row.session_id, row.agent, row.state])).toEqual([
      [codex, 'codex', 'idle'],
      [claude, 'claude', 'idle'],
    ]);
    const status = JSON.parse((await b.run('daemon', 'status', '--json')).stdout);
    const { counters } = status.services.find((one: { name: string }) => one.name === 'connector').detail;
    expect(counters).toMatchObject({ 'session_observed.created': 2 });
  }, 30_000);

  test('R-43: an unknown operation is refused by name, bad payloads and versions by field', async () => {
    const b = bench();
    await b.run('daemon', 'start');
    const wire = await b.wire();
    const refused = async (op: string, payload?: unknown) =>
      String((await wire.ask(ask('connector', op, payload)))['error']);
    for (const op of ['upload', 'send', 'abort', 'approve', 'create', 'focus'])
      expect(await refused(op, { version: 2 })).toContain(`invalid \`${op}\` payload: version`);
    expect(await refused('nothing')).toBe('unknown connector op: nothing');
    expect(await refused('list', { version: 2 })).toContain('invalid `list` payload: version');
    expect(await refused('why', { session: 'none' })).toContain('no session');
    expect(await wire.ask(ask('connector', 'list', { limit: 1 }))).toMatchObject({
      ok: true,
      payload: { version: 1 },
    });
  }, 30_000);
});

describe('commands ask the daemon, and answer the same as without it', () => {
  const same = (text: string) => ({ ...JSON.parse(text), scannedAt: '' });

  test('design §4: session-list, the overview, session-why and a watch’s first event are the same', async () => {
    const b = bench();
    const claude = layClaude(b.home, 'h-simple');
    layClaude(b.home, 'h-tool-approved', 7_200_000);
    layCodex(b.home, 'exec-simple');
    await b.run('daemon', 'start');
    for (const filter of [[], ['--all'], ['--runtime', 'codex'], ['--state', 'completed'], ['--redact']]) {
      const [asked, looked] = [
        await b.run('session-list', '--json', '--verbose', ...filter),
        await b.run('session-list', '--json', '--no-daemon', ...filter),
      ];
      expect(asked.stderr).not.toContain('looking for ourselves');
      expect(same(asked.stdout)).toEqual(same(looked.stdout));
    }
    const why = await b.run('session-why', claude, '--json');
    expect(JSON.parse(why.stdout)).toEqual(
      JSON.parse((await b.run('session-why', claude, '--json', '--no-daemon')).stdout),
    );
    const panel = await b.run('runtime-watch', '--once');
    expect(panel.stdout).toBe((await b.run('runtime-watch', '--once', '--no-daemon')).stdout);
    const overview = (text: string) => ({ ...JSON.parse(text).runtimeSessions, scannedAt: '' });
    const [asked, looked] = [await b.run('--json'), await b.run('--json', '--no-daemon')];
    expect(overview(asked.stdout)).toEqual(overview(looked.stdout));
  }, 60_000);

  test('a command that looks at other folders than the daemon looks for itself', async () => {
    const b = bench();
    layCodex(b.home, 'exec-simple');
    await b.run('daemon', 'start');
    const list = await cli(['session-list', '--json', '--verbose'], {
      home: b.home,
      env: { CODEX_HOME: join(b.home, 'elsewhere') },
    });
    expect(JSON.parse(list.stdout).sessions).toEqual([]);
    expect(list.stderr).toContain('the daemon reads other folders');
  }, 30_000);

  test('runtime-watch --json has the daemon’s news as events', async () => {
    const b = bench();
    await b.run('daemon', 'start');
    const child = Bun.spawn([await compiledBinary(), 'runtime-watch', '--json'], {
      cwd: b.home,
      env: bareEnvironment(b.home),
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'ignore',
    });
    cleanup.add(() => child.kill());
    const reader = child.stdout.getReader();
    const decoder = new TextDecoder();
    const lines: string[] = [];
    const next = async (): Promise<Record<string, unknown>> => {
      while (lines.length < 2) {
        const { value, done } = await reader.read();
        if (done) throw new Error('the watch has ended');
        const parts = ((lines.pop() ?? '') + decoder.decode(value)).split('\n');
        lines.push(...parts);
      }
      return JSON.parse(lines.shift() ?? '');
    };
    expect(await next()).toMatchObject({ type: 'snapshot' });
    await b.hook('UserPromptSubmit');
    expect(await next()).toMatchObject({ type: 'session_added', sessionId: ID, state: 'running' });
    child.kill('SIGINT');
    expect(await child.exited).toBe(0);
  }, 30_000);
});
