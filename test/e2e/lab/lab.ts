import { afterAll, beforeAll, test } from 'bun:test';
import { closeSync, constants, openSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Connector, createConnector } from './connector.ts';
import { isIsolated, openWorld } from './isolation.ts';
import type { Model } from './models/server.ts';
import { endAll, processesWith, strangers } from './processes.ts';
import { PROGRAMS_PATH } from './programs.ts';
import { noTerminalReason, openTerminal, type Terminal, type TerminalOptions } from './terminal.ts';
import { until } from './until.ts';

/** A command that the model may run and that does not end before the test lets it. */
export interface Barrier {
  readonly command: string;
  /** Waits until the command runs. */
  reached(): Promise<void>;
  /** Lets it end. */
  release(): Promise<void>;
}

/** A program without a terminal. */
export interface Started {
  readonly pid: number;
  /** Its standard output so far. */
  output(): string;
  /** Its exit code; the number of the signal plus 128 when one ended it. */
  readonly exited: Promise<number>;
  kill(signal: NodeJS.Signals): void;
}

/** One person's computer, for one scenario: a home folder, an environment, and all that runs in them. */
export interface Lab {
  readonly home: string;
  /** The whole environment of everything that is started; `settings` may add to it. */
  readonly env: Readonly<Record<string, string>>;
  readonly connector: Connector;
  /** Adds to the environment of whatever is started from now on. */
  set(settings: Readonly<Record<string, string>>): void;
  /** Makes a folder in the home, and returns its path. */
  folder(name: string): Promise<string>;
  /** Ends with the lab. */
  model(start: () => Model): Model;
  barrier(name: string): Promise<Barrier>;
  terminal(options: Pick<TerminalOptions, 'command' | 'cwd' | 'columns' | 'rows'>): Promise<Terminal>;
  start(command: readonly string[], cwd: string, settings?: Readonly<Record<string, string>>): Started;
  onEnd(end: () => Promise<void>): void;
  /** Names a file outside of this lab's folder that a program has made; it is removed when the program has ended. */
  outside(path: string): void;
  /** Ends everything by its process id, and throws if a process of this lab is left. */
  [Symbol.asyncDispose](): Promise<void>;
}

const MARKER = 'SHADOWOB_E2E_LAB';

/**
 * A scenario with real programs: a test with a lab of its own. Skipped, with the reason in its name, where the file
 * does not run in a world of its own or where there is no terminal.
 */
export function scenario(name: string, run: (lab: Lab) => Promise<void>): void {
  const reason = isIsolated() ? noTerminalReason() : 'not in a namespace of its own';
  test.skipIf(reason !== undefined)(reason ? `${name} (${reason})` : name, async () => {
    await using lab = await openLab();
    await run(lab);
  });
}

/** To be called once by each file of scenarios. Proves at the end that nothing of them runs any more. */
export function inOwnWorld(): void {
  if (!isIsolated()) return;
  beforeAll(openWorld);
  // One that has been killed takes a moment to go, in which it has no environment to be known by any more.
  afterAll(async () => {
    await until('an empty world', () => strangers().length === 0, {
      explain: () => JSON.stringify(strangers()),
    });
  });
}

export async function openLab(): Promise<Lab> {
  const root = await mkdtemp(join(tmpdir(), 'lab-'));
  const marker = `${MARKER}=${root}`;
  const home = join(root, 'home');
  await mkdir(home);
  await mkdir(join(root, 'tmp'));
  const env: Record<string, string> = {
    ...environmentOf(home, join(root, 'tmp')),
    [MARKER]: root,
  };
  const ends: (() => Promise<void>)[] = [];
  const made = [root];
  const terminals: Terminal[] = [];
  const screens = async () =>
    (await Promise.all(terminals.map((terminal) => terminal.screen().catch(String)))).join('\n');
  const onEnd = (end: () => Promise<void>) => void ends.unshift(end);
  return {
    home,
    env,
    connector: createConnector({ env, cwd: home, onEnd, screens }),
    set: (settings) => void Object.assign(env, settings),
    async folder(name) {
      await mkdir(join(home, name), { recursive: true });
      return join(home, name);
    },
    model(start) {
      const model = start();
      onEnd(() => model.close());
      return model;
    },
    barrier: (name) => makeBarrier(join(root, name)),
    async terminal(options) {
      const socket = join(root, `t${terminals.length}`);
      const terminal = await openTerminal({ ...options, env, socket });
      terminals.push(terminal);
      onEnd(() => terminal.close());
      return terminal;
    },
    start: (command, cwd, settings) => startProgram(command, cwd, { ...env, ...settings }),
    onEnd,
    outside: (path) => void made.push(path),
    async [Symbol.asyncDispose]() {
      const failures = await runAll([...ends, () => endAll(() => processesWith(marker))]);
      const unremoved = await runAll([
        ...made.map((path) => () => rm(path, { recursive: true, force: true })),
      ]);
      if (failures.length + unremoved.length === 0) return;
      throw new AggregateError([...failures, ...unremoved], 'the lab did not end well');
    },
  };
}

/** Runs every step, also after one that failed, and returns what was thrown. */
async function runAll(steps: readonly (() => Promise<void>)[]): Promise<unknown[]> {
  const failures: unknown[] = [];
  for (const step of steps) await step().catch((error: unknown) => failures.push(error));
  return failures;
}

/** Nothing of the tester's own environment gets in. */
function environmentOf(home: string, tmp: string): Record<string, string> {
  return {
    HOME: home,
    USER: 'dev',
    SHELL: '/bin/bash',
    LANG: 'C.UTF-8',
    TMPDIR: tmp,
    PATH: `${PROGRAMS_PATH}:/usr/local/bin:/usr/bin:/bin`,
    XDG_CONFIG_HOME: join(home, '.config'),
    XDG_DATA_HOME: join(home, '.local', 'share'),
    XDG_STATE_HOME: join(home, '.local', 'state'),
    XDG_CACHE_HOME: join(home, '.cache'),
    SHADOWOB_CONNECTOR_SKIP_LOGIN_SHELL: '1',
  };
}

async function makeBarrier(path: string): Promise<Barrier> {
  const made = Bun.spawnSync(['mkfifo', path]);
  if (made.exitCode !== 0) throw new Error(`mkfifo: ${made.stderr.toString()}`);
  const held: { fd?: number } = {};
  const reached = async () => {
    // Once there is a reader, the open end keeps it waiting; to close it is what lets the command end.
    held.fd ??= await until('the command to run', () => openForReader(path));
  };
  return {
    command: `cat ${path}`,
    reached,
    async release() {
      await reached();
      if (held.fd !== undefined) closeSync(held.fd);
    },
  };
}

function openForReader(path: string): number | undefined {
  try {
    return openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    // ENXIO: nobody has opened it for reading yet.
    return undefined;
  }
}

function startProgram(
  command: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
): Started {
  const child = Bun.spawn([...command], { cwd, env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' });
  const output: string[] = [];
  const read = async (stream: ReadableStream<Uint8Array>) => {
    for await (const bytes of stream) output.push(new TextDecoder().decode(bytes));
  };
  const reading = Promise.all([read(child.stdout), read(child.stderr)]);
  return {
    pid: child.pid,
    output: () => output.join(''),
    exited: Promise.all([child.exited, reading]).then(([code]) => code),
    kill: (signal) => child.kill(signal),
  };
}
