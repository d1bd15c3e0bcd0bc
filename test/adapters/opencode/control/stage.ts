import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { listServers } from '../../../../src/adapters/opencode/control/own-servers.ts';
import { listRecords } from '../../../../src/runtime/control/record.ts';
import { createClient } from '../../../../src/runtime/daemon/client.ts';
import { isAlive } from '../../../../src/runtime/process/identity.ts';
import { createStore, type Store } from '../world.ts';

const ROOT = resolve(import.meta.dir, '..', '..', '..', '..');
const MAIN = join(ROOT, 'src', 'main.ts');
const FAKE = join(import.meta.dir, 'fake-opencode.ts');
const PLUGGED_IN = join(import.meta.dir, 'fake-terminal.ts');

export type Json = Record<string, unknown>;

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A home in which `opencode` is the fake one, and the connector runs from its sources. */
export interface Stage {
  readonly home: string;
  readonly folder: string;
  readonly connectorHome: string;
  readonly database: string;
  /** Opens the store for a moment: who has it open counts as somebody who may work on it. */
  inStore<T>(use: (store: Store) => T): T;
  run(args: readonly string[], options?: { env?: Record<string, string>; stdin?: string }): Promise<Ran>;
  start(args: readonly string[]): Bun.Subprocess<'ignore', 'pipe', 'pipe'>;
  /** What the fake program was given and did, oldest first. */
  log(): readonly Json[];
  /** Lays a session that has been prompted and answered. */
  session(id?: string): string;
  /** Opens a turn in its rows, as a process that works on it has. */
  openTurn(id: string): void;
  /** Starts a server of the user's; its variables name it to the connector. */
  server(env?: Record<string, string>): Promise<{ readonly url: string; readonly pid: number }>;
  /** A process of that name, in the session's folder, with the database open. */
  terminal(): Promise<Bun.Subprocess>;
  /** A daemon, and a program with our plugin in it that works on the session and has attached. */
  pluggedIn(id: string): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export function openStage(env: Record<string, string> = {}): Stage {
  const home = mkdtempSync(join(tmpdir(), 'acting-oc-'));
  const programs = join(home, 'programs');
  const library = join(home, 'library');
  const folder = join(home, 'app');
  for (const path of [programs, library, folder]) mkdirSync(path);
  // A process is called after the link that it was started by.
  symlinkSync(process.execPath, join(library, 'opencode'));
  writeFileSync(join(programs, 'opencode'), `#!/bin/sh\nexec "${library}/opencode" "${FAKE}" "$@"\n`);
  chmodSync(join(programs, 'opencode'), 0o755);
  const logFile = join(home, 'fake.log');
  const base: Record<string, string> = {
    HOME: home,
    PATH: `${programs}:/usr/bin:/bin`,
    LANG: 'C.UTF-8',
    SHADOWOB_CONNECTOR_SKIP_LOGIN_SHELL: '1',
    FAKE_OPENCODE_LOG: logFile,
    ...env,
  };
  const connectorHome = join(home, '.shadowob', 'connector');
  const data = join(home, '.local', 'share', 'opencode');
  const inStore = <T>(use: (store: Store) => T): T => {
    const store = createStore(data);
    try {
      return use(store);
    } finally {
      store.close();
    }
  };
  const database = inStore(({ path }) => path);
  const started: Bun.Subprocess[] = [];
  const command = (args: readonly string[]) => [process.execPath, MAIN, ...args];
  return {
    home,
    folder,
    connectorHome,
    database,
    inStore,
    async run(args, options = {}) {
      const child = Bun.spawn(command(args), {
        cwd: home,
        env: { ...base, ...options.env },
        stdin: new TextEncoder().encode(options.stdin ?? ''),
        stdout: 'pipe',
        stderr: 'pipe',
      });
      const [stdout, stderr, code] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
        child.exited,
      ]);
      return { code, stdout, stderr };
    },
    start(args) {
      const child = Bun.spawn(command(args), {
        cwd: home,
        env: base,
        stdin: 'ignore',
        stdout: 'pipe',
        stderr: 'pipe',
      });
      started.push(child);
      return child;
    },
    log: () =>
      existsSync(logFile)
        ? readFileSync(logFile, 'utf8')
            .split('\n')
            // The last one may still be written.
            .slice(0, -1)
            .map((line) => JSON.parse(line))
        : [],
    session(id = `ses_${crypto.randomUUID().replaceAll('-', '')}`) {
      const at = Date.now() - 60_000;
      inStore((store) => {
        store.session({ id, directory: folder, title: 'A session', time_created: at, time_updated: at });
        layTurn(store, id, at, { finish: 'stop', time: { created: at + 1, completed: at + 2 } });
      });
      return id;
    },
    openTurn(id) {
      const at = Date.now();
      inStore((store) => layTurn(store, id, at, { time: { created: at + 1 } }));
    },
    async server(more = {}) {
      const child = Bun.spawn(
        [join(programs, 'opencode'), 'serve', '--hostname', '127.0.0.1', '--port', '0'],
        {
          cwd: home,
          env: { ...base, ...more },
          stdin: 'ignore',
          stdout: 'pipe',
          stderr: 'ignore',
          detached: true,
        },
      );
      started.push(child);
      const said = { text: '' };
      for await (const chunk of child.stdout) {
        said.text += new TextDecoder().decode(chunk);
        if (said.text.includes('listening on')) break;
      }
      const url = /listening on (\S+)/.exec(said.text)?.[1] ?? '';
      base['SHADOWOB_CONNECTOR_OPENCODE_URL'] = url;
      return { url, pid: child.pid };
    },
    async terminal() {
      const path = join(mkdtempSync(join(library, 'terminal-')), 'opencode');
      copyFileSync(Bun.which('sleep') ?? '', path);
      chmodSync(path, 0o755);
      const held = openSync(database, 'r');
      const child = Bun.spawn([path, '1000'], {
        cwd: folder,
        stdio: ['ignore', 'ignore', 'ignore', held],
        detached: true,
      });
      closeSync(held);
      started.push(child);
      // Its rows must be younger than the process, as the system dates it.
      await Bun.sleep(20);
      return child;
    },
    async pluggedIn(id) {
      const socket = join(connectorHome, 'daemon.sock');
      const quiet = { cwd: home, env: base, stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' } as const;
      started.push(Bun.spawn(command(['daemon', '--poll-interval-ms', '200']), quiet));
      await until(() => existsSync(socket));
      const plugins = mkdtempSync(join(home, 'plugin-'));
      started.push(Bun.spawn([process.execPath, PLUGGED_IN, socket, id, plugins], quiet));
      const client = createClient({ socketPath: socket, platform: process.platform });
      const asked = { runtimeId: 'opencode', sessionId: id };
      await until(async () =>
        JSON.stringify(await client.request('connector', 'inside-attached', asked)).includes(id),
      );
    },
    async [Symbol.asyncDispose]() {
      const hosts = listRecords(connectorHome).flatMap(({ host, child }) => [
        host.pid,
        ...(child ? [child.pid] : []),
      ]);
      const servers = listServers(connectorHome).map((server) => server.process.pid);
      const pids = [...hosts, ...servers, ...started.map(({ pid }) => pid)];
      for (const pid of pids) end(pid);
      await until(() => pids.every((pid) => !isAlive(pid)));
      rmSync(home, { recursive: true, force: true });
    },
  };
}

function layTurn(store: Store, id: string, at: number, answer: Json): void {
  const user = { role: 'user', time: { created: at } };
  store.message(id, { id: idAt('msg', at), time_created: at, time_updated: at, data: user });
  const data = { role: 'assistant', parentID: idAt('msg', at), ...answer };
  store.message(id, { id: idAt('msg', at + 1), time_created: at + 1, time_updated: at + 2, data });
  store.sequence(id, at);
}

/** An id as OpenCode makes them: ascending with time. */
function idAt(kind: string, at: number): string {
  return `${kind}_${at.toString(16).padStart(12, '0')}000000`;
}

function end(pid: number): void {
  for (const target of [-pid, pid]) {
    try {
      process.kill(target, 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
  }
}

/** Waits for a condition, and gives what it found. */
export async function until<T>(
  probe: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  const end = performance.now() + 30_000;
  for (;;) {
    const found = await probe();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > end) throw new Error(`waited in vain for: ${probe}`);
    await Bun.sleep(20);
  }
}

/** The events of `--wait --json`. */
export const lines = (ran: Ran): Json[] =>
  ran.stdout
    .trim()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
export const document = (ran: Ran): Json => JSON.parse(ran.stdout);
export const last = (ran: Ran): Json => lines(ran).at(-1) ?? {};

/** The id of a request that waits. */
export async function request(stage: Stage, count = 1): Promise<readonly string[]> {
  const found = await until(async () => {
    const { requests } = document(await stage.run(['session-approve', '--json']));
    return Array.isArray(requests) && requests.length >= count && (requests as Json[]);
  });
  return found.map((one) => String(one['requestId']));
}

/** Waits until no host and no server of ours is left. */
export async function nothingLeft(stage: Stage): Promise<void> {
  await until(() => listRecords(stage.connectorHome).length === 0);
  await until(() => listServers(stage.connectorHome).length === 0);
}

/** The starts of the fake program. */
export const starts = (stage: Stage): Json[] => stage.log().filter((entry) => 'start' in entry);
/** The texts that it was given. */
export const messages = (stage: Stage): unknown[] =>
  stage.log().flatMap((entry) => ('message' in entry ? [entry['message']] : []));
