import { mkdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ServerWebSocket } from 'bun';
import { T0, type TestHome } from './home.ts';

type Json = Readonly<Record<string, unknown>>;

/** How a server misbehaves. */
export interface Behaviour {
  /** Requests that are never answered. */
  readonly silentOn?: ReadonlySet<string>;
}

/** A WebSocket server on a unix socket that speaks the part of the app-server protocol that was recorded. */
export class FakeServer {
  /** Every message that clients have sent. */
  readonly received: Json[] = [];
  connections = 0;
  readonly threads = new Map<string, Json>();
  readonly #server: { stop(closeConnections?: boolean): Promise<void> };
  readonly #clients = new Set<ServerWebSocket<unknown>>();
  readonly #waiting = new Set<() => void>();

  constructor(path: string, behaviour: Behaviour = {}) {
    this.#server = Bun.serve({
      unix: path,
      fetch: (request, server) =>
        server.upgrade(request, { data: undefined }) ? undefined : new Response('no', { status: 400 }),
      websocket: {
        open: (client) => {
          this.connections += 1;
          this.#clients.add(client);
        },
        close: (client) => {
          this.#clients.delete(client);
          this.#wake();
        },
        message: (client, text) => {
          const message = JSON.parse(String(text)) as Json;
          this.received.push(message);
          if (!behaviour.silentOn?.has(String(message['method']))) this.#answer(client, message);
          this.#wake();
        },
      },
    });
  }

  get methods(): ReadonlySet<string> {
    return new Set(this.received.map((message) => String(message['method'])));
  }

  get open(): number {
    return this.#clients.size;
  }

  send(message: Json): void {
    for (const client of this.#clients) client.send(JSON.stringify(message));
  }

  status(threadId: string, status: Json, emittedAtMs?: number): void {
    this.threads.set(threadId, { ...this.threads.get(threadId), id: threadId, status });
    this.send({
      method: 'thread/status/changed',
      params: { threadId, status },
      ...(emittedAtMs ? { emittedAtMs } : {}),
    });
  }

  /** Waits until something arrived for which this holds. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  dropAll(): void {
    for (const client of this.#clients) client.terminate();
  }

  async stop(): Promise<void> {
    await this.#server.stop(true);
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }

  #answer(client: ServerWebSocket<unknown>, message: Json): void {
    const id = message['id'];
    const reply = (body: Json) => client.send(JSON.stringify({ id, ...body }));
    switch (message['method']) {
      case 'initialize':
        reply({ result: { userAgent: 'codex-tui/0.171.0', codexHome: '/home/dev/.codex' } });
        break;
      case 'thread/loaded/list':
        reply({ result: { data: [...this.threads.keys()], nextCursor: null } });
        break;
      case 'thread/read': {
        const thread = this.threads.get(String((message['params'] as Json)['threadId']));
        reply(thread ? { result: { thread } } : { error: { code: -32600, message: 'no such thread' } });
        break;
      }
    }
  }
}

export const SERVER_PID = 4242;

/** Shows, in the home's own /proc, a process that holds these threads' locks and listens on this socket. */
export function showServer(
  home: TestHome,
  socket: string,
  threads: readonly string[],
  words = 'codex\0app-server\0',
): void {
  const proc = join(home.folder, 'proc');
  const own = join(proc, String(SERVER_PID));
  rmSync(own, { recursive: true, force: true });
  mkdirSync(join(own, 'fd'), { recursive: true });
  mkdirSync(join(own, 'net'));
  writeFileSync(join(proc, 'stat'), `btime ${Math.floor(T0 / 1000) - 10_000}\n`);
  writeFileSync(join(own, 'stat'), `${SERVER_PID} (codex) S 1 1 1 ${'0 '.repeat(15)}100 0\n`);
  writeFileSync(join(own, 'cmdline'), words);
  symlinkSync('socket:[777]', join(own, 'fd', '9'));
  writeFileSync(
    join(own, 'net', 'unix'),
    [
      'Num       RefCount Protocol Flags    Type St Inode Path',
      `0: 00000002 00000000 00010000 0001 01 777 ${socket}`,
      '0: 00000003 00000000 00000000 0001 03 778 /not/listening',
      '0: 00000002 00000000 00010000 0001 01 779 /not/its/own',
      '',
    ].join('\n'),
  );
  mkdirSync(home.path('thread-writer-locks'), { recursive: true });
  const lines = threads.map((id, at) => {
    const path = home.write(`thread-writer-locks/${id}.lock`, '');
    const { dev, ino } = statSync(path);
    const [major, minor] = [(dev >> 8) & 0xfff, (dev & 0xff) | ((dev >> 12) & 0xffffff00)];
    return `${at + 1}: FLOCK  ADVISORY  WRITE ${SERVER_PID} ${major.toString(16)}:${minor.toString(16)}:${ino} 0 EOF\n`;
  });
  home.procLocks(lines.join(''));
}
