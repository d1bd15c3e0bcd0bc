/**
 * The session index in SQLite: what adapters made of files that have not changed since.
 *
 * A rollback journal and not WAL: nothing then lies beside the database between two commands, a reader needs
 * no `-shm` file of its own, and WAL measured no faster (2,000 entries: open and load 3 ms either way, first
 * write 12 ms against 7 to 12). Entries are rows, not one JSON file:
 * parsing the same 900 KB costs as much as loading it, but one changed session would rewrite all of it.
 *
 * It is a cache, so nothing here throws: a database that is locked, newer, someone else's or in an unwritable
 * home means that files are read again. A corrupt one is put aside and begun anew.
 */
import { Database, SQLiteError } from 'bun:sqlite';
import { chmodSync, closeSync, openSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { errorCode } from '../files/file-system.ts';
import { ensureHome } from './home.ts';
import type { IndexEntry, SessionIndex } from './session-index.ts';

/** File name in the connector home. */
export const INDEX_FILE = 'index.sqlite';
/** How long a command waits for another process's commit, in milliseconds; a commit of 2,000 takes 15. */
export const INDEX_BUSY_MS = 150;
/** Version of the table; `user_version` of the database. A lower one is rebuilt, a higher one left alone. */
export const INDEX_SCHEMA = 1;
/** `application_id` of the database: `Shcx`. */
export const INDEX_APPLICATION = 0x53686378;

/** How the index works right now. `off`: nothing is kept, with the reason for the log. */
export type IndexStatus =
  | { readonly kind: 'open' }
  /** No database yet; the first flush that has something makes it. */
  | { readonly kind: 'absent' }
  | { readonly kind: 'off'; readonly reason: string };

export interface IndexOptions {
  /** Takes the one line that says why there is no index; for the debug log. */
  readonly log?: (line: string) => void;
  readonly platform?: NodeJS.Platform;
}

/** An index that says how it is. */
export interface DatabaseIndex extends SessionIndex {
  readonly status: IndexStatus;
}

/** Opens the index of a connector home. Creates nothing: only a flush that has something to write does. */
export function openIndex(home: string, options: IndexOptions = {}): DatabaseIndex {
  return new SqliteIndex(home, options);
}

interface Row {
  readonly scope: string;
  readonly path: string;
  readonly entry: IndexEntry;
}

class SqliteIndex implements DatabaseIndex {
  status: IndexStatus = { kind: 'absent' };
  readonly #home: string;
  readonly #path: string;
  readonly #options: IndexOptions;
  readonly #loaded = new Map<string, Map<string, IndexEntry>>();
  readonly #staged = new Map<string, Row>();
  readonly #dropped = new Map<string, { scope: string; path: string }>();
  #database: Database | undefined;

  constructor(home: string, options: IndexOptions) {
    this.#home = home;
    this.#path = join(home, INDEX_FILE);
    this.#options = options;
    this.#attempt(() => this.#open());
  }

  load(scope: string): ReadonlyMap<string, IndexEntry> {
    const known = this.#loaded.get(scope);
    if (known !== undefined) return known;
    const entries = new Map<string, IndexEntry>();
    this.#loaded.set(scope, entries);
    const database = this.#database;
    if (database === undefined) return entries;
    this.#attempt(() => {
      for (const row of database.query(LOAD).values(scope)) {
        const path = row[0];
        const entry = toEntry(row);
        if (typeof path === 'string' && entry !== undefined) entries.set(path, entry);
      }
    });
    return entries;
  }

  stage(scope: string, path: string, entry: IndexEntry): void {
    const key = rowKey(scope, path);
    this.#staged.set(key, { scope, path, entry });
    this.#dropped.delete(key);
    this.#loaded.get(scope)?.set(path, entry);
    if (this.#staged.size >= STAGED_MOST) this.flush();
  }

  prune(scope: string, alive: ReadonlySet<string>): void {
    const entries = this.#loaded.get(scope);
    if (entries === undefined) return;
    for (const path of entries.keys()) {
      if (alive.has(path)) continue;
      entries.delete(path);
      const key = rowKey(scope, path);
      this.#staged.delete(key);
      this.#dropped.set(key, { scope, path });
    }
  }

  flush(): void {
    // The second try is for a database that the first one found corrupt and put aside.
    for (let attempt = 0; attempt < 2 && this.status.kind !== 'off' && this.#pending; attempt += 1) {
      this.#attempt(() => this.#flushOnce());
    }
  }

  close(): void {
    this.#release();
    this.status = { kind: 'off', reason: 'closed' };
  }

  get #pending(): boolean {
    return this.#staged.size > 0 || this.#dropped.size > 0;
  }

  #flushOnce(): void {
    this.#database ??= this.#openForWriting();
    const database = this.#database;
    database
      .transaction(() => {
        prepare(database);
        this.#write(database);
      })
      .immediate();
    this.status = { kind: 'open' };
    this.#staged.clear();
    this.#dropped.clear();
  }

  #open(): void {
    const database = openExisting(this.#path);
    if (database === undefined) return;
    this.#database = database;
    configure(database);
    const found = identify(database);
    if (found === 'ours') {
      this.status = { kind: 'open' };
      return;
    }
    if (found === 'blank') {
      this.#release();
      return;
    }
    this.#turnOff(found);
  }

  #openForWriting(): Database {
    const home = ensureHome(this.#home, this.#options.platform);
    if (home.kind === 'unavailable')
      throw new Unavailable(`the connector home cannot be made (${home.code})`);
    touchPrivate(this.#path, this.#options.platform ?? process.platform);
    const database = new Database(this.#path, { readwrite: true });
    configure(database);
    // Counts only for a database that is still blank. Large pages halve the first write (2,000 entries: 5 ms
    // against 9) and make loading a fifth faster: fewer reads, each of which is a system call.
    database.run(`PRAGMA page_size = ${PAGE_BYTES}`);
    return database;
  }

  #write(database: Database): void {
    const put = database.query(PUT);
    // In the order of the key, pages fill up one after another.
    const rows = [...this.#staged.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
    for (const { scope, path, entry } of rows) {
      const { size, mtimeMs, ino, dev } = entry.stamp;
      put.run(scope, path, size, mtimeMs, ino, dev, entry.value);
    }
    const drop = database.query(DROP);
    for (const { scope, path } of this.#dropped.values()) drop.run(scope, path);
    for (const scope of this.#loaded.keys()) forgetOlder(database, scope);
  }

  /** Runs one piece of work on the database; whatever it says no to leaves us without an index, not without a list. */
  #attempt(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (isCorrupt(error)) {
        this.#startAnew();
        return;
      }
      this.#turnOff(
        error instanceof Unavailable ? error.message : `the index cannot be used (${errorCode(error)})`,
      );
    }
  }

  #startAnew(): void {
    this.#release();
    for (const entries of this.#loaded.values()) entries.clear();
    try {
      renameSync(this.#path, `${this.#path}.broken`);
      rmSync(`${this.#path}-journal`, { force: true });
      this.status = { kind: 'absent' };
      this.#options.log?.(`the index was corrupt; it lies beside as ${INDEX_FILE}.broken and is built anew`);
    } catch (error) {
      this.#turnOff(`the index is corrupt and cannot be put aside (${errorCode(error)})`);
    }
  }

  #turnOff(reason: string): void {
    this.#release();
    this.status = { kind: 'off', reason };
    this.#options.log?.(`no index: ${reason}`);
  }

  #release(): void {
    const database = this.#database;
    this.#database = undefined;
    database?.close();
  }
}

/** A reason of our own not to use the database. */
class Unavailable extends Error {}

/** Entries that wait for one transaction: a first look at 100,000 sessions must not hold them all twice. */
const STAGED_MOST = 8192;

/** Size of a page of the database, bytes. */
const PAGE_BYTES = 32_768;

const TABLE = `CREATE TABLE entries (
  scope TEXT NOT NULL, path TEXT NOT NULL, size INTEGER NOT NULL, mtime_ms REAL NOT NULL,
  ino REAL NOT NULL, dev REAL NOT NULL, value TEXT NOT NULL, PRIMARY KEY (scope, path)) WITHOUT ROWID`;
const IDENTIFY = `SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)
  FROM pragma_application_id, pragma_user_version`;
const LOAD = 'SELECT path, size, mtime_ms, ino, dev, value FROM entries WHERE scope = ?';
const PUT = 'INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)';
const DROP = 'DELETE FROM entries WHERE scope = ? AND path = ?';
const FORGET = 'DELETE FROM entries WHERE scope > ? AND scope < ? AND scope <> ?';

function openExisting(path: string): Database | undefined {
  try {
    return new Database(path, { readwrite: true });
  } catch (error) {
    // SQLite says the same of a missing file and of one that may not be opened; creating will tell them apart.
    if (errorCode(error) === 'SQLITE_CANTOPEN') return undefined;
    throw error;
  }
}

function configure(database: Database): void {
  database.run(`PRAGMA busy_timeout = ${INDEX_BUSY_MS}`);
  // Not waiting for the disk halves the first write. A killed process loses nothing by it; a power cut may
  // leave a corrupt file, which is put aside and begun anew.
  database.run('PRAGMA synchronous = OFF');
}

/** Makes the table in a blank database; throws if another process has put something else there meanwhile. */
function prepare(database: Database): void {
  const found = identify(database);
  if (found === 'ours') return;
  if (found !== 'blank') throw new Unavailable(found);
  database.run('DROP TABLE IF EXISTS entries');
  database.run(TABLE);
  database.run(`PRAGMA application_id = ${INDEX_APPLICATION}`);
  database.run(`PRAGMA user_version = ${INDEX_SCHEMA}`);
}

/**
 * `ours` at our version, `blank` (new, or ours and older), else why it is not ours to use. One statement, so
 * that a process which makes the database at this moment is seen before or after, not in between.
 */
function identify(database: Database): 'ours' | 'blank' | (string & {}) {
  const [application, version, tables] = database.query(IDENTIFY).values()[0] ?? [];
  if (application === INDEX_APPLICATION && typeof version === 'number') {
    if (version === INDEX_SCHEMA) return 'ours';
    return version < INDEX_SCHEMA ? 'blank' : `a newer build wrote it (schema ${version})`;
  }
  return tables === 0 ? 'blank' : 'the database is not one of ours';
}

/** What an older build wrote under `claude-code/2` is of no use once `claude-code/3` is loaded. */
function forgetOlder(database: Database, scope: string): void {
  const slash = scope.lastIndexOf('/');
  if (slash < 0) return;
  const family = scope.slice(0, slash);
  // Every scope of the family lies between `family/` and `family0`, the character after the slash.
  database.query(FORGET).run(`${family}/`, `${family}0`, scope);
}

/** What {@link LOAD} gives, looked at by place: taking a list apart costs more than all else of it. */
function toEntry(row: readonly unknown[]): IndexEntry | undefined {
  const size = row[1];
  const mtimeMs = row[2];
  const ino = row[3];
  const dev = row[4];
  const value = row[5];
  if (typeof size !== 'number' || typeof mtimeMs !== 'number') return undefined;
  if (typeof ino !== 'number' || typeof dev !== 'number' || typeof value !== 'string') return undefined;
  return { stamp: { size, mtimeMs, ino, dev }, value };
}

/** SQLite would create the file with the umask's mode; its journal then takes the mode of the file (C1). */
function touchPrivate(path: string, platform: NodeJS.Platform): void {
  closeSync(openSync(path, 'a', 0o600));
  if (platform !== 'win32') chmodSync(path, 0o600);
}

function isCorrupt(error: unknown): boolean {
  return error instanceof SQLiteError && /^SQLITE_(CORRUPT|NOTADB)/.test(errorCode(error));
}

function rowKey(scope: string, path: string): string {
  return `${scope}\0${path}`;
}
