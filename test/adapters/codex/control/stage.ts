import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { listRecords } from '../../../../src/runtime/control/record.ts';
import { isAlive } from '../../../../src/runtime/process/identity.ts';
import { Lines } from '../home.ts';
import type { Json } from './recorded.ts';

export type { Json } from './recorded.ts';

const ROOT = resolve(import.meta.dir, '..', '..', '..', '..');
const MAIN = join(ROOT, 'src', 'main.ts');
const FAKE = join(import.meta.dir, 'fake-codex.ts');

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A home in which `codex` is the fake one, and the connector runs from its sources. */
export interface Stage {
  readonly home: string;
  readonly folder: string;
  readonly connectorHome: string;
  run(args: readonly string[], options?: { env?: Record<string, string>; stdin?: string }): Promise<Ran>;
  /** What the fake program was given and did, oldest first. */
  log(): readonly Json[];
  /** Lays a session that has been prompted and answered; `open` leaves its last turn without an end. */
  session(more?: { open?: boolean; parent?: string; archived?: boolean }): string;
  /** A process of Codex's that holds a thread, as its command line says. */
  owner(args: readonly string[], env?: Record<string, string>): Promise<Bun.Subprocess>;
  /** A shared server with these threads; `runs` is the prompt of a turn that each is in. */
  server(threads: readonly string[], runs?: string): Promise<Bun.Subprocess>;
  [Symbol.asyncDispose](): Promise<void>;
}

export function openStage(env: Record<string, string> = {}): Stage {
  const home = mkdtempSync(join(tmpdir(), 'acting-cx-'));
  const bin = join(home, 'programs');
  const folder = join(home, 'app');
  const logFile = join(home, 'fake.log');
  for (const path of [bin, folder]) mkdirSync(path);
  writeFileSync(join(bin, 'codex'), `#!/bin/sh\nexec "${process.execPath}" "${FAKE}" "$@"\n`);
  chmodSync(join(bin, 'codex'), 0o755);
  const base: Record<string, string> = {
    HOME: home,
    PATH: `${bin}:/usr/bin:/bin`,
    LANG: 'C.UTF-8',
    SHADOWOB_CONNECTOR_SKIP_LOGIN_SHELL: '1',
    FAKE_CODEX_LOG: logFile,
    ...env,
  };
  const connectorHome = join(home, '.shadowob', 'connector');
  const started: Bun.Subprocess[] = [];
  const log = (): readonly Json[] =>
    existsSync(logFile)
      ? readFileSync(logFile, 'utf8')
          .split('\n')
          // The last line may be half written.
          .slice(0, -1)
          .map((line) => JSON.parse(line))
      : [];
  const owner = async (args: readonly string[], more: Record<string, string> = {}) => {
    const child = Bun.spawn([process.execPath, FAKE, ...args], {
      cwd: folder,
      env: { ...base, ...more },
      stdio: ['ignore', 'ignore', 'ignore'],
      detached: true,
    });
    started.push(child);
    await until(() => log().some((one) => one['pid'] === child.pid && ('holds' in one || 'listens' in one)));
    return child;
  };
  return {
    home,
    folder,
    connectorHome,
    log,
    owner,
    server: (threads, runs) =>
      owner(
        [
          'app-server',
          '--listen',
          `unix://${join(home, 's.sock')}`,
          ...threads.flatMap((id) => ['--hold', id]),
        ],
        runs === undefined ? {} : { FAKE_RUNS: runs },
      ),
    async run(args, options = {}) {
      const child = Bun.spawn([process.execPath, MAIN, ...args], {
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
    session({ open = false, parent, archived = false } = {}) {
      const id = crypto.randomUUID();
      const source = parent
        ? { subagent: { thread_spawn: { parent_thread_id: parent, depth: 1, agent_path: 'a' } } }
        : 'cli';
      const lines = new Lines(Date.now() - 60_000)
        .meta(id, { cwd: folder, source, ...(parent ? { parent_thread_id: parent } : {}) })
        .started()
        .context('gpt-5.5', folder)
        .prompt('Say hello')
        .said('Hello.');
      const day = archived ? ['archived_sessions'] : ['sessions', '2026', '12', '01'];
      const path = join(home, '.codex', ...day);
      mkdirSync(path, { recursive: true });
      const text = open ? lines.text : lines.complete().text;
      writeFileSync(join(path, `rollout-2026-12-01T00-00-00-${id}.jsonl`), text);
      return id;
    },
    async [Symbol.asyncDispose]() {
      const hosts = listRecords(connectorHome).flatMap(({ host, child }) => [
        host.pid,
        ...(child ? [child.pid] : []),
      ]);
      const pids = [...hosts, ...started.map(({ pid }) => pid)];
      for (const pid of pids) end(pid);
      await until(() => pids.every((pid) => !isAlive(pid)));
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

/** The events of `--wait --json`. */
export const lines = (ran: Ran): Json[] =>
  ran.stdout
    .trim()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
export const document = (ran: Ran): Json => JSON.parse(ran.stdout);
export const last = (ran: Ran): Json => lines(ran).at(-1) ?? {};
/** The requests of this method that the fake was given. */
export const calls = (stage: Stage, method: string): Json[] =>
  stage.log().flatMap((one) => (one['method'] === method ? [one['params'] as Json] : []));
/** The answers that the fake was given to its own requests. */
export const answers = (stage: Stage): unknown[] =>
  stage.log().flatMap((one) => ('answered' in one ? [one['result']] : []));

/** The requests that wait, once there are as many. */
export async function requests(stage: Stage, count = 1): Promise<readonly Json[]> {
  return until(async () => {
    const { requests: found } = document(await stage.run(['session-approve', '--json']));
    return Array.isArray(found) && found.length >= count && (found as Json[]);
  });
}

/** Waits until no host of ours is left. */
export async function noHosts(stage: Stage): Promise<void> {
  await until(() => listRecords(stage.connectorHome).length === 0);
}
