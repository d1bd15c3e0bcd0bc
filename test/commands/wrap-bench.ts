/** Starts the compiled wrapper as an editor would, with an input that stays open. */
import { realpathSync } from 'node:fs';
import { compiledBinary } from '../helpers/binary.ts';
import { bareEnvironment, temporaryHome } from '../helpers/cli.ts';
import type { Cleanup } from '../runtime/daemon/harness.ts';
import { connectWire } from '../runtime/daemon/wire-client.ts';

export interface Wrapped {
  readonly pid: number;
  readonly exited: Promise<number>;
  /** Everything that came out, once it has ended. */
  readonly output: Promise<Buffer>;
  /** What came out so far. */
  soFar(): string;
  write(text: string | Uint8Array): Promise<void>;
  closeInput(): void;
  kill(signal: NodeJS.Signals): void;
}

export interface WrapOptions {
  readonly home: string;
  readonly socket?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export function wrapHome(cleanup: Cleanup): string {
  const home = temporaryHome();
  cleanup.add(() => home[Symbol.dispose]());
  return realpathSync(home.path);
}

/** `claude-wrap -- program`, with pipes for stdin and stdout. */
export async function startWrapped(
  cleanup: Cleanup,
  program: readonly string[],
  options: WrapOptions,
): Promise<Wrapped> {
  const socket = options.socket === undefined ? [] : ['--socket', options.socket];
  const child = Bun.spawn([await compiledBinary(), 'claude-wrap', ...socket, '--', ...program], {
    cwd: options.home,
    env: bareEnvironment(options.home, options.env),
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  });
  cleanup.add(async () => {
    child.kill('SIGKILL');
    await child.exited;
  });
  const chunks: Uint8Array[] = [];
  const read = async (): Promise<Buffer> => {
    for await (const chunk of child.stdout) chunks.push(chunk);
    return Buffer.concat(chunks);
  };
  return {
    pid: child.pid,
    exited: child.exited,
    output: read(),
    soFar: () => Buffer.concat(chunks).toString(),
    async write(text) {
      await child.stdin.write(text);
      await child.stdin.flush();
    },
    closeInput: () => void child.stdin.end(),
    kill: (signal) => child.kill(signal),
  };
}

interface Row {
  readonly session_id: string;
  readonly state: string;
  readonly model?: string;
  readonly cwd?: string;
}

/** The rows of the service behind a socket. */
export async function rowsAt(socket: string): Promise<readonly Row[]> {
  const wire = await connectWire(socket);
  const reply = await wire.ask({ service: 'sessions', op: 'list' });
  wire.close();
  return (reply['payload'] as { sessions: readonly Row[] }).sessions;
}

/** Waits for a condition; the test's own limit ends it. */
export async function untilTrue(test: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await test())) await Bun.sleep(5);
}
