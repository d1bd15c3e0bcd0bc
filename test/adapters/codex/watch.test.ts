import { describe, expect, test } from 'bun:test';
import { appendFileSync, mkdirSync } from 'node:fs';
import { createServerKeeper } from '../../../src/adapters/codex/server-keep.ts';
import { ALIVE_EVERY_MS, LOOK_EVERY_MS, watchCodex } from '../../../src/adapters/codex/watch.ts';
import type { FeedSink } from '../../../src/runtime/feed.ts';
import type { TimerPort } from '../../../src/runtime/files/coalesce.ts';
import type { WatchPort } from '../../../src/runtime/files/watch-port.ts';
import { createRegistry } from '../../../src/runtime/session/registry.ts';
import { FakeServer, SERVER_PID, showServer } from './fake-server.ts';
import { finished, ID, inHome, Lines, OTHER_ID, stateOf, T0, type TestHome } from './home.ts';

const active = (...activeFlags: string[]) => ({ type: 'active', activeFlags });

/** Time that a test moves by hand. */
class HandTimers implements TimerPort {
  #now = 0;
  readonly #due = new Map<object, { at: number; call: () => void }>();

  now = () => this.#now;

  after = (ms: number, call: () => void) => {
    const key = {};
    this.#due.set(key, { at: this.#now + ms, call });
    return () => void this.#due.delete(key);
  };

  pass(ms: number): void {
    const until = this.#now + ms;
    for (;;) {
      const next = [...this.#due].sort((a, b) => a[1].at - b[1].at)[0];
      if (!next || next[1].at > until) break;
      this.#due.delete(next[0]);
      this.#now = next[1].at;
      next[1].call();
    }
    this.#now = until;
  }
}

/** File notification by hand. */
class HandWatch implements WatchPort {
  readonly recursive = false;
  readonly folders = new Map<string, (name: string) => void>();

  watch(folder: string, _recursive: boolean, listener: { event(kind: 'content', name: string): void }) {
    this.folders.set(folder, (name) => listener.event('content', name));
    return { close: () => void this.folders.delete(folder) };
  }
}

class Sink implements FeedSink {
  changes = 0;
  readonly lost: (scope: string) => void;
  readonly registry = createRegistry();
  readonly losses: string[] = [];
  readonly #home: TestHome;
  readonly #waiting = new Set<() => void>();

  constructor(home: TestHome) {
    this.#home = home;
    this.lost = (scope) => {
      this.losses.push(scope);
      this.registry.withdraw(scope, this.#home.now);
      this.#wake();
    };
  }

  changed = () => {
    this.changes += 1;
    this.#wake();
  };

  sighted: FeedSink['sighted'] = (scope, sightings) => {
    this.registry.apply(scope, sightings, this.#home.now);
    this.#wake();
  };

  state(id = ID): string | undefined {
    const session = this.registry.find({ runtimeId: 'codex', instanceId: 'transcripts', sessionId: id });
    return session && stateOf(session);
  }

  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}

interface Watched {
  readonly home: TestHome;
  readonly server: FakeServer;
  readonly sink: Sink;
  readonly timers: HandTimers;
  readonly port: HandWatch;
  readonly status: () => string;
  readonly socket: string;
}

async function watching(
  prepare: (home: TestHome, socket: string, server: FakeServer) => void,
  use: (w: Watched) => Promise<void>,
) {
  await inHome(async (home) => {
    const socket = home.path('s.sock');
    const server = new FakeServer(socket);
    prepare(home, socket, server);
    const [sink, timers, port] = [new Sink(home), new HandTimers(), new HandWatch()];
    const watch = watchCodex(home.context(), sink, home.host, { timers, port });
    try {
      await use({ home, server, sink, timers, port, socket, status: () => watch.status() });
    } finally {
      await watch.close();
      await server.stop();
    }
  });
}

describe('a kept connection', () => {
  const loaded = (home: TestHome, socket: string, server: FakeServer) => {
    server.threads.set(ID, { id: ID, status: active() });
    showServer(home, socket, [ID]);
  };

  test('statuses reach the registry as they change, without a scan', () =>
    watching(loaded, async ({ server, sink, status }) => {
      await sink.until(() => sink.state() === 'running');
      server.status(ID, active('waitingOnApproval'));
      await sink.until(() => sink.state() === 'waiting_for_approval');
      server.status(ID, active());
      await sink.until(() => sink.state() === 'running');
      expect(status()).toContain('1 app-server');
      expect(server.connections).toBe(1);
    }));

  test('R-13 a thread that is unloaded withdraws its claim, and an approval of a child shows on its parent', () =>
    watching(loaded, async ({ server, sink, timers }) => {
      await sink.until(() => sink.state() === 'running');
      server.threads.set(OTHER_ID, { parentThreadId: ID });
      server.status(OTHER_ID, active('waitingOnApproval'));
      await sink.until(() =>
        sink.registry
          .sessions()
          .some((one) => stateOf(one) === 'waiting_for_approval' && one.shownFrom === OTHER_ID),
      );
      server.status(ID, { type: 'notLoaded' });
      await sink.until(() => sink.state() === 'waiting_for_approval' || sink.state() === 'unknown');
      server.threads.clear();
      timers.pass(5_000);
      await sink.until(() => sink.state(OTHER_ID) === 'unknown');
    }));

  test('a lost server is told, its claims go, and it is found again when it is back', () =>
    watching(loaded, async ({ server, sink, timers }) => {
      await sink.until(() => sink.state() === 'running');
      server.dropAll();
      await sink.until(() => sink.losses.length === 1);
      expect(sink.state()).toBeUndefined();
      timers.pass(LOOK_EVERY_MS);
      await sink.until(() => sink.state() === 'running');
      expect(server.connections).toBe(2);
    }));

  test('no server that holds a lock, no connection; one that takes a lock later is found', () =>
    watching(
      (_home, _socket, server) => void server.threads.set(ID, { id: ID, status: active() }),
      async ({ home, server, sink, timers, socket }) => {
        timers.pass(LOOK_EVERY_MS);
        expect(server.connections).toBe(0);
        showServer(home, socket, [ID]);
        timers.pass(LOOK_EVERY_MS);
        await sink.until(() => sink.state() === 'running');
      },
    ));

  test('one that refuses is asked less and less often', () =>
    inHome(async (home) => {
      const timers = new HandTimers();
      const attempts: number[] = [];
      const debug = () => void attempts.push(timers.now());
      const keeper = createServerKeeper(new Sink(home), { now: () => T0, log: { debug, warn() {} }, timers });
      const address = { path: home.path('nothing.sock'), pid: SERVER_PID };
      for (let second = 0; second < 120; second += 1) {
        keeper.keep([address]);
        const before = attempts.length;
        for (let turn = 0; turn < 200 && attempts.length === before; turn += 1)
          await new Promise(setImmediate);
        timers.pass(1_000);
      }
      keeper.close();
      expect(attempts.length).toBeGreaterThan(3);
      expect(attempts.length).toBeLessThan(10);
      expect(keeper.connected).toBe(0);
    }));
});

describe('files', () => {
  test('X12 a watch for each day folder, not for each of 3,000 files', () =>
    watching(
      (home) => {
        for (let n = 0; n < 3_000; n += 1) {
          const id = `01a22e12-e42f-7351-a505-${n.toString(16).padStart(12, '0')}`;
          home.rollout('', id, `2026/11/${String(10 + (n % 10))}`);
        }
        mkdirSync(home.path('thread-writer-locks'));
      },
      async ({ port, home }) => {
        const under = [...port.folders.keys()].filter((folder) => folder.startsWith(home.path('sessions')));
        expect(under.length).toBe(1 + 1 + 1 + 10);
        expect(port.folders.size).toBeLessThan(20);
      },
    ));

  test('a rollout that grows, a new name and a lock ask for a scan; the databases beside them do not', () =>
    watching(
      (home) => {
        home.rollout(finished('Go'));
        mkdirSync(home.path('thread-writer-locks'));
      },
      async ({ home, sink, timers, port }) => {
        const said = (folder: string, name: string) => {
          port.folders.get(home.path(folder).replace(/\/$/, ''))?.(name);
          timers.pass(100);
          return sink.changes;
        };
        expect(said('', 'state_5.sqlite-wal')).toBe(0);
        expect(said('', 'history.jsonl')).toBe(0);
        expect(said('sessions/2026/11/30', `rollout-2026-11-30T12-00-00-${ID}.jsonl`)).toBe(1);
        expect(said('', 'session_index.jsonl')).toBe(2);
        expect(said('thread-writer-locks', `${ID}.lock`)).toBe(3);
      },
    ));

  test('a rollout that moved lately is seen by the poll even if nothing is announced', () =>
    watching(
      (home) => void home.rollout(finished('Go')),
      async ({ home, sink, timers, port }) => {
        const name = `rollout-2026-11-30T12-00-00-${ID}.jsonl`;
        port.folders.get(home.path('sessions/2026/11/30'))?.(name);
        timers.pass(20_000);
        const before = sink.changes;
        appendFileSync(home.path(`sessions/2026/11/30/${name}`), new Lines().started().text);
        timers.pass(20_000);
        expect(sink.changes).toBeGreaterThan(before);
      },
    ));

  test('a killed owner moves no file: its pid is asked, and a scan follows', () =>
    watching(
      (home, socket) => showServer(home, socket, [ID], 'codex\0exec\0'),
      async ({ home, sink, timers }) => {
        timers.pass(3 * ALIVE_EVERY_MS);
        expect(sink.changes).toBe(0);
        Bun.spawnSync(['sed', '-i', 's/ S / Z /', `${home.folder}/proc/${SERVER_PID}/stat`]);
        timers.pass(ALIVE_EVERY_MS);
        expect(sink.changes).toBe(1);
        timers.pass(3 * ALIVE_EVERY_MS);
        expect(sink.changes).toBe(1);
      },
    ));
});
