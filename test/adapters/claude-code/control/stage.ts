import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { listRecords } from '../../../../src/runtime/control/record.ts';
import { isAlive } from '../../../../src/runtime/process/identity.ts';

const ROOT = resolve(import.meta.dir, '..', '..', '..', '..');
const MAIN = join(ROOT, 'src', 'main.ts');
const FAKE = join(import.meta.dir, 'fake-claude.ts');

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A home in which `claude` is the fake one, and the connector runs from its sources. */
export interface Stage {
  readonly home: string;
  readonly folder: string;
  readonly connectorHome: string;
  /** The whole environment of everything in it. */
  readonly env: Readonly<Record<string, string>>;
  run(args: readonly string[], options?: { env?: Record<string, string>; stdin?: string }): Promise<Ran>;
  start(args: readonly string[], env?: Record<string, string>): Bun.Subprocess<'ignore', 'pipe', 'pipe'>;
  /** What the fake program was given and did, oldest first. */
  log(): readonly Record<string, unknown>[];
  /** Lays a session of Claude Code's own, last written by a version that has live files. */
  session(id?: string, version?: string): string;
  [Symbol.asyncDispose](): Promise<void>;
}

export function openStage(): Stage {
  const home = mkdtempSync(join(tmpdir(), 'acting-'));
  const bin = join(home, 'programs');
  const folder = join(home, 'app');
  const logFile = join(home, 'fake.log');
  mkdirSync(bin);
  mkdirSync(folder);
  writeFileSync(join(bin, 'claude'), `#!/bin/sh\nexec "${process.execPath}" "${FAKE}" "$@"\n`);
  chmodSync(join(bin, 'claude'), 0o755);
  const base = {
    HOME: home,
    PATH: `${bin}:/usr/bin:/bin`,
    LANG: 'C.UTF-8',
    SHADOWOB_CONNECTOR_SKIP_LOGIN_SHELL: '1',
    FAKE_CLAUDE_LOG: logFile,
  };
  const connectorHome = join(home, '.shadowob', 'connector');
  const command = (args: readonly string[]) => [process.execPath, MAIN, ...args];
  return {
    home,
    folder,
    connectorHome,
    env: base,
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
    start: (args, env = {}) =>
      Bun.spawn(command(args), {
        cwd: home,
        env: { ...base, ...env },
        stdin: 'ignore',
        stdout: 'pipe',
        stderr: 'pipe',
      }),
    log: () =>
      existsSync(logFile)
        ? readFileSync(logFile, 'utf8')
            .split('\n')
            // What has no line end yet is still being written.
            .slice(0, -1)
            .map((line) => JSON.parse(line))
        : [],
    session(id = crypto.randomUUID(), version = '2.1.332') {
      const project = join(home, '.claude', 'projects', folder.replace(/[^A-Za-z0-9]/g, '-'));
      mkdirSync(project, { recursive: true });
      const row = {
        type: 'user',
        message: { role: 'user', content: 'Say hello' },
        uuid: crypto.randomUUID(),
        timestamp: new Date(Date.now() - 60_000).toISOString(),
        sessionId: id,
        cwd: folder,
        version,
        entrypoint: 'cli',
      };
      writeFileSync(join(project, `${id}.jsonl`), `${JSON.stringify(row)}\n`);
      return id;
    },
    async [Symbol.asyncDispose]() {
      const pids = listRecords(connectorHome).flatMap(({ host, child }) => [
        host.pid,
        ...(child ? [child.pid] : []),
      ]);
      for (const pid of pids) end(pid);
      await until(() => pids.every((pid) => !isAlive(pid)));
      // What a tool has started has a group of its own, and outlives a program that was killed.
      const tools = this.log().map((entry) => Number(entry['grandchild'] ?? 0));
      for (const pid of tools) if (pid > 1) end(-pid);
      rmSync(home, { recursive: true, force: true });
    },
  };
}

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
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

export type Json = Record<string, unknown>;
/** The events of `--wait --json`. */
export const lines = (ran: Ran): Json[] =>
  ran.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
export const document = (ran: Ran): Json => JSON.parse(ran.stdout);
/** The texts that the fake program was given, in its order. */
export const messages = (stage: Stage) =>
  stage.log().flatMap((entry) => ('message' in entry ? [entry['message']] : []));
/** The arguments of each start of the fake program. */
export const starts = (stage: Stage) =>
  stage.log().flatMap((entry) => (Array.isArray(entry['start']) ? [entry['start'] as string[]] : []));

/** The id of a request that waits. */
export async function request(stage: Stage): Promise<string> {
  const found = await until(async () => {
    const { requests } = document(await stage.run(['session-approve', '--json']));
    return Array.isArray(requests) && requests.length > 0 && requests;
  });
  return String((found[0] as Json)['requestId']);
}

/** Waits until no host of ours is left. */
export async function noHosts(stage: Stage): Promise<void> {
  await until(() => listRecords(stage.connectorHome).length === 0);
}

export function endGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The test has ended it.
  }
}

/** A process that has the session open, as a live file of its own says. */
export async function openElsewhere(stage: Stage, id: string, more: object = {}) {
  const child = Bun.spawn(['sleep', '1000'], { stdio: ['ignore', 'ignore', 'ignore'] });
  const folder = join(stage.home, '.claude', 'sessions');
  mkdirSync(folder, { recursive: true });
  const stat = await Bun.file(`/proc/${child.pid}/stat`).text();
  const procStart = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  const live = { pid: child.pid, sessionId: id, procStart, cwd: stage.folder, version: '2.1.332' };
  const rest = { kind: 'interactive', entrypoint: 'cli', status: 'idle', ...more };
  writeFileSync(join(folder, `${child.pid}.json`), JSON.stringify({ ...live, ...rest }));
  return { child, [Symbol.dispose]: () => child.kill('SIGKILL') };
}
