import { afterEach, describe, expect, test } from 'bun:test';
import { createOpencode } from '../../../src/adapters/opencode/index.ts';
import type { FeedWatch } from '../../../src/runtime/feed.ts';
import { createMonitor, type Monitor } from '../../../src/runtime/monitor.ts';
import { type FakeServer, startServer } from './fake-server.ts';
import { contextFor, createStore, fakeMachine, inFolder, refOf, type Store, stateIn } from './world.ts';

const DIRECTORY = '/work/app';
const ID = 'ses_a';

const closing: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of closing.splice(0).reverse()) await one.close();
});

/** Waits for a condition; a test that waits in vain is ended by the runner. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await Bun.sleep(5);
}

function startFake(port?: number): FakeServer {
  const server = startServer(port);
  server.sessions = [{ id: ID }];
  closing.push({ close: () => server.stop() });
  return server;
}

/** A real monitor over the adapter, as the daemon has it, with a slow net so that only notification can drive it. */
async function monitorOf(folder: string, url: string, env: Record<string, string> = {}): Promise<Monitor> {
  const monitor = createMonitor({
    feeds: [createOpencode(fakeMachine(folder, [], Date.now()))],
    context: contextFor(`${folder}/data`, { env: { SHADOWOB_CONNECTOR_OPENCODE_URL: url, ...env } }),
    clock: {
      now: () => Date.now(),
      after(ms, run) {
        const timer = setTimeout(run, ms);
        return () => clearTimeout(timer);
      },
    },
    pollMs: 600_000,
  });
  closing.push(monitor);
  await monitor.scan();
  await monitor.watch(() => {});
  return monitor;
}

const lay = (store: Store): void => {
  const now = Date.now();
  store.session({
    id: ID,
    directory: DIRECTORY,
    title: 'A session',
    time_created: now - 9_000,
    time_updated: now - 9_000,
  });
};
const status = (type: string, sessionID = ID) => ({
  type: 'session.status',
  properties: { sessionID, status: { type } },
});

describe('watching with a server', () => {
  test('events move the state, the loss of the server takes its word back, and its return is found', () =>
    inFolder(async (folder) => {
      const store = createStore(`${folder}/data`);
      lay(store);
      const server = startFake();
      const monitor = await monitorOf(folder, server.url);
      const state = (): string => stateIn(monitor.registry, ID);
      await until(() => server.streams === 1 && monitor.status()['opencode']?.includes('events of') === true);
      await until(() => state() === 'idle');

      server.send(status('busy'));
      await until(() => state() === 'running');
      server.send({
        type: 'permission.asked',
        properties: { id: 'per_1', sessionID: ID, permission: 'bash', metadata: { command: 'ls' } },
      });
      await until(() => state() === 'waiting_for_approval');
      server.send({
        type: 'permission.replied',
        properties: { requestID: 'per_1', sessionID: ID, reply: 'once' },
      });
      await until(() => state() === 'running');

      await server.stop();
      // The turn never reached this store's rows, so without the server nothing is known of it.
      await until(() => state() === 'unknown');
      await until(() => monitor.status()['opencode']?.includes('events of') === false);

      const again = startFake(server.port);
      // It rests, and the turn that was seen to begin never ended.
      await until(() => again.streams === 1 && state() === 'stopped');
      store.close();
    }));

  test('what runs, and what waits, when listening begins is asked for once', () =>
    inFolder(async (folder) => {
      const store = createStore(`${folder}/data`);
      lay(store);
      store.close();
      const server = startFake();
      server.statuses[DIRECTORY] = { [ID]: { type: 'busy' } };
      server.questions = [{ id: 'que_1', sessionID: ID, questions: [] }];
      const monitor = await monitorOf(folder, server.url);
      await until(() => monitor.status()['opencode']?.includes('events of') === true);
      await until(() => stateIn(monitor.registry, ID) === 'blocked');
      server.questions = [];
      server.send({ type: 'question.replied', properties: { requestID: 'que_1', sessionID: ID } });
      await until(() => stateIn(monitor.registry, ID) === 'running');
      server.send(status('idle'));
      await until(() => stateIn(monitor.registry, ID) !== 'running');
    }));

  test('garbage, heartbeats, floods of other events and half a line change nothing', () =>
    inFolder(async (folder) => {
      const store = createStore(`${folder}/data`);
      lay(store);
      store.close();
      const server = startFake();
      const monitor = await monitorOf(folder, server.url);
      await until(() => server.streams === 1);
      server.sendRaw('data: {"payload":{"type":"session.status","properties":\n\n');
      server.sendRaw('data: not json at all\n\n: comment\n\n\u0000\n\n');
      for (let n = 0; n < 500; n += 1) server.send({ type: 'plugin.added', properties: { id: `p${n}` } });
      server.send({ type: 'session.status', properties: { sessionID: 7, status: 'busy' } });
      server.send({ type: 'session.status', properties: null });
      const line = `data: ${JSON.stringify({ payload: status('busy') })}\n\n`;
      server.sendRaw(line.slice(0, 40));
      server.sendRaw(line.slice(40));
      await until(() => stateIn(monitor.registry, ID) === 'running');
      expect(monitor.registry.size).toBe(1);
    }));

  test('a session that is removed is shown as ended', () =>
    inFolder(async (folder) => {
      const store = createStore(`${folder}/data`);
      lay(store);
      const server = startFake();
      const monitor = await monitorOf(folder, server.url);
      await until(() => server.streams === 1);
      server.send(status('busy'));
      await until(() => stateIn(monitor.registry, ID) === 'running');
      store.database.run('DELETE FROM session');
      server.send({ type: 'session.deleted', properties: { info: { id: ID } } });
      await until(() => monitor.registry.find(refOf(ID))?.own.state.kind === 'ended');
      expect(stateIn(monitor.registry, ID)).toBe('stopped');
      store.close();
    }));

  test('a stream that breaks at once is not hammered', () =>
    inFolder(async (folder) => {
      const store = createStore(`${folder}/data`);
      lay(store);
      store.close();
      const server = startFake();
      const monitor = await monitorOf(folder, server.url);
      await until(() => server.streams === 1);
      server.cut();
      await until(() => server.streams === 1);
      const asked = server.asked.filter((path) => path === '/global/event').length;
      expect(asked).toBe(2);
      expect(monitor.status()['opencode']).toBeDefined();
    }));

  test('a password that is missing is said while watching too', () =>
    inFolder(async (folder) => {
      const store = createStore(`${folder}/data`);
      lay(store);
      const server = startFake();
      server.password = 'secret';
      const monitor = await monitorOf(folder, server.url);
      store.session({ id: 'ses_b', directory: DIRECTORY, title: 'B', time_created: 1, time_updated: 1 });
      await until(() => monitor.registry.size === 2);
      expect(monitor.instances()[0]?.error).toContain('OPENCODE_SERVER_PASSWORD');
      store.close();
    }));
});

describe('watching without a server', () => {
  test('a write to the database’s log asks for a scan', () =>
    inFolder(async (folder) => {
      const store = createStore(`${folder}/data`);
      lay(store);
      const monitor = await monitorOf(folder, 'http://127.0.0.1:1');
      store.session({ id: 'ses_b', directory: DIRECTORY, title: 'B', time_created: 1, time_updated: 1 });
      await until(() => monitor.registry.size === 2);
      store.close();
    }));

  test('a store that is made later is found', () =>
    inFolder(async (folder) => {
      const monitor = await monitorOf(folder, 'http://127.0.0.1:1');
      expect(monitor.registry.size).toBe(0);
      const store = createStore(`${folder}/data`);
      lay(store);
      await until(() => monitor.registry.size === 1);
      store.close();
    }));
});

describe('closing', () => {
  test('ends streams, timers and searches; nothing is told afterwards', () =>
    inFolder(async (folder) => {
      const store = createStore(`${folder}/data`);
      lay(store);
      store.close();
      const server = startFake();
      const told: string[] = [];
      const adapter = createOpencode(fakeMachine(folder, [], Date.now()));
      const context = contextFor(`${folder}/data`, { env: { SHADOWOB_CONNECTOR_OPENCODE_URL: server.url } });
      const watch: FeedWatch | undefined = await adapter.watch?.(context, {
        changed: () => told.push('changed'),
        sighted: () => told.push('sighted'),
        lost: () => told.push('lost'),
      });
      await until(() => server.streams === 1 && told.includes('changed'));
      await watch?.close();
      await until(() => server.streams === 0);
      // The last word is that the stream's claims no longer stand.
      expect(told.at(-1)).toBe('lost');
    }));

  test('a mute server does not hold it up', () =>
    inFolder(async (folder) => {
      const server = startFake();
      server.mute = true;
      const adapter = createOpencode(fakeMachine(folder, [], Date.now()));
      const ending = new AbortController();
      const context = contextFor(`${folder}/data`, {
        env: { SHADOWOB_CONNECTOR_OPENCODE_URL: server.url },
        signal: ending.signal,
      });
      const watch = await adapter.watch?.(context, { changed: () => {}, sighted: () => {}, lost: () => {} });
      await until(() => server.asked.length > 0);
      ending.abort();
      await watch?.close();
      expect(server.streams).toBe(0);
    }));
});
