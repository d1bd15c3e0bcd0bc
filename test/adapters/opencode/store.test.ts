import { Database } from 'bun:sqlite';
import { describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { homeCandidates } from '../../../src/adapters/opencode/homes.ts';
import { INDEX_SCOPE, readStore, type StoreRead } from '../../../src/adapters/opencode/store.ts';
import { countFiles, type FileSystemPort, systemFiles } from '../../../src/runtime/files/file-system.ts';
import { memoryIndex } from '../../../src/runtime/store/memory-index.ts';
import type { SessionIndex } from '../../../src/runtime/store/session-index.ts';
import { createStore, inFolder, type Store } from './world.ts';

const AT = 1_796_069_000_000;

function read(
  data: string,
  more: { index?: SessionIndex; files?: FileSystemPort; now?: number } = {},
): StoreRead {
  const [home] = homeCandidates({
    env: { OPENCODE_DATA_DIR: data },
    home: '/nonexistent',
    platform: 'linux',
  });
  return readStore(home, {
    files: more.files ?? systemFiles,
    platform: 'linux',
    now: more.now ?? Date.now() + 60_000,
    ...(more.index ? { index: more.index } : {}),
  });
}

/** A session with one finished turn. */
function addSession(
  store: Store,
  id: string,
  more: { title?: string; parts?: readonly unknown[]; seq?: number; at?: number; finish?: string } = {},
): void {
  const at = more.at ?? AT;
  store.session({
    id,
    directory: '/home/dev2/acme-app',
    title: more.title ?? `Title of ${id}`,
    time_created: at,
    time_updated: at,
  });
  store.message(id, {
    id: `msg_1_${id}`,
    time_created: at + 1,
    time_updated: at + 1,
    data: { role: 'user', time: { created: at + 1 } },
  });
  store.message(id, {
    id: `msg_2_${id}`,
    time_created: at + 2,
    time_updated: at + 90,
    data: {
      role: 'assistant',
      parentID: `msg_1_${id}`,
      time: { created: at + 2, completed: at + 90 },
      finish: more.finish ?? 'stop',
      modelID: 'm',
      providerID: 'p',
    },
  });
  for (const [index, data] of (more.parts ?? [{ type: 'text', text: 'an answer' }]).entries()) {
    store.part(id, {
      id: `prt_${index}_${id}`,
      message_id: `msg_2_${id}`,
      time_created: at + 3,
      time_updated: at + 80,
      data,
    });
  }
  if (more.seq !== undefined) store.sequence(id, more.seq);
}

/** Makes the files look as old as a store that rests. */
function settle(store: Store): void {
  const old = Date.now() / 1_000 - 3_600;
  for (const path of [store.path, `${store.path}-wal`]) if (existsSync(path)) utimesSync(path, old, old);
}

describe('Q1: a WAL database without its sidecars, the usual state at rest', () => {
  test('is read, and nothing is left beside it', () =>
    inFolder((folder) => {
      const store = createStore(folder);
      addSession(store, 'ses_a');
      store.close();
      for (const end of ['-wal', '-shm']) rmSync(`${store.path}${end}`, { force: true });
      const { sessions, problems } = read(folder);
      expect(sessions.map(({ info, turn }) => [info.id, turn?.end?.outcome])).toEqual([
        ['ses_a', 'completed'],
      ]);
      expect(problems).toEqual([]);
      expect([existsSync(`${store.path}-wal`), existsSync(`${store.path}-shm`)]).toEqual([false, false]);
    }));
});

test('R-38 an error reads the same, whether the rows were read or not; what may quote the session is its name only', () =>
  inFolder((folder) => {
    const store = createStore(folder);
    for (const [id, name] of [
      ['ses_a', 'UnknownError'],
      ['ses_b', 'APIError'],
    ] as const) {
      addSession(store, id, { seq: 1 });
      store.message(id, {
        id: `msg_3_${id}`,
        time_created: AT + 100,
        time_updated: AT + 110,
        data: { role: 'assistant', time: { created: AT + 100 }, error: { name, data: { message: 'words' } } },
      });
    }
    settle(store);
    store.close();
    const index = memoryIndex();
    const errors = () =>
      Object.fromEntries(
        read(folder, { index }).sessions.map(({ info, turn }) => [info.id, turn?.end?.error]),
      );
    const first = errors();
    expect(first['ses_a']).toEqual({ name: 'UnknownError' });
    expect(errors()).toEqual(first);
  }));

describe('Q2: a locked database', () => {
  const locked = (folder: string, run: () => void): void => {
    // A rollback journal is the mode in which a writer shuts readers out.
    const holder = new Database(join(folder, 'opencode.db'));
    holder.run('BEGIN EXCLUSIVE');
    try {
      run();
    } finally {
      holder.run('ROLLBACK');
      holder.close();
    }
  };
  const lay = (folder: string): void => {
    const store = createStore(folder);
    addSession(store, 'ses_a');
    store.database.run('PRAGMA journal_mode = DELETE');
    store.close();
  };

  test('gives what was read last, said to be stale', () =>
    inFolder((folder) => {
      lay(folder);
      const index = memoryIndex();
      read(folder, { index, now: Date.now() });
      locked(folder, () => {
        const { sessions, problems } = read(folder, { index, now: Date.now() });
        expect(sessions.map(({ info }) => info.id)).toEqual(['ses_a']);
        expect(problems.map(({ reason }) => reason)).toEqual([
          'another process holds its lock; stale: showing what was read last',
        ]);
      });
      expect(read(folder, { index, now: Date.now() }).problems).toEqual([]);
    }));

  test('without anything read before it says so and lists nothing', () =>
    inFolder((folder) => {
      lay(folder);
      locked(folder, () => {
        const { sessions, problems, source } = read(folder);
        expect({ sessions, source }).toEqual({ sessions: [], source: 'database' });
        expect(problems[0]?.reason).toContain('another process holds its lock');
      });
    }));
});

describe('a corrupt database', () => {
  const spoil = (path: string): void => {
    truncateSync(path, 5_000);
    writeFileSync(path, 'this was a database', { flag: 'r+' });
    for (const end of ['-wal', '-shm']) rmSync(`${path}${end}`, { force: true });
  };

  test('falls back to the older storage files, and says it', () =>
    inFolder((folder) => {
      const store = createStore(folder);
      addSession(store, 'ses_a');
      store.close();
      spoil(store.path);
      const file = join(folder, 'storage', 'session', 'project', 'ses_old.json');
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(
        file,
        JSON.stringify({
          id: 'ses_old',
          title: 'Old one',
          directory: '/x',
          time: { created: AT, updated: AT },
        }),
      );
      const { source, sessions, problems } = read(folder);
      expect(source).toBe('storage');
      expect(sessions.map(({ info, turn }) => [info.title, turn])).toEqual([['Old one', undefined]]);
      expect(problems[0]?.reason).toMatch(/not a database.*showing what the older storage files list/);
    }));

  test('without such files shows what was read last, as stale', () =>
    inFolder((folder) => {
      const store = createStore(folder);
      addSession(store, 'ses_a');
      store.close();
      const index = memoryIndex();
      read(folder, { index });
      spoil(store.path);
      const { sessions, problems } = read(folder, { index });
      expect(sessions.map(({ info }) => info.id)).toEqual(['ses_a']);
      expect(problems[0]?.reason).toContain('stale');
    }));
});

describe('the index', () => {
  test('R-27: an unchanged database is not opened again', () =>
    inFolder((folder) => {
      const store = createStore(folder);
      addSession(store, 'ses_a');
      settle(store);
      const index = memoryIndex();
      const first = read(folder, { index });
      const { files, work } = countFiles();
      const second = read(folder, { index, files });
      expect(work.opened).toBe(0);
      expect(second).toEqual(first);
      store.close();
    }));

  test('a write to the log alone is seen', () =>
    inFolder((folder) => {
      const store = createStore(folder);
      addSession(store, 'ses_a', { seq: 1 });
      settle(store);
      const index = memoryIndex();
      read(folder, { index });
      addSession(store, 'ses_b', { seq: 1 });
      expect(read(folder, { index }).sessions.map(({ info }) => info.id)).toEqual(['ses_a', 'ses_b']);
      store.close();
    }));

  test('of a changed database only the sessions whose log has grown are read', () =>
    inFolder((folder) => {
      const store = createStore(folder);
      for (const id of ['ses_a', 'ses_b']) addSession(store, id, { seq: 1 });
      const index = memoryIndex();
      read(folder, { index });
      // Were it read again, the turn of the first one would be another.
      const undone = (id: string): void => {
        const row = { id: `msg_2_${id}`, time_created: AT + 2, time_updated: AT + 90 };
        store.message(id, {
          ...row,
          data: { role: 'assistant', time: { created: AT + 2, completed: AT + 90 }, finish: 'length' },
        });
      };
      undone('ses_a');
      undone('ses_b');
      store.sequence('ses_b', 2);
      const outcomes = read(folder, { index }).sessions.map(({ turn }) => turn?.end?.outcome);
      expect(outcomes).toEqual(['completed', 'limited']);
      store.close();
    }));

  test('a removed session is forgotten', () =>
    inFolder((folder) => {
      const store = createStore(folder);
      for (const id of ['ses_a', 'ses_b']) addSession(store, id);
      const index = memoryIndex();
      read(folder, { index });
      store.database.run("DELETE FROM session WHERE id = 'ses_a'");
      expect(read(folder, { index }).sessions.map(({ info }) => info.id)).toEqual(['ses_b']);
      expect([...index.load(INDEX_SCOPE).keys()].filter((path) => path.includes('#'))).toHaveLength(1);
      store.close();
    }));

  test('a database that is being written is opened again, though its stamp may look the same', () =>
    inFolder((folder) => {
      const store = createStore(folder);
      addSession(store, 'ses_a');
      const index = memoryIndex();
      read(folder, { index, now: Date.now() });
      const { files, work } = countFiles();
      read(folder, { index, files, now: Date.now() });
      expect(work.opened).toBeGreaterThan(0);
      store.close();
    }));

  test('R-38: it holds titles and states and no other content', () =>
    inFolder((folder) => {
      const CANARY = 'canary-of-the-user';
      const store = createStore(folder);
      addSession(store, 'ses_a', { title: 'A fine title', parts: [{ type: 'text', text: CANARY }] });
      const row = (data: unknown) => ({
        id: 'msg_3_ses_b',
        time_created: AT + 5,
        time_updated: AT + 6,
        data,
      });
      addSession(store, 'ses_b');
      store.message('ses_b', row({ role: 'assistant', time: { created: AT + 5 } }));
      const tool = {
        type: 'tool',
        tool: 'bash',
        callID: 'c',
        state: { status: 'running', input: { command: CANARY } },
      };
      store.part('ses_b', {
        id: 'prt_9',
        message_id: 'msg_3_ses_b',
        time_created: AT,
        time_updated: AT,
        data: tool,
      });
      addSession(store, 'ses_c');
      const failure = { name: 'UnknownError', data: { message: `Failed query: insert … params: ${CANARY}` } };
      store.message('ses_c', {
        ...row({ role: 'assistant', error: failure, time: { created: AT, completed: AT + 5 } }),
        id: 'msg_4',
      });
      store.database.run('INSERT INTO account VALUES (?, ?, ?, ?, ?, 0, 0, 0)', [
        'a',
        CANARY,
        CANARY,
        CANARY,
        CANARY,
      ]);
      store.database.run(
        'INSERT INTO credential (id, label, value, time_created, time_updated) VALUES (?, ?, ?, 0, 0)',
        ['c', CANARY, CANARY],
      );
      const index = memoryIndex();
      read(folder, { index });
      const written = [...index.load(INDEX_SCOPE).values()].map(({ value }) => value).join('\n');
      expect(written).toContain('A fine title');
      expect(written).not.toContain(CANARY);
      store.close();
    }));
});

describe('another schema', () => {
  test('tables with tokens are never touched: without them the list is the same', () =>
    inFolder((folder) => {
      const store = createStore(folder);
      addSession(store, 'ses_a');
      for (const table of [
        'account',
        'account_state',
        'control_account',
        'credential',
        'session_share',
        'permission',
      ]) {
        store.database.run(`DROP TABLE ${table}`);
      }
      expect(read(folder).sessions).toHaveLength(1);
      store.close();
    }));

  test('columns and tables that another release lacks are done without', () =>
    inFolder((folder) => {
      const database = new Database(join(folder, 'opencode.db'), { create: true });
      database.run(
        'CREATE TABLE session (id TEXT, directory TEXT, title TEXT, time_created INT, time_updated INT)',
      );
      database.run(
        'CREATE TABLE message (id TEXT, session_id TEXT, time_created INT, time_updated INT, data TEXT)',
      );
      database.run(
        'CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, time_created INT, time_updated INT, data TEXT)',
      );
      database.run("INSERT INTO session VALUES ('ses_a', '/x', 'Plain', 1, 2)");
      database.close();
      const { sessions, problems } = read(folder);
      expect(sessions.map(({ info }) => info)).toEqual([
        { id: 'ses_a', title: 'Plain', directory: '/x', createdAt: 1, updatedAt: 2 },
      ]);
      expect(problems).toEqual([]);
    }));

  test('a database that is none of OpenCode’s is empty, not an error', () =>
    inFolder((folder) => {
      const database = new Database(join(folder, 'opencode.db'), { create: true });
      database.run('CREATE TABLE thing (x)');
      database.close();
      expect(read(folder)).toEqual({ source: 'database', sessions: [], problems: [] });
    }));
});

describe('hostile rows', () => {
  test('invalid JSON in data columns is skipped and counted; the rest stands', () =>
    inFolder((folder) => {
      const store = createStore(folder);
      addSession(store, 'ses_a', {
        finish: 'tool-calls',
        parts: [{ type: 'text', text: 'fine' }, '{"type":"text","te'],
      });
      addSession(store, 'ses_b');
      store.message('ses_b', {
        id: 'msg_9',
        time_created: AT + 100,
        time_updated: AT + 100,
        data: 'not json',
      });
      const { sessions, problems } = read(folder);
      expect(sessions.map(({ turn }) => turn?.end?.outcome)).toEqual(['stopped', 'completed']);
      expect(problems.map(({ skipped }) => skipped)).toEqual([2]);
      store.close();
    }));

  test('titles come out clean: escape sequences, bidi, newlines, secrets, 10,000 characters (O4)', () =>
    inFolder((folder) => {
      const store = createStore(folder);
      addSession(store, 'ses_a', { title: '\u001b[31mred\u001b[0m \u202Eevil\r\nnext\u0000' });
      addSession(store, 'ses_b', { title: `token sk-${'a1B2c3'.repeat(6)}` });
      addSession(store, 'ses_c', { title: '長'.repeat(10_000) });
      const titles = read(folder).sessions.map(({ info }) => info.title ?? '');
      expect(titles[0]).toBe('red evil next');
      expect(titles[1]).not.toContain('a1B2c3');
      expect([...(titles[2] ?? '')]).toHaveLength(100);
      store.close();
    }));

  test('a default title gives way to the first words that a person typed', () =>
    inFolder((folder) => {
      const store = createStore(folder);
      addSession(store, 'ses_a', { title: 'New session - 2026-11-30T20:07:27.013Z' });
      const at = { message_id: 'msg_1_ses_a', time_created: AT, time_updated: AT };
      store.part('ses_a', {
        ...at,
        id: 'prt_a',
        data: { type: 'text', synthetic: true, text: 'The following tool was executed' },
      });
      store.part('ses_a', { ...at, id: 'prt_b', data: { type: 'text', text: 'fix the\nparser' } });
      addSession(store, 'ses_b', { title: 'New session - 2026-11-30T20:07:27.013Z' });
      expect(read(folder).sessions.map(({ info }) => info.title)).toEqual(['fix the parser', undefined]);
      store.close();
    }));

  test('a part of 5 MB is known by its head, and never loaded whole', () =>
    inFolder((folder) => {
      const store = createStore(folder);
      addSession(store, 'ses_a');
      store.message('ses_a', {
        id: 'msg_3',
        time_created: AT + 5,
        time_updated: AT + 5,
        data: { role: 'assistant', time: { created: AT + 5 } },
      });
      const big = {
        type: 'tool',
        tool: 'write',
        callID: 'c',
        state: { status: 'running', input: { content: 'x'.repeat(5_000_000) } },
      };
      store.part('ses_a', {
        id: 'prt_z',
        message_id: 'msg_3',
        time_created: AT + 6,
        time_updated: AT + 7,
        data: big,
      });
      const [session] = read(folder).sessions;
      expect(session?.turn?.doing?.call.name).toBe('write');
      expect(session?.activityAt).toBe(AT + 7);
      expect(JSON.stringify(session).length).toBeLessThan(2_000);
      store.close();
    }));

  test('a user message with a huge diff in its summary is read by its named fields', () =>
    inFolder((folder) => {
      const store = createStore(folder);
      addSession(store, 'ses_a');
      const data = {
        role: 'user',
        summary: { diffs: [{ before: 'x'.repeat(2_000_000) }] },
        time: { created: AT + 200 },
      };
      store.message('ses_a', { id: 'msg_9', time_created: AT + 200, time_updated: AT + 200, data });
      const [session] = read(folder).sessions;
      expect(session?.turn).toMatchObject({ openedAt: AT + 200, unanswered: true });
      store.close();
    }));
});

describe('a writer beside us', () => {
  test('every read is one moment of the database, whole', () =>
    inFolder((folder) => {
      const store = createStore(folder);
      const index = memoryIndex();
      for (let turn = 0; turn < 40; turn += 1) {
        store.database.transaction(() => addSession(store, `ses_${turn}`, { seq: 1 }))();
        const { sessions, problems } = read(folder, { index });
        expect(problems).toEqual([]);
        expect(sessions).toHaveLength(turn + 1);
        expect(sessions.every(({ turn: newest }) => newest?.end?.outcome === 'completed')).toBe(true);
      }
      store.close();
    }));

  test('a process that writes all the time does not shut us out', () =>
    inFolder(async (folder) => {
      const store = createStore(folder);
      addSession(store, 'ses_a');
      store.close();
      const script = `
        const { Database } = require('bun:sqlite');
        const database = new Database(${JSON.stringify(store.path)});
        database.run('PRAGMA journal_mode = WAL');
        console.log('ready');
        const put = database.query("INSERT INTO message VALUES (?, 'ses_b', 1, 1, '{}')");
        let n = 0;
        setInterval(() => { for (let i = 0; i < 50; i += 1) put.run('msg_w' + n++); }, 1);`;
      const writer = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe', stderr: 'inherit' });
      try {
        await writer.stdout.getReader().read();
        for (let look = 0; look < 20; look += 1) {
          const { sessions, problems } = read(folder);
          expect({ ids: sessions.map(({ info }) => info.id), problems }).toEqual({
            ids: ['ses_a'],
            problems: [],
          });
        }
      } finally {
        writer.kill('SIGKILL');
        await writer.exited;
      }
    }));
});

describe('the layout before the database', () => {
  test('lists session files and the names of diffs, with an unknown state', () =>
    inFolder((folder) => {
      const put = (path: string, content: string): void => {
        mkdirSync(dirname(join(folder, path)), { recursive: true });
        writeFileSync(join(folder, path), content);
      };
      put(
        'storage/session/p1/ses_a.json',
        JSON.stringify({ id: 'ses_a', title: 'First', directory: '/x', time: { created: 5, updated: 9 } }),
      );
      put('storage/session/p1/ses_bad.json', '{"id":');
      put('storage/session/p1/notes.txt', 'x');
      put('storage/session_diff/ses_a.json', '[]');
      put('storage/session_diff/ses_c.json', '[1,2]');
      put('storage/session_diff/../../escape.json', '{}');
      const { source, sessions, problems } = read(folder);
      expect(source).toBe('storage');
      expect(sessions.map(({ info }) => info.id)).toEqual(['ses_a', 'ses_c']);
      expect(sessions.every(({ turn }) => turn === undefined)).toBe(true);
      expect(problems.map(({ skipped }) => skipped)).toEqual([1]);
    }));

  test('nothing at all is no store', () =>
    inFolder((folder) => {
      expect(read(folder)).toEqual({ source: 'none', sessions: [], problems: [] });
    }));
});
