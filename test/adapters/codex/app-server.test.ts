import { describe, expect, test } from 'bun:test';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { connectServer, readServer } from '../../../src/adapters/codex/app-server.ts';
import { codexHome } from '../../../src/adapters/codex/homes.ts';
import { findDaemonUnlocked } from '../../../src/adapters/codex/server-find.ts';
import {
  applyNotification,
  EMPTY_VIEW,
  type ServerView,
  serverClaim,
  serverSightings,
  statusOf,
} from '../../../src/adapters/codex/server-view.ts';
import { FakeServer, SERVER_PID, showServer } from './fake-server.ts';
import { finished, ID, inHome, Lines, OTHER_ID, sessionsOf, stateOf, T0, type TestHome } from './home.ts';
import { loadRecording } from './recording.ts';

const now = () => T0 + 5_000;
const LISTENING = ['initialize', 'initialized', 'thread/loaded/list', 'thread/read'];
const active = (...activeFlags: string[]) => ({ type: 'active', activeFlags });

async function withServer(
  behaviour: ConstructorParameters<typeof FakeServer>[1],
  use: (home: TestHome, server: FakeServer, path: string) => Promise<void>,
): Promise<void> {
  await inHome(async (home) => {
    const path = home.path('s.sock');
    const server = new FakeServer(path, behaviour);
    try {
      await use(home, server, path);
    } finally {
      await server.stop();
    }
  });
}

describe('statuses (CX §6, S-763)', () => {
  const thread = { id: ID, at: T0, ephemeral: false };
  const says = (status: unknown) => {
    const parsed = statusOf(status as Record<string, unknown>);
    return parsed && serverClaim({ ...thread, status: parsed }, 'x');
  };

  test('each is an exact claim of a live owner', () => {
    expect(says(active())).toMatchObject({
      says: { kind: 'working', doing: 'running' },
      confidence: 'exact',
      life: 'alive',
    });
    expect(says(active('waitingOnApproval'))).toMatchObject({
      says: { kind: 'waiting', for: 'approval', on: 'tool' },
    });
    expect(says(active('waitingOnUserInput'))).toMatchObject({
      says: { kind: 'waiting', for: 'input', on: 'question' },
    });
    expect(says(active('waitingOnUserInput', 'waitingOnApproval'))?.says).toMatchObject({ for: 'approval' });
    expect(says({ type: 'systemError' })?.says).toEqual({ kind: 'rested', outcome: 'failed' });
    expect(says({ type: 'idle' })?.says).toEqual({ kind: 'idle' });
  });

  test('R-13 notLoaded is no evidence: it only withdraws what was said before', () => {
    const claim = says({ type: 'notLoaded' });
    expect(claim?.says).toEqual({ kind: 'silent' });
    expect(claim?.life).toBeUndefined();
  });

  test('an unknown status or method changes nothing', () => {
    expect(statusOf({ type: 'hibernating' })).toBeUndefined();
    const message = {
      method: 'thread/status/changed',
      params: { threadId: ID, status: { type: 'hibernating' } },
    };
    expect(applyNotification(EMPTY_VIEW, message, T0)).toBe(EMPTY_VIEW);
    expect(applyNotification(EMPTY_VIEW, { method: 'item/completed', params: {} }, T0)).toBe(EMPTY_VIEW);
  });

  test('the whole recorded conversation of app-server-stdio gives the recorded statuses', () => {
    const recording = loadRecording('app-server-stdio');
    const seen: string[] = [];
    recording.server.reduce((view: ServerView, message) => {
      const next = applyNotification(view, message.body, message.at);
      if (message.body['method'] !== 'thread/status/changed' || next === view) return next;
      const params = message.body['params'] as { threadId: string };
      const claim = serverClaim(next.get(params.threadId) ?? { ...thread, status: { kind: 'idle' } }, 'x');
      seen.push(claim.detail.replace('app-server status ', ''));
      return next;
    }, EMPTY_VIEW);
    const shown = recording.table
      .filter((row) => row.what.startsWith('app-server status'))
      .map((row) => row.what.replace('app-server status ', ''));
    const words: Record<string, string> = {
      idle: 'idle',
      'active []': 'active []',
      "active ['waitingOnApproval']": 'active [waitingOnApproval]',
      systemError: 'error',
      notLoaded: 'not loaded in this app-server (R-13)',
    };
    expect(seen.slice(0, 20)).toEqual(shown.slice(0, 20).map((one) => words[one] ?? one));
    expect(shown.every((one) => seen.includes(words[one] ?? one))).toBe(true);
  });
});

describe('a passive client over a real socket', () => {
  test('asks what is loaded, and nothing else; ephemeral helpers are not listed', () =>
    withServer({}, async (_home, server, path) => {
      server.threads.set(ID, {
        id: ID,
        status: active('waitingOnApproval'),
        ephemeral: false,
        name: 'Install',
        cwd: '/w',
      });
      server.threads.set(OTHER_ID, { id: OTHER_ID, status: { type: 'idle' }, ephemeral: true });
      const read = await readServer(path, { now });
      if (read.kind !== 'read') throw new Error(read.reason);
      const [sighting, ...rest] = serverSightings(read.view, 'x');
      expect(rest).toEqual([]);
      expect(sighting?.facts).toEqual({ title: 'Install', workDir: '/w' });
      expect([...server.methods].sort()).toEqual(LISTENING);
      const reads = server.received.filter((message) => message['method'] === 'thread/read');
      expect(reads.map((message) => message['params'])).toEqual([{ threadId: ID }, { threadId: OTHER_ID }]);
      const hello = server.received[0]?.['params'] as {
        clientInfo: { name: string };
        capabilities?: unknown;
      };
      expect(hello.clientInfo.name).toBe('shadowob-connector');
      expect(hello.capabilities).toBeUndefined();
      await server.until(() => server.open === 0);
    }));

  test('R-22 requests of the server’s stay unanswered (tui-subagent-v2-approval)', () =>
    withServer({}, async (_home, server, path) => {
      server.threads.set(ID, { id: ID, status: active() });
      const changes: ServerView[] = [];
      const connection = await connectServer(
        path,
        { changed: (view) => changes.push(view), closed() {} },
        { now },
      );
      const before = server.received.length;
      const approval = loadRecording('tui-subagent-v2-approval').server.find(
        (one) => one.kind === 'server-request',
      );
      server.send(approval?.body ?? {});
      server.status(ID, active('waitingOnApproval'), T0 + 9);
      await connection.sync();
      const answers = server.received.slice(before).filter((message) => message['method'] === undefined);
      expect(approval).toBeDefined();
      expect(answers).toEqual([]);
      expect(changes.at(-1)?.get(ID)).toMatchObject({ at: T0 + 9, status: { approval: true } });
      connection.close();
    }));

  test('a status of a thread that nobody announced: it is asked who it is', () =>
    withServer({}, async (_home, server, path) => {
      const changes: ServerView[] = [];
      const connection = await connectServer(
        path,
        { changed: (view) => changes.push(view), closed() {} },
        { now },
      );
      server.threads.set(OTHER_ID, { parentThreadId: ID, ephemeral: false });
      server.status(OTHER_ID, active());
      await server.until(() => server.methods.has('thread/read'));
      await connection.sync();
      expect(connection.view.get(OTHER_ID)).toMatchObject({ parentId: ID, status: { kind: 'active' } });
      connection.close();
    }));

  test('a poll that repeats a status keeps its time; a thread that is no longer loaded is dropped', () =>
    withServer({}, async (_home, server, path) => {
      server.threads.set(ID, { id: ID, status: { type: 'idle' } });
      let time = T0;
      const connection = await connectServer(path, { changed() {}, closed() {} }, { now: () => time });
      time = T0 + 60_000;
      await connection.sync();
      expect(connection.view.get(ID)?.at).toBe(T0);
      server.threads.delete(ID);
      await connection.sync();
      expect(connection.view.size).toBe(0);
      connection.close();
    }));

  test('content of other threads, garbage and huge messages are passed over', () =>
    withServer({}, async (_home, server, path) => {
      server.threads.set(ID, { id: ID, status: active() });
      const connection = await connectServer(path, { changed() {}, closed() {} }, { now });
      server.send({ method: 'item/completed', params: { item: { text: 'x'.repeat(5_000_000) } } });
      server.send({ id: 999, result: {} });
      server.send({ params: 1 });
      server.status(ID, { type: 'idle' });
      await connection.sync();
      expect(connection.view.get(ID)?.status.kind).toBe('idle');
      connection.close();
    }));
});

describe('bounded, whatever the socket does', () => {
  const soon = { now, answerMs: 50 };

  test('it accepts and never answers the upgrade', () =>
    inHome(async (home) => {
      const mute = createServer((socket) => socket.on('error', () => {}));
      await new Promise<void>((resolve) => mute.listen(home.path('mute.sock'), resolve));
      try {
        expect(await readServer(home.path('mute.sock'), soon)).toMatchObject({ kind: 'failed' });
      } finally {
        mute.close();
      }
    }));

  for (const method of ['initialize', 'thread/loaded/list', 'thread/read']) {
    test(`it never answers ${method}`, () =>
      withServer({ silentOn: new Set([method]) }, async (_home, server, path) => {
        server.threads.set(ID, { id: ID, status: active() });
        expect((await readServer(path, soon)).kind).toBe('failed');
        await server.until(() => server.open === 0);
      }));
  }

  test('a dangling link, nothing at all, and a regular file', () =>
    inHome(async (home) => {
      symlinkSync(home.path('gone'), home.path('dangling.sock'));
      home.write('file.sock', 'no socket');
      for (const name of ['dangling.sock', 'nothing.sock', 'file.sock']) {
        expect((await readServer(home.path(name), soon)).kind).toBe('failed');
      }
    }));
});

describe('which server is asked (R-22)', () => {
  test('one that holds a thread’s lock: its status decides, for the thread and for the list', () =>
    withServer({}, async (home, server, path) => {
      home.rollout(new Lines().meta().started().prompt('Go').call('exec_command', { cmd: 'touch /x' }));
      server.threads.set(ID, { id: ID, status: active('waitingOnApproval') });
      showServer(home, path, [ID]);
      const [session] = sessionsOf(await home.scan(), home.now);
      expect(session && stateOf(session)).toBe('waiting_for_approval');
      expect(session?.shown.evidence).toMatchObject({ source: 'codex.app-server', confidence: 'exact' });
      expect(session?.shown.state).toMatchObject({ tool: { command: 'touch /x' } });
      expect(session?.facts.pids).toEqual([SERVER_PID]);
    }));

  test('never one that holds none: it may be waiting for its first client, whom it would name originator', () =>
    withServer({}, async (home, server, path) => {
      home.rollout(finished('Go'));
      server.threads.set(ID, { id: ID, status: { type: 'idle' } });
      showServer(home, path, []);
      await home.scan();
      expect(server.connections).toBe(0);
    }));

  test('nor a socket of a process that is no app-server, nor at all where a watch holds it', () =>
    withServer({}, async (home, server, path) => {
      server.threads.set(ID, { id: ID, status: { type: 'idle' } });
      showServer(home, path, [ID], 'codex\0exec\0');
      await home.scan();
      showServer(home, path, [ID]);
      await home.scan({}, { withoutLive: true });
      expect(server.connections).toBe(0);
    }));

  test('one that never answers costs a bounded time and a problem; the rows are all there', () =>
    withServer({ silentOn: new Set(['initialize']) }, async (home, _server, path) => {
      home.rollout(finished('Go'));
      showServer(home, path, [ID]);
      const scan = await home.scan();
      expect(scan.problems).toEqual([
        {
          subject: `app-server ${SERVER_PID}`,
          reason: 'the app-server does not answer initialize in time',
          skipped: 0,
        },
      ]);
      expect(sessionsOf(scan, home.now).map(stateOf)).toEqual(['completed']);
    }));

  test('a thread that only its server knows is a row (opened, never prompted)', () =>
    withServer({}, async (home, server, path) => {
      server.threads.set(ID, {
        id: ID,
        status: { type: 'idle' },
        cwd: '/home/dev/acme-app',
        model: 'gpt-5.5',
      });
      showServer(home, path, [ID]);
      const session = await home.one();
      expect([stateOf(session), session.shown.life]).toEqual(['idle', 'alive']);
      expect(session.facts).toMatchObject({ workDir: '/home/dev/acme-app', model: 'gpt-5.5' });
    }));

  test('headless no more: an exec thread that a server has now (tui-resume-of-exec-session)', () =>
    withServer({}, async (home, server, path) => {
      home.rollout(new Lines().meta(ID, { source: 'exec' }).started().complete());
      server.threads.set(ID, { id: ID, status: { type: 'idle' } });
      showServer(home, path, [ID]);
      expect((await home.one()).facts.headless).toBe(false);
    }));
});

describe('where locks can’t be read', () => {
  const daemon = (home: TestHome, processStartTime: string) => {
    mkdirSync(home.path('app-server-control'));
    home.write('app-server-daemon/daemon.pid', JSON.stringify({ pid: SERVER_PID, processStartTime }));
    symlinkSync(home.path('s.sock'), home.path('app-server-control/app-server-control.sock'));
    writeFileSync(home.path('s.sock'), '');
    return codexHome(home.context({ platform: 'darwin' }));
  };
  const host = (home: TestHome) => ({ ...home.host, platform: 'darwin' as const });

  test('the daemon is asked once a rollout has moved since it started', () =>
    inHome(async (home) => {
      const places = daemon(home, 'Mon Nov 30 12:00:00 2026');
      const startedAt = Date.parse('Mon Nov 30 12:00:00 2026');
      expect(findDaemonUnlocked(places, startedAt + 1_000, host(home))).toMatchObject({ pid: SERVER_PID });
      expect(findDaemonUnlocked(places, startedAt - 1_000, host(home))).toBeUndefined();
      expect(findDaemonUnlocked(places, undefined, host(home))).toBeUndefined();
    }));

  test('not without a live pid, a readable start, or a socket; on Windows never', () =>
    inHome(async (home) => {
      const places = daemon(home, 'Mon Nov 30 12:00:00 2026');
      const gone = Object.assign(new Error('gone'), { code: 'ESRCH' });
      const dead = {
        ...host(home),
        kill: () => {
          throw gone;
        },
      };
      const late = Date.parse('Mon Nov 30 13:00:00 2026');
      expect(findDaemonUnlocked(places, late, dead)).toBeUndefined();
      expect(findDaemonUnlocked(places, late, { ...home.host, platform: 'win32' })).toBeUndefined();
      expect(
        findDaemonUnlocked({ ...places, socket: home.path('dangling') }, late, host(home)),
      ).toBeUndefined();
      home.write('app-server-daemon/daemon.pid', '{"pid": 1');
      expect(findDaemonUnlocked(places, late, host(home))).toBeUndefined();
    }));
});
