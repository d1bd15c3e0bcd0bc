import { Database } from 'bun:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { countFiles, type FileSystemPort, systemFiles } from '../../../src/runtime/files/file-system.ts';
import {
  databaseStamp,
  databaseUri,
  keepSqlite,
  type ReadonlyDatabase,
  readSqlite,
} from '../../../src/runtime/store/readonly-sqlite.ts';

let folder = '';
let path = '';
const children: Bun.Subprocess[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'readonly-'));
  path = join(folder, 'data #1?%20é', 'state_5.sqlite');
  mkdirSync(join(path, '..'));
});

afterEach(async () => {
  for (const child of children.splice(0)) await kill(child);
  rmSync(folder, { recursive: true, force: true });
});

async function kill(child: Bun.Subprocess): Promise<void> {
  child.kill('SIGKILL');
  await child.exited;
}

/** A process that runs these statements on the database, then holds it open. */
async function owner(...script: string[]): Promise<Bun.Subprocess> {
  const code = `
    const { Database } = require('bun:sqlite');
    const db = new Database(${JSON.stringify(path)}, { create: true });
    ${script.join('\n')}
    console.log('ready');
    setInterval(() => {}, 1000);`;
  const child = Bun.spawn([process.execPath, '-e', code], { stdout: 'pipe', stderr: 'inherit' });
  children.push(child);
  const { value } = await child.stdout.getReader().read();
  expect(new TextDecoder().decode(value)).toContain('ready');
  return child;
}

const CREATE =
  "db.run('PRAGMA journal_mode = WAL'); db.run('CREATE TABLE t (a, b)'); db.run('INSERT INTO t VALUES (1, 1)');";
const CHECKPOINT = "db.run('PRAGMA wal_checkpoint(TRUNCATE)');";
const MORE = "db.run('INSERT INTO t VALUES (2, 2)');";

/** Names, sizes, times, modes and bytes of all that lies beside the database. */
function traces(): unknown {
  return readdirSync(join(path, '..'))
    .sort()
    .map((name) => {
      const file = join(path, '..', name);
      const { size, mtimeMs, ino, mode } = statSync(file);
      return { name, size, mtimeMs, ino, mode, hash: Bun.hash(readFileSync(file)) };
    });
}

const query = (database: ReadonlyDatabase): unknown[] =>
  database.rows('SELECT a FROM t ORDER BY a').map((row) => row['a']);

/** Reads, and proves that nothing beside the database was made, changed or removed. */
function read(name = path, busyMs = 20): unknown {
  const before = traces();
  const result = readSqlite(name, query, { busyMs });
  expect(traces()).toEqual(before);
  return result.kind === 'rows' ? { rows: result.value, way: result.way } : result;
}

describe('Q1: a WAL database in each of its states', () => {
  test('a live writer: what only the log holds is read', async () => {
    await owner(CREATE, CHECKPOINT, MORE);
    expect(read()).toEqual({ rows: [1, 2], way: 'shared-memory' });
  });

  test('a live writer in the middle of a transaction: what was committed', async () => {
    await owner(CREATE, CHECKPOINT, "db.run('BEGIN IMMEDIATE');", MORE);
    expect(read()).toMatchObject({ rows: [1] });
  });

  test('a writer that was killed: the log is read, its index not repaired', async () => {
    await kill(await owner(CREATE, CHECKPOINT, MORE));
    expect(readdirSync(join(path, '..')).length).toBe(3);
    expect(read()).toEqual({ rows: [1, 2], way: 'shared-memory' });
  });

  test('a log without its shared memory', async () => {
    await kill(await owner(CREATE, CHECKPOINT, MORE));
    rmSync(`${path}-shm`);
    expect(read()).toEqual({ rows: [1, 2], way: 'no-locks' });
  });

  test('closed, with no sidecars: the normal idle state', async () => {
    await owner(CREATE, MORE, CHECKPOINT, 'db.close();');
    rmSync(`${path}-wal`, { force: true });
    rmSync(`${path}-shm`, { force: true });
    expect(read()).toEqual({ rows: [1, 2], way: 'immutable' });
  });

  test('an open owner with an empty log', async () => {
    await owner(CREATE, MORE, CHECKPOINT);
    expect(statSync(`${path}-wal`).size).toBe(0);
    expect(read()).toEqual({ rows: [1, 2], way: 'immutable' });
  });

  test('an owner that keeps the whole database to itself', async () => {
    await owner("db.run('PRAGMA locking_mode = EXCLUSIVE');", CREATE, CHECKPOINT, MORE);
    expect(existsSync(`${path}-shm`)).toBe(false);
    expect(read()).toEqual({ rows: [1, 2], way: 'no-locks' });
  });

  test('through a link, whose sidecars lie beside its target', async () => {
    await owner(CREATE, CHECKPOINT, MORE);
    const link = join(folder, 'link.sqlite');
    symlinkSync(path, link);
    expect(read(link)).toEqual({ rows: [1, 2], way: 'shared-memory' });
    expect(readdirSync(folder).sort()).toEqual(['data #1?%20é', 'link.sqlite']);
  });

  test.skipIf(process.platform === 'win32')(
    'in a folder and with files that may not be written',
    async () => {
      await kill(await owner(CREATE, CHECKPOINT, MORE));
      for (const name of readdirSync(join(path, '..'))) chmodSync(join(path, '..', name), 0o400);
      chmodSync(join(path, '..'), 0o500);
      expect(read()).toEqual({ rows: [1, 2], way: 'shared-memory' });
      chmodSync(join(path, '..'), 0o700);
      rmSync(`${path}-shm`);
      chmodSync(join(path, '..'), 0o500);
      expect(read()).toEqual({ rows: [1, 2], way: 'no-locks' });
      chmodSync(join(path, '..'), 0o700);
      rmSync(`${path}-wal`);
      chmodSync(join(path, '..'), 0o500);
      expect(read()).toEqual({ rows: [1], way: 'immutable' });
      chmodSync(join(path, '..'), 0o700);
    },
  );

  test('beside a writer that commits and checkpoints all the time: always a whole snapshot', async () => {
    await owner(
      CREATE,
      "db.run('PRAGMA wal_autocheckpoint = 2');",
      "let n = 1; setInterval(() => { for (let i = 0; i < 5; i += 1) { n += 1; db.run('BEGIN'); db.run('INSERT INTO t VALUES (?, ?)', [n, n]); db.run('UPDATE t SET b = ? WHERE a = 1', [n]); db.run('COMMIT'); } if (n % 50 === 1) db.run('PRAGMA wal_checkpoint(TRUNCATE)'); }, 1);",
    );
    const seen: number[] = [];
    const pair = (database: ReadonlyDatabase) =>
      database.rows('SELECT max(a) AS last, (SELECT b FROM t WHERE a = 1) AS mark FROM t')[0];
    while (new Set(seen).size < 40) {
      const result = readSqlite(path, pair, { busyMs: 1000 });
      if (result.kind !== 'rows') {
        // Without a lock a busy log may outrun every attempt; that is an answer too, a wrong one is not.
        expect(result).toEqual({ kind: 'unreadable', reason: 'it changed at every attempt' });
        continue;
      }
      expect(result.value?.['last']).toBe(result.value?.['mark']);
      seen.push(Number(result.value?.['last']));
    }
    expect(seen).toEqual(seen.toSorted((a, b) => a - b));
  });
});

describe('a database with a rollback journal', () => {
  const PLAIN = CREATE.replace('WAL', 'DELETE');

  test('beside an idle owner', async () => {
    await owner(PLAIN, MORE);
    expect(read()).toEqual({ rows: [1, 2], way: 'locked-read' });
  });

  test('Q2: an exclusive lock is `locked`', async () => {
    await owner(PLAIN, "db.run('BEGIN EXCLUSIVE');", MORE);
    expect(read()).toEqual({ kind: 'locked' });
  });

  test('killed in the middle of a write: said, not repaired', async () => {
    await kill(
      await owner(
        PLAIN,
        "db.run('PRAGMA cache_size = 1'); db.run('BEGIN IMMEDIATE'); for (let n = 0; n < 3000; n += 1) db.run('INSERT INTO t VALUES (?, ?)', [n, 'x'.repeat(100)]);",
      ),
    );
    expect(existsSync(`${path}-journal`)).toBe(true);
    expect(read()).toMatchObject({ kind: 'unreadable' });
  });
});

describe('what is no readable database', () => {
  test('missing; a dangling link', () => {
    expect(read()).toEqual({ kind: 'missing' });
    symlinkSync('nowhere', path);
    expect(readSqlite(path, query)).toEqual({ kind: 'missing' });
  });

  test('text, an empty file, half a header', () => {
    const no = { kind: 'unreadable', reason: 'it is not a database' };
    writeFileSync(path, 'this is no database\n'.repeat(100));
    expect(read()).toEqual(no);
    writeFileSync(path, '');
    expect(read()).toEqual(no);
    writeFileSync(path, 'SQLite format 3\0');
    expect(read()).toEqual(no);
  });

  test('cut in the middle', async () => {
    await owner(
      CREATE,
      "for (let n = 0; n < 2000; n += 1) db.run('INSERT INTO t VALUES (?, ?)', [n, 'x'.repeat(100)]);",
      CHECKPOINT,
      'db.close();',
    );
    truncateSync(path, 8192);
    expect(read()).toMatchObject({ kind: 'unreadable', reason: expect.stringContaining('SQLITE_CORRUPT') });
  });

  test('a folder, and a FIFO that nobody writes to', () => {
    mkdirSync(path);
    expect(readSqlite(path, query)).toEqual({ kind: 'unreadable', reason: 'not-a-file' });
    rmSync(path, { recursive: true });
    if (process.platform === 'win32') return;
    expect(Bun.spawnSync(['mkfifo', path]).exitCode).toBe(0);
    expect(readSqlite(path, query)).toEqual({ kind: 'unreadable', reason: 'not-a-file' });
  });

  test('without permission', async () => {
    await owner(CREATE, CHECKPOINT);
    const files: FileSystemPort = {
      ...systemFiles,
      open: () => {
        throw Object.assign(new Error('no'), { code: 'EACCES' });
      },
    };
    expect(readSqlite(path, query, { files })).toEqual({
      kind: 'unreadable',
      reason: 'it cannot be opened (EACCES)',
    });
  });

  test('a table or column that this release does not have is a reason, not an exception', async () => {
    await owner(CREATE, CHECKPOINT);
    const result = readSqlite(path, (database) => database.rows('SELECT gone FROM t'));
    expect(result).toEqual({ kind: 'unreadable', reason: 'no such column: gone (SQLITE_ERROR)' });
    const columns = readSqlite(path, (database) => [[...database.columns('t')], [...database.columns('u')]]);
    expect(columns).toMatchObject({ value: [['a', 'b'], []] });
  });

  test('it cannot be written through', async () => {
    await owner(CREATE, CHECKPOINT, MORE);
    const result = readSqlite(path, (database) => database.rows('DELETE FROM t RETURNING a'));
    expect(result).toMatchObject({ kind: 'unreadable', reason: expect.stringContaining('SQLITE_READONLY') });
    expect(read()).toMatchObject({ rows: [1, 2] });
  });

  test("an error of the caller's own code goes through", async () => {
    await owner(CREATE, CHECKPOINT);
    expect(() =>
      readSqlite(path, () => {
        throw new Error('mine');
      }),
    ).toThrow('mine');
  });
});

describe('files that change under a read without a lock', () => {
  test('a writer that starts after the look: read again, with its rows', async () => {
    await kill(await owner(CREATE, CHECKPOINT, 'db.close();'));
    rmSync(`${path}-wal`, { force: true });
    rmSync(`${path}-shm`, { force: true });
    const writer = new Database(path, { readwrite: true });
    const ways: unknown[] = [];
    const result = readSqlite(path, (database) => {
      const rows = query(database);
      if (ways.length === 0) writer.run('INSERT INTO t VALUES (3, 3)');
      ways.push(rows);
      return rows;
    });
    expect(ways).toEqual([[1], [1, 3]]);
    expect(result).toMatchObject({ kind: 'rows', value: [1, 3], way: 'shared-memory' });
    writer.close();
  });

  test('rewritten at every attempt: said', async () => {
    await kill(await owner(CREATE, CHECKPOINT, 'db.close();'));
    rmSync(`${path}-wal`, { force: true });
    const copy = `${path}.copy`;
    copyFileSync(path, copy);
    const result = readSqlite(path, (database) => {
      const rows = query(database);
      rmSync(path);
      copyFileSync(copy, path);
      writeFileSync(`${path}x`, '');
      return rows;
    });
    expect(result).toEqual({ kind: 'unreadable', reason: 'it changed at every attempt' });
  });
});

describe('the stamp', () => {
  test('moves with the log, and stands still while nothing is written', async () => {
    expect(databaseStamp(path)).toBeUndefined();
    await kill(await owner(CREATE, CHECKPOINT));
    const before = databaseStamp(path);
    read();
    expect(databaseStamp(path)).toEqual(before);
    const database = new Database(path, { readwrite: true });
    database.run('INSERT INTO t VALUES (9, 9)');
    expect(databaseStamp(path)).not.toEqual(before);
    database.close();
  });
});

describe('Q2: a kept reader', () => {
  test('opens nothing while nothing was written; shows the last good rows while locked; forgets with the file', async () => {
    const database = new Database(path, { create: true });
    database.run('CREATE TABLE t (a)');
    database.run('INSERT INTO t VALUES (1)');
    const { files, work } = countFiles();
    const kept = keepSqlite(path, query, { files, busyMs: 1 });
    expect(kept.read()).toMatchObject({ kind: 'rows', value: [1] });
    const opened = work.opened;
    expect(kept.read()).toMatchObject({ kind: 'rows', value: [1] });
    expect(work.opened).toBe(opened);
    database.run('INSERT INTO t VALUES (2)');
    database.run('BEGIN EXCLUSIVE');
    expect(kept.read()).toEqual({ kind: 'stale', value: [1], reason: 'it is locked' });
    database.run('ROLLBACK');
    expect(kept.read()).toMatchObject({ kind: 'rows', value: [1, 2] });
    database.close();
    truncateSync(path, 100);
    expect(kept.read()).toMatchObject({ kind: 'stale', value: [1, 2] });
    rmSync(path);
    expect(kept.read()).toEqual({ kind: 'missing' });
  });
});

describe('R-46: the URI on each system', () => {
  test.each([
    ['/a b/c?d#e%.db', 'linux', 'immutable', 'file:/a%20b/c%3Fd%23e%25.db?mode=ro&immutable=1'],
    ['/a.db', 'darwin', 'no-locks', 'file:/a.db?mode=ro&vfs=unix-none'],
    ['C:\\Users\\é x\\a.db', 'win32', 'no-locks', 'file:/C:/Users/%C3%A9%20x/a.db?mode=ro&vfs=win32-none'],
    ['/a.db', 'linux', 'shared-memory', 'file:/a.db?mode=ro&readonly_shm=1'],
    ['/a.db', 'linux', 'locked-read', 'file:/a.db?mode=ro'],
  ] as const)('%s on %s, %s', (name, platform, way, uri) => {
    expect(databaseUri(name, way, platform)).toBe(uri);
  });
});
