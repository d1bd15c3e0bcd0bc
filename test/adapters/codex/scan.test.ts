import { Database } from 'bun:sqlite';
import { describe, expect, test } from 'bun:test';
import { chmodSync, copyFileSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { zstdCompressSync } from 'node:zlib';
import { codexHome } from '../../../src/adapters/codex/homes.ts';
import { countFiles, systemFiles } from '../../../src/runtime/files/file-system.ts';
import { memoryIndex } from '../../../src/runtime/store/memory-index.ts';
import { finished, ID, inHome, Lines, OTHER_ID, stateOf, T0, type TestHome } from './home.ts';
import { RECORDINGS } from './recording.ts';

const uuid = (n: number) => `01a22e12-e42f-7351-a505-${n.toString(16).padStart(12, '0')}`;

describe('homes', () => {
  const of = (env: Record<string, string>, platform: NodeJS.Platform = 'linux') =>
    codexHome({ env, home: platform === 'win32' ? 'C:\\Users\\dev' : '/home/dev', platform }).sessions;

  test('S-620 CODEX_HOME if non-empty, else ~/.codex', () => {
    expect(of({})).toBe('/home/dev/.codex/sessions');
    expect(of({ CODEX_HOME: '' })).toBe('/home/dev/.codex/sessions');
    expect(of({ CODEX_HOME: '/srv/codex' })).toBe('/srv/codex/sessions');
    expect(of({}, 'win32')).toBe('C:\\Users\\dev\\.codex\\sessions');
  });

  test('no Codex here: missing, and nothing invented', () =>
    inHome(async (home) => {
      const scan = await home.scan({ env: { CODEX_HOME: home.path('nowhere') } });
      expect(scan.instances[0]).toMatchObject({ instanceId: 'transcripts', status: 'missing' });
      expect(scan.sightings).toEqual([]);
      expect(scan.problems).toEqual([]);
    }));

  test('a CODEX_HOME that is a link is followed, links below it are not (S-906)', () =>
    inHome(async (home) => {
      home.rollout(finished('Real'));
      symlinkSync(home.root, join(home.folder, 'link'));
      mkdirSync(join(home.folder, 'elsewhere'));
      writeFileSync(
        join(home.folder, 'elsewhere', `rollout-2026-11-29T12-00-00-${OTHER_ID}.jsonl`),
        finished('No').text,
      );
      mkdirSync(home.path('sessions/2026/11'), { recursive: true });
      symlinkSync(join(home.folder, 'elsewhere'), home.path('sessions/2026/11/29'));
      const sessions = await home.sessions({ env: { CODEX_HOME: join(home.folder, 'link') } });
      expect(sessions.map((one) => one.facts.title)).toEqual(['Real']);
    }));
});

describe('rollouts are found by id, not by date', () => {
  test('an old thread that is appended to in its old folder is active', () =>
    inHome(async (home) => {
      const lines = finished('Long ago');
      home.rollout(new Lines(T0 + 30_000).meta().started().prompt('Again').text, OTHER_ID);
      home.rollout(`${lines.text}${new Lines(T0 + 40_000).started().text}`, ID, '2024/01/05');
      const session = (await home.sessions()).find((one) => one.ref.sessionId === ID);
      expect(session && stateOf(session)).toBe('running');
      expect(session?.facts).toMatchObject({ title: 'Long ago', lastActivityAt: T0 + 40_000 });
    }));

  test('archived ones are listed, flat and marked; a move under way makes no second row', () =>
    inHome(async (home) => {
      const path = home.rollout(finished('Old'));
      const name = path.split('/').at(-1) ?? '';
      mkdirSync(home.path('archived_sessions'));
      copyFileSync(path, home.path(`archived_sessions/${name}`));
      expect((await home.one()).facts.archived).toBe(false);
      renameSync(path, home.path('moved'));
      expect((await home.one()).facts).toMatchObject({ archived: true, title: 'Old' });
    }));

  test('a .jsonl.zst is read like a .jsonl (compressed-rollout)', () =>
    inHome(async (home) => {
      const name = `rollout-2026-11-30T20-08-39-${ID}.jsonl.zst`;
      mkdirSync(home.path('sessions/2026/11/30'), { recursive: true });
      copyFileSync(join(RECORDINGS, 'compressed-rollout', name), home.path(`sessions/2026/11/30/${name}`));
      const session = await home.one();
      expect(stateOf(session)).toBe('completed');
      expect(session.facts).toMatchObject({ title: 'What does add do?', model: 'gpt-5.5', headless: true });
      home.rollout(finished('Unpacked'), ID);
      expect((await home.one()).facts.title).toBe('Unpacked');
    }));

  test('a damaged or lying .zst is a problem of its own', () =>
    inHome(async (home) => {
      home.rollout(finished('Fine'), OTHER_ID);
      home.write(`sessions/2026/11/30/rollout-2026-11-30T12-00-00-${ID}.jsonl.zst`, 'not zstd');
      const bomb = zstdCompressSync(Buffer.alloc(200 * 1024 * 1024));
      home.write(`sessions/2026/11/30/rollout-2026-11-30T12-00-00-${uuid(1)}.jsonl.zst`, bomb);
      const scan = await home.scan();
      expect(scan.problems.map((problem) => problem.reason)).toEqual([
        'it cannot be unpacked',
        'it cannot be unpacked',
      ]);
      expect(scan.sightings.length).toBe(3);
    }));
});

describe('R-27 an unchanged file is never opened', () => {
  async function work(home: TestHome, index: ReturnType<typeof memoryIndex>) {
    const counting = countFiles();
    const scan = await home.scan({ index, files: counting.files });
    return { opened: counting.work.opened, scan };
  }

  test('0 rollouts and databases are opened the second time, and the rows are the same', () =>
    inHome(async (home) => {
      for (let n = 0; n < 50; n += 1)
        home.rollout(finished(`Prompt ${n}`, uuid(n)), uuid(n), `2026/11/${10 + (n % 20)}`);
      home.rollout(new Lines().meta(OTHER_ID).started().call('exec_command', { cmd: 'ls' }), OTHER_ID);
      home.write('session_index.jsonl', `{"id":"${uuid(1)}","thread_name":"Named"}\n`);
      stateDatabase(home, [{ id: uuid(2), name: null, first_user_message: 'From the database' }]);
      mkdirSync(home.path('thread-writer-locks'));
      const index = memoryIndex();
      const first = await work(home, index);
      const second = await work(home, index);
      expect(first.opened).toBeGreaterThan(50);
      expect(second.opened).toBe(0);
      expect(second.scan.sightings.map((one) => one.facts)).toEqual(
        first.scan.sightings.map((one) => one.facts),
      );
    }));

  test('one that changed is opened alone', () =>
    inHome(async (home) => {
      const index = memoryIndex();
      for (let n = 0; n < 20; n += 1) home.rollout(finished(`Prompt ${n}`, uuid(n)), uuid(n));
      await work(home, index);
      home.rollout(finished('Changed', uuid(3)).started(), uuid(3));
      expect((await work(home, index)).opened).toBe(1);
    }));

  test('R-38 the index holds no command and no error text, and forgets what is gone', () =>
    inHome(async (home) => {
      const index = memoryIndex();
      home.rollout(
        new Lines().meta().started().prompt('Go').call('exec_command', { cmd: 'rm -rf secret-folder' }),
      );
      const error = { message: 'the private details', codex_error_info: 'other' };
      const failed = home.rollout(new Lines().meta(OTHER_ID).started().complete({ error }), OTHER_ID);
      await home.scan({ index });
      const stored = [...index.load('codex-rollouts/1').values()].map((entry) => entry.value).join('\n');
      expect(stored).not.toContain('secret-folder');
      expect(stored).not.toContain('private details');
      expect(stored).toContain('exec_command');
      renameSync(failed, home.path('away'));
      await home.scan({ index });
      expect(index.load('codex-rollouts/1').size).toBe(1);
    }));

  test('R-38 an error reads the same, whether its file was opened or not', () =>
    inHome(async (home) => {
      const index = memoryIndex();
      const error = { message: 'the private details', codex_error_info: 'usage_limit_exceeded' };
      home.rollout(new Lines().meta().started().complete({ error }));
      const looks = [await home.one({ index }), await home.one({ index })];
      expect(looks.map(({ shown }) => shown.error)).toEqual([looks[1]?.shown.error, looks[1]?.shown.error]);
      expect(looks[0]?.shown.error).toBeString();
    }));

  test('where its owner may live, the command of an open call is read again', () =>
    inHome(async (home) => {
      const index = memoryIndex();
      home.rollout(new Lines().meta().started().call('exec_command', { cmd: 'pnpm test' }));
      for (let look = 0; look < 2; look += 1) {
        expect((await home.one({ index })).shown.state).toMatchObject({ tool: { command: 'pnpm test' } });
      }
    }));

  test('a broken value in the index means that the file is read', () =>
    inHome(async (home) => {
      const index = memoryIndex();
      const path = home.rollout(finished('Go'));
      const { size, mtimeMs, ino, dev } = systemFiles.stat(path);
      for (const value of ['{', 'null', '{"turn":1}']) {
        index.stage('codex-rollouts/1', path, { stamp: { size, mtimeMs, ino, dev }, value });
        expect((await home.one({ index })).facts.title).toBe('Go');
      }
    }));
});

describe('titles', () => {
  test('the last line of an id in session_index.jsonl wins over the prompt (tui-rename)', () =>
    inHome(async (home) => {
      home.rollout(finished('The prompt'));
      const names = ['Generated', 'Renamed \u001b[31mby hand', ''].map((name) => ({
        id: ID,
        thread_name: name,
      }));
      home.write(
        'session_index.jsonl',
        `${names.map((line) => JSON.stringify(line)).join('\n')}\n{"id":"${ID}","thr`,
      );
      expect((await home.one()).facts.title).toBe('Renamed by hand');
    }));

  test('a name in the state database; of several databases the highest number', () =>
    inHome(async (home) => {
      home.rollout(finished('The prompt'));
      stateDatabase(home, [{ id: ID, name: 'Old schema' }], 'state_5.sqlite');
      stateDatabase(home, [{ id: ID, name: 'New schema' }], 'state_12.sqlite');
      expect((await home.one()).facts.title).toBe('New schema');
    }));

  test('X1 the database’s prompt is no injected context either', () =>
    inHome(async (home) => {
      home.rollout(finished('The prompt'));
      stateDatabase(home, [{ id: ID, first_user_message: '<environment_context>', preview: 'From preview' }]);
      expect((await home.one()).facts.title).toBe('From preview');
    }));

  test('a fork: its own prompt, else its parent’s title (exec-fork, exec-fork-no-prompt)', () =>
    inHome(async (home) => {
      home.rollout(finished('What does add do?'));
      const fork = () =>
        new Lines().meta(OTHER_ID, {
          forked_from_id: ID,
          history_base: { thread_id: ID, end_ordinal_exclusive: 16 },
        });
      home.rollout(fork(), OTHER_ID);
      const find = async () => (await home.sessions()).find((one) => one.ref.sessionId === OTHER_ID);
      const unprompted = await find();
      expect(unprompted?.facts).toMatchObject({ title: 'What does add do?', lineage: { forkedFromId: ID } });
      expect(unprompted && stateOf(unprompted)).toBe('unknown');
      home.rollout(fork().started().prompt('And subtract?').complete(), OTHER_ID);
      expect((await find())?.facts.title).toBe('And subtract?');
    }));

  test('a loop of forks in damaged files ends', () =>
    inHome(async (home) => {
      home.rollout(new Lines().meta(ID, { forked_from_id: OTHER_ID }));
      home.rollout(new Lines().meta(OTHER_ID, { forked_from_id: ID }), OTHER_ID);
      expect((await home.sessions()).map((one) => one.facts.title)).toEqual([undefined, undefined]);
    }));
});

describe('lineage', () => {
  test('a sub-agent folds under its parent; the database knows parents too', () =>
    inHome(async (home) => {
      home.rollout(finished('Parent'));
      const spawn = { subagent: { thread_spawn: { parent_thread_id: ID } } };
      home.rollout(
        new Lines().meta(OTHER_ID, { source: spawn, agent_nickname: 'Locke' }).started(),
        OTHER_ID,
      );
      home.rollout('{"broken', uuid(7));
      stateDatabase(home, [], 'state_5.sqlite', [[ID, uuid(7)]]);
      const session = await home.one();
      expect(session.subAgents.map((ref) => ref.sessionId).sort()).toEqual([uuid(7), OTHER_ID].sort());
      expect(stateOf(session)).toBe('running');
      expect(session.own.state).toMatchObject({ kind: 'rested', outcome: 'completed' });
    }));

  test('a rewound thread is one row; its newest segment is the tail (tui-backtrack)', () =>
    inHome(async (home) => {
      const segment = '01a22e22-6275-7262-9d99-c5b6f721cab0';
      home.rollout(finished('First'));
      const rewound = () =>
        new Lines(T0 + 1_000).meta(ID, { history_base: { thread_id: ID, end_ordinal_exclusive: 3 } });
      home.rollout(rewound(), ID, '2026/11/30', segment);
      expect(stateOf(await home.one())).toBe('completed');
      home.rollout(rewound().started().prompt('Other'), ID, '2026/11/30', segment);
      const session = await home.one();
      expect(stateOf(session)).toBe('running');
      expect(session.facts).toMatchObject({ title: 'First', lineage: { segments: 2 } });
      expect(session.facts.file).toEndWith(`_${segment}.jsonl`);
    }));
});

describe('Q1, Q2 the state database is never required', () => {
  test('corrupt: titles come from the rollouts, and the reason is a problem', () =>
    inHome(async (home) => {
      home.rollout(finished('The prompt'));
      home.write('state_5.sqlite', Buffer.concat([Buffer.from('SQLite format 3\0'), Buffer.alloc(4096, 7)]));
      const scan = await home.scan();
      expect(scan.sightings[0]?.facts?.title).toBe('The prompt');
      expect(scan.problems[0]).toMatchObject({ subject: home.path('state_5.sqlite') });
    }));

  test('locked: what the index remembers stands in', () =>
    inHome(async (home) => {
      home.rollout(finished('The prompt'));
      stateDatabase(home, [{ id: ID, name: 'Remembered' }]);
      const index = memoryIndex();
      await home.scan({ index });
      const database = new Database(home.path('state_5.sqlite'));
      database.run("UPDATE threads SET name = 'Newer'");
      database.run('BEGIN EXCLUSIVE');
      try {
        const scan = await home.scan({ index });
        expect(scan.sightings[0]?.facts?.title).toBe('Remembered');
        expect(scan.problems[0]?.reason).toContain('locked');
      } finally {
        database.close();
      }
    }));

  test('an unknown schema, a folder in its place, an empty file: nothing but titles is lost', () =>
    inHome(async (home) => {
      home.rollout(finished('The prompt'));
      mkdirSync(home.path('state_9.sqlite'));
      expect((await home.one()).facts.title).toBe('The prompt');
      const other = new Database(home.path('state_10.sqlite'));
      other.run('CREATE TABLE threads (number INTEGER)');
      other.close();
      expect((await home.one()).facts.title).toBe('The prompt');
      home.write('state_11.sqlite', '');
      expect((await home.one()).facts.title).toBe('The prompt');
    }));
});

describe('what can’t be read costs only itself', () => {
  const asUser = process.getuid?.() !== 0;

  test.if(asUser)('an unreadable day folder', () =>
    inHome(async (home) => {
      home.rollout(finished('Seen'));
      home.rollout(finished('Unseen'), OTHER_ID, '2026/11/29');
      chmodSync(home.path('sessions/2026/11/29'), 0o000);
      const scan = await home.scan();
      chmodSync(home.path('sessions/2026/11/29'), 0o755);
      expect(scan.sightings.length).toBe(1);
      expect(scan.problems).toEqual([
        { subject: home.path('sessions/2026/11/29'), reason: 'it cannot be read (EACCES)', skipped: 1 },
      ]);
    }),
  );

  test('a folder and a file that refuse, whoever runs this', () =>
    inHome(async (home) => {
      home.rollout(finished('Seen'));
      home.rollout(finished('Unseen'), OTHER_ID);
      mkdirSync(home.path('sessions/2026/11/29'), { recursive: true });
      const denied = Object.assign(new Error('denied'), { code: 'EACCES' });
      const files = {
        ...systemFiles,
        entries(folder: string) {
          if (folder.endsWith('/29')) throw denied;
          return systemFiles.entries(folder);
        },
        open(path: string) {
          if (path.includes(OTHER_ID)) throw denied;
          return systemFiles.open(path);
        },
      };
      const scan = await home.scan({ files });
      expect(scan.problems.map((problem) => problem.reason)).toEqual([
        'it cannot be read (EACCES)',
        'it cannot be read (EACCES)',
      ]);
      const titles = scan.sightings.map((one) => [one.session.sessionId, one.facts?.title]);
      expect(titles).toContainEqual([ID, 'Seen']);
    }));

  test('FIFOs and folders that are named like rollouts are never opened', () =>
    inHome(async (home) => {
      home.rollout(finished('Seen'));
      mkdirSync(home.path(`sessions/2026/11/30/rollout-2026-11-30T12-00-00-${OTHER_ID}.jsonl`));
      Bun.spawnSync([
        'mkfifo',
        home.path(`sessions/2026/11/30/rollout-2026-11-30T12-00-00-${uuid(9)}.jsonl`),
      ]);
      expect((await home.one()).facts.title).toBe('Seen');
    }));
});

describe('facts', () => {
  test('exec is headless; origin, source and version are native; the row has no content', () =>
    inHome(async (home) => {
      home.rollout(finished('Go').event('token_count', { info: { last_token_usage: { total_tokens: 5 } } }));
      const { facts } = await home.one();
      expect(facts.native).toEqual({
        transcriptFile: `rollout-2026-11-30T12-00-00-${ID}.jsonl`,
        originator: 'codex-tui',
        source: 'vscode',
        cliVersion: '0.171.0',
      });
      expect(facts).toMatchObject({
        source: 'transcript',
        workDir: '/home/dev/acme-app',
        model: 'gpt-5.5',
        startedAt: T0,
      });
      expect(facts.headless).toBe(false);
      home.rollout(new Lines().meta(ID, { source: 'exec' }).started());
      expect((await home.one()).facts.headless).toBe(true);
    }));
});

interface ThreadRow {
  readonly id: string;
  readonly name?: string | null;
  readonly first_user_message?: string;
  readonly preview?: string;
}

function stateDatabase(
  home: TestHome,
  rows: readonly ThreadRow[],
  name = 'state_5.sqlite',
  edges: readonly (readonly [string, string])[] = [],
): void {
  const database = new Database(home.path(name));
  database.run(
    'CREATE TABLE threads (id TEXT PRIMARY KEY, name TEXT, first_user_message TEXT, preview TEXT, updated_at INTEGER)',
  );
  database.run(
    'CREATE TABLE thread_spawn_edges (parent_thread_id TEXT, child_thread_id TEXT PRIMARY KEY, status TEXT)',
  );
  for (const row of rows) {
    database.run('INSERT INTO threads VALUES (?, ?, ?, ?, 1)', [
      row.id,
      row.name ?? null,
      row.first_user_message ?? '',
      row.preview ?? '',
    ]);
  }
  for (const [parent, child] of edges)
    database.run('INSERT INTO thread_spawn_edges VALUES (?, ?, ?)', [parent, child, 'open']);
  database.close();
}
