/** The compiled sink as a process in a home of its own, and a stand-in for the service that answers as it is told. */
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { compiledBinary } from '../helpers/binary.ts';
import { type Cleanup, tempFolder } from '../runtime/daemon/harness.ts';

export const ID = '0b7e6c1a-2f4d-4a8e-9c3b-5d1e7f9a2b4c';

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly ms: number;
  readonly pid: number;
}

/** How the stand-in answers a line; `undefined` is silence. */
export type Answer = (line: string) => string | undefined;

export function hookBench(cleanup: Cleanup, options: { run?: boolean } = {}) {
  const user = tempFolder(cleanup);
  const home = join(user, 'c');
  if (options.run !== false) mkdirSync(join(home, 'run'), { recursive: true, mode: 0o700 });
  const socketPath = join(home, 'daemon.sock');

  return {
    user,
    home,
    socketPath,
    /** Runs `hook` with this on stdin, through no shell. */
    async hook(
      stdin: string | Uint8Array | Record<string, unknown>,
      args: readonly string[] = ['--agent', 'claude'],
      env: Readonly<Record<string, string>> = {},
    ): Promise<Ran> {
      const input = typeof stdin === 'string' || stdin instanceof Uint8Array ? stdin : JSON.stringify(stdin);
      const startedAt = performance.now();
      const child = Bun.spawn([await compiledBinary(), 'hook', ...args], {
        stdin: typeof input === 'string' ? Buffer.from(input) : input,
        stdout: 'pipe',
        stderr: 'pipe',
        cwd: user,
        env: { HOME: user, SHADOWOB_CONNECTOR_HOME: home, PATH: process.env['PATH'] ?? '', ...env },
      });
      const [stdout, stderr, code] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
        child.exited,
      ]);
      return { code, stdout, stderr, ms: performance.now() - startedAt, pid: child.pid };
    },
    journal(id = ID, agent = 'claude'): Record<string, unknown>[] {
      const text = readFileSync(join(home, 'run', 'sessions', agent, `${id}.jsonl`), 'utf8');
      return text
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line));
    },
    /** Every file below the home, for "left nothing behind". */
    files: (): string[] =>
      readdirSync(user, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name)),
  };
}

/** Listens like the service would. */
export async function standIn(
  cleanup: Cleanup,
  path: string,
  answer: Answer = () => '{"ok":true,"payload":{"ok":true}}\n',
) {
  const received: { readonly text: string; readonly at: number }[] = [];
  const sockets = new Set<import('node:net').Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let rest = '';
    socket.on('error', () => {
      // The sink may leave at any time.
    });
    socket.on('data', (chunk) => {
      rest += chunk.toString();
      for (let lf = rest.indexOf('\n'); lf >= 0; lf = rest.indexOf('\n')) {
        const text = rest.slice(0, lf);
        rest = rest.slice(lf + 1);
        received.push({ text, at: Date.now() });
        const reply = answer(text);
        if (reply !== undefined) socket.write(reply);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  cleanup.add(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    received,
    /** The parsed lines. */
    lines: (): { service: string; op: string; payload: Record<string, unknown> }[] =>
      received.map(({ text }) => JSON.parse(text)),
  };
}
