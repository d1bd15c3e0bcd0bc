/** The product under test, always the compiled executable, with the environment of the lab's user. */
import type { SessionRow } from '../../../src/runtime/session/row.ts';
import { compiledBinary } from '../../helpers/binary.ts';
import { type Body, objectsOf } from './models/server.ts';
import { until } from './until.ts';
import { startWatch, type Watch } from './watch.ts';

export interface Answer {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** What a scenario expects of a row: each given field has this value; `undefined` means that it is absent. */
export type Expected = { readonly [Key in keyof SessionRow]?: SessionRow[Key] | undefined };

export interface Connector {
  /** Runs a command to its end. */
  run(...args: string[]): Promise<Answer>;
  /** The same for a command with `--json`; throws when the output is no JSON document. */
  json(...args: string[]): Promise<Body>;
  /** All sessions as the product sorts them. */
  sessions(): Promise<readonly SessionRow[]>;
  /** What the product says of a runtime's only instance. */
  instance(runtimeId: string): Promise<Body>;
  /**
   * Waits until a session looks as expected, and returns its row. `which` chooses among several; exactly one must be
   * left. When it never does, the error holds the rows, their chains of evidence, and the screens.
   */
  sees(expected: Expected, which?: Expected): Promise<SessionRow>;
  /** Starts `runtime-watch --json`; it ends with the lab. */
  watch(...args: string[]): Promise<Watch>;
}

export interface ConnectorOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  onEnd(end: () => Promise<void>): void;
  /** What a person would see beside, for errors: the screens. */
  screens(): Promise<string>;
}

export function createConnector(options: ConnectorOptions): Connector {
  const run = (...args: string[]) => runBinary(options, args);
  const json = async (...args: string[]) => {
    const answer = await run(...args, '--json');
    try {
      return JSON.parse(answer.stdout);
    } catch {
      throw new Error(
        `no JSON from ${args.join(' ')} (exit ${answer.code}): ${answer.stdout}${answer.stderr}`,
      );
    }
  };
  const sessions = async (): Promise<readonly SessionRow[]> => {
    const { sessions: rows } = await json('session-list', '--all');
    return Array.isArray(rows) ? rows : [];
  };
  const explain = async () => {
    const rows = await sessions();
    const chains = await Promise.all(rows.map((row) => run('session-why', row.sessionId)));
    const told = chains.map((one) => one.stdout + one.stderr);
    return [...rows.map((row) => JSON.stringify(row)), ...told, await options.screens()].join('\n');
  };
  return {
    run,
    json,
    sessions,
    async instance(runtimeId) {
      const { instances } = await json('session-list');
      const [only, second] = objectsOf(instances).filter((one) => one['runtimeId'] === runtimeId);
      if (!only || second) throw new Error(`not one instance of ${runtimeId}: ${JSON.stringify(instances)}`);
      return only;
    },
    sees: (expected, which = {}) =>
      until(
        `a session ${JSON.stringify(which, shown)} as ${JSON.stringify(expected, shown)}`,
        async () => {
          const rows = await sessions();
          const [only, second] = rows.filter((row) => fits(row, which));
          return second === undefined && only !== undefined && fits(only, expected) && only;
        },
        { explain },
      ),
    async watch(...args) {
      const watch = await startWatch({ ...options, args });
      options.onEnd(() => watch.stop());
      return watch;
    },
  };
}

/** An absent field is part of what is expected, and has to be in the words about it. */
function shown(_key: string, value: unknown): unknown {
  return value === undefined ? 'absent' : value;
}

/** Whether a row has every expected field; lists and objects are compared as JSON. */
export function fits(row: SessionRow, expected: Expected): boolean {
  const fields: Readonly<Record<string, unknown>> = { ...row };
  return Object.entries(expected).every(
    ([name, value]) => JSON.stringify(fields[name]) === JSON.stringify(value),
  );
}

async function runBinary(options: ConnectorOptions, args: readonly string[]): Promise<Answer> {
  const child = Bun.spawn([await compiledBinary(), ...args], {
    cwd: options.cwd,
    env: options.env,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, stdout, stderr };
}
