import { Database } from 'bun:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { INDEX_FILE, INDEX_SCHEMA, openIndex } from '../../../src/runtime/store/index-db.ts';
import { memoryIndex } from '../../../src/runtime/store/memory-index.ts';
import type { IndexEntry } from '../../../src/runtime/store/session-index.ts';

const SCOPE = 'claude-code/1';

let folder = '';
let home = '';
let path = '';
let lines: string[] = [];
const log = (line: string): void => void lines.push(line);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'index-'));
  home = join(folder, 'shadow', 'connector');
  path = join(home, INDEX_FILE);
  lines = [];
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const entry = (n: number): IndexEntry => ({
  stamp: { size: n, mtimeMs: 1_796_074_787_184.8264 + n, ino: 2 ** 62 + n * 4096, dev: 2049 },
  value: `{"n":${n}}`,
});

function fill(entries: Record<string, IndexEntry>, scope = SCOPE): void {
  const index = openIndex(home, { log });
  index.load(scope);
  for (const [name, value] of Object.entries(entries)) index.stage(scope, name, value);
  index.flush();
  index.close();
}

function contents(scope = SCOPE): Record<string, IndexEntry> {
  const index = openIndex(home, { log });
  const loaded = Object.fromEntries(index.load(scope));
  index.close();
  return loaded;
}

describe('what is kept', () => {
  test('entries come back as they were staged, to the last bit of the stamp', () => {
    fill({ '/a': entry(1), '/b ü日本': entry(2) });
    expect(contents()).toEqual({ '/a': entry(1), '/b ü日本': entry(2) });
  });

  test('a first look at 20,000 files is written in parts, and not all held until its end', () => {
    const index = openIndex(home, { log });
    index.load(SCOPE);
    for (let n = 0; n < 20_000; n += 1) index.stage(SCOPE, `/${n}`, entry(n));
    expect(Object.keys(contents()).length).toBeGreaterThan(10_000);
    index.close();
    expect(lines).toEqual([]);
  });

  test('a later stage replaces; the loaded map shows it at once', () => {
    fill({ '/a': entry(1) });
    const index = openIndex(home);
    const loaded = index.load(SCOPE);
    index.stage(SCOPE, '/a', entry(7));
    expect(loaded.get('/a')).toEqual(entry(7));
    expect(index.load(SCOPE)).toBe(loaded);
    index.close();
    expect(contents()).toEqual({ '/a': entry(1) });
    fill({ '/a': entry(7) });
    expect(contents()).toEqual({ '/a': entry(7) });
  });

  test('prune forgets the paths of one scope that are gone, and only those', () => {
    fill({ '/a': entry(1), '/b': entry(2) });
    fill({ '/a': entry(3) }, 'codex/1');
    const index = openIndex(home);
    index.load(SCOPE);
    index.stage(SCOPE, '/c', entry(4));
    index.prune(SCOPE, new Set(['/b']));
    index.flush();
    index.close();
    expect(contents()).toEqual({ '/b': entry(2) });
    expect(contents('codex/1')).toEqual({ '/a': entry(3) });
  });

  test('raising the number of a scope forgets what an older build wrote, of that scope alone', () => {
    fill({ '/a': entry(1) }, 'codex/1');
    fill({ '/a': entry(2) }, 'codex-app/1');
    expect(contents('codex/2')).toEqual({});
    fill({ '/b': entry(3) }, 'codex/2');
    expect(contents('codex/1')).toEqual({});
    expect(contents('codex/2')).toEqual({ '/b': entry(3) });
    expect(contents('codex-app/1')).toEqual({ '/a': entry(2) });
  });
});

describe('R-30: what is created, and when', () => {
  test('opening, loading and a flush of nothing create nothing', () => {
    const index = openIndex(home, { log });
    expect(index.status).toEqual({ kind: 'absent' });
    expect(index.load(SCOPE).size).toBe(0);
    index.prune(SCOPE, new Set());
    index.flush();
    index.close();
    expect(readdirSync(folder)).toEqual([]);
    expect(lines).toEqual([]);
  });

  test('nothing changed: the file is not written', () => {
    fill({ '/a': entry(1) });
    const before = { bytes: readFileSync(path), stat: statSync(path) };
    const index = openIndex(home);
    index.load(SCOPE);
    index.prune(SCOPE, new Set(['/a']));
    index.flush();
    index.close();
    expect(readFileSync(path).equals(before.bytes)).toBe(true);
    expect(statSync(path).mtimeMs).toBe(before.stat.mtimeMs);
  });

  test.skipIf(process.platform === 'win32')(
    'C1: folder 0700, file 0600, nothing else beside it, any umask',
    () => {
      const old = process.umask(0o002);
      fill({ '/a': entry(1) });
      process.umask(old);
      expect(statSync(home).mode & 0o777).toBe(0o700);
      expect(statSync(path).mode & 0o777).toBe(0o600);
      expect(readdirSync(home)).toEqual([INDEX_FILE]);
    },
  );

  test.skipIf(process.platform === 'win32')('C1: during the write too, the journal is 0600', () => {
    fill({ '/a': entry(1) });
    const database = new Database(path, { readwrite: true });
    database.run('BEGIN IMMEDIATE');
    database.run("UPDATE entries SET value = 'x'");
    database.run('PRAGMA cache_size = 0');
    const modes = readdirSync(home)
      .sort()
      .map((name) => [name, statSync(join(home, name)).mode & 0o777]);
    database.run('ROLLBACK');
    database.close();
    expect(modes).toEqual([
      [INDEX_FILE, 0o600],
      [`${INDEX_FILE}-journal`, 0o600],
    ]);
  });
});

describe('no index is no error', () => {
  test('a home that cannot be made: one line, and the staged entries still serve this process', () => {
    writeFileSync(join(folder, 'shadow'), 'a file where the folder should be');
    const index = openIndex(home, { log });
    const loaded = index.load(SCOPE);
    index.stage(SCOPE, '/a', entry(1));
    index.flush();
    index.flush();
    expect(index.status.kind).toBe('off');
    expect(lines.length).toBe(1);
    expect(loaded.get('/a')).toEqual(entry(1));
    index.close();
  });

  test.skipIf(process.platform === 'win32' || process.getuid?.() === 0)(
    'an unwritable home: read, not written',
    () => {
      fill({ '/a': entry(1) });
      Bun.spawnSync(['chmod', '-R', 'a-w', home]);
      const index = openIndex(home, { log });
      expect(index.load(SCOPE).get('/a')).toEqual(entry(1));
      index.stage(SCOPE, '/b', entry(2));
      index.flush();
      index.close();
      Bun.spawnSync(['chmod', '-R', 'u+w', home]);
      expect(lines.length).toBe(1);
      expect(contents()).toEqual({ '/a': entry(1) });
    },
  );

  test('corrupt: put aside, begun anew in the same command', () => {
    mkdirSync(home, { recursive: true });
    writeFileSync(path, 'this is not a database, it is only long enough to have a header. '.repeat(40));
    fill({ '/a': entry(1) });
    expect(contents()).toEqual({ '/a': entry(1) });
    expect(readdirSync(home).sort()).toEqual([INDEX_FILE, `${INDEX_FILE}.broken`]);
    expect(lines.length).toBe(1);
  });

  test('cut in the middle: what can be read counts, a write begins anew if it must, nothing throws', () => {
    fill(Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`/path/${n}`, entry(n)])));
    truncateSync(path, 4096 * 2);
    const index = openIndex(home, { log });
    index.load(SCOPE);
    index.stage(SCOPE, '/new', entry(1));
    index.flush();
    index.close();
    expect(contents()['/new']).toEqual(entry(1));
  });

  test('a page overwritten with rubbish: nothing throws, and the next command writes', () => {
    fill(Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`/path/${n}`, entry(n)])));
    const bytes = readFileSync(path);
    const pageBytes = bytes.readUInt16BE(16);
    bytes.fill(0xa5, pageBytes, pageBytes * 3);
    writeFileSync(path, bytes);
    const index = openIndex(home, { log });
    index.load(SCOPE);
    index.stage(SCOPE, '/new', entry(1));
    index.flush();
    index.close();
    expect(contents()['/new']).toEqual(entry(1));
    expect(existsSync(`${path}.broken`)).toBe(true);
  });

  test("someone else's database is neither read nor written", () => {
    mkdirSync(home, { recursive: true });
    const other = new Database(path, { create: true });
    other.run('CREATE TABLE entries (mine TEXT)');
    other.close();
    const before = readFileSync(path);
    fill({ '/a': entry(1) });
    expect(readFileSync(path).equals(before)).toBe(true);
    expect(lines).toEqual(['no index: the database is not one of ours']);
  });

  test('a newer schema is left alone, an older one rebuilt', () => {
    fill({ '/a': entry(1) });
    const version = (n: number): void => {
      const database = new Database(path, { readwrite: true });
      database.run(`PRAGMA user_version = ${n}`);
      database.close();
    };
    version(INDEX_SCHEMA + 1);
    expect(contents()).toEqual({});
    fill({ '/b': entry(2) });
    version(INDEX_SCHEMA);
    expect(contents()).toEqual({ '/a': entry(1) });
    version(INDEX_SCHEMA - 1);
    fill({ '/b': entry(2) });
    expect(contents()).toEqual({ '/b': entry(2) });
  });

  test('an empty file, as a crash between making and filling it leaves, is filled', () => {
    mkdirSync(home, { recursive: true });
    writeFileSync(path, '');
    fill({ '/a': entry(1) });
    expect(contents()).toEqual({ '/a': entry(1) });
    expect(lines).toEqual([]);
  });

  test('a folder of that name', () => {
    mkdirSync(path, { recursive: true });
    fill({ '/a': entry(1) });
    expect(lines.length).toBe(1);
    expect(statSync(path).isDirectory()).toBe(true);
  });

  test('locked by another process: no index this time, and the lock is not waited for long', () => {
    fill({ '/a': entry(1) });
    const other = new Database(path, { readwrite: true });
    other.run('BEGIN EXCLUSIVE');
    const index = openIndex(home, { log });
    expect(index.load(SCOPE).size).toBe(0);
    index.stage(SCOPE, '/b', entry(2));
    index.flush();
    index.close();
    other.run('ROLLBACK');
    other.close();
    expect(lines).toEqual(['no index: the index cannot be used (SQLITE_BUSY)']);
    expect(contents()).toEqual({ '/a': entry(1) });
  });

  test('killed in the middle of a write: the hot journal is rolled back by the next', async () => {
    fill({ '/a': entry(1), '/b': entry(2) });
    const script = `
      const { Database } = require('bun:sqlite');
      const database = new Database(${JSON.stringify(path)}, { readwrite: true });
      database.run('PRAGMA cache_size = 1');
      database.run('BEGIN EXCLUSIVE');
      for (let n = 0; n < 5000; n += 1)
        database.run('INSERT OR REPLACE INTO entries VALUES (?, ?, 1, 1, 1, 1, ?)', ['claude-code/1', '/x' + n, 'y'.repeat(200)]);
      console.log('written');
      setInterval(() => {}, 1000);`;
    const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe', stderr: 'inherit' });
    const reader = child.stdout.getReader();
    const said = await reader.read();
    expect(new TextDecoder().decode(said.value)).toContain('written');
    child.kill('SIGKILL');
    await child.exited;
    expect(existsSync(`${path}-journal`)).toBe(true);
    expect(contents()).toEqual({ '/a': entry(1), '/b': entry(2) });
  });
});

describe('two processes at once', () => {
  test('eight processes that each fill the missing index at the same moment lose nothing of the others', async () => {
    const script = (n: number): string => `
      import { openIndex } from ${JSON.stringify(join(import.meta.dir, '../../../src/runtime/store/index-db.ts'))};
      const index = openIndex(${JSON.stringify(home)}, { log: (line) => console.log(line) });
      index.load('claude-code/1');
      for (let i = 0; i < 50; i += 1)
        index.stage('claude-code/1', '/${n}/' + i, { stamp: { size: i, mtimeMs: 1, ino: 1, dev: 1 }, value: '{}' });
      index.flush();
      index.close();`;
    const children = Array.from({ length: 8 }, (_, n) =>
      Bun.spawn([process.execPath, '-e', script(n)], { stdout: 'pipe', stderr: 'pipe' }),
    );
    const said = await Promise.all(
      children.map(
        async (child) =>
          (await new Response(child.stdout).text()) + (await new Response(child.stderr).text()),
      ),
    );
    const given = said.filter((text) => text.includes('SQLITE_BUSY')).length;
    expect(said.join('').replaceAll(/no index: the index cannot be used \(SQLITE_BUSY\)\n/g, '')).toBe('');
    expect(Object.keys(contents()).length).toBe(50 * (8 - given));
    expect(given).toBeLessThan(8);
  });
});

describe('the index in memory', () => {
  test('stages, prunes and shows like the other', () => {
    const index = memoryIndex();
    index.stage(SCOPE, '/a', entry(1));
    index.stage(SCOPE, '/b', entry(2));
    index.prune(SCOPE, new Set(['/b']));
    index.flush();
    expect([...index.load(SCOPE).keys()]).toEqual(['/b']);
    expect(index.load('codex/1').size).toBe(0);
    index.close();
  });
});
