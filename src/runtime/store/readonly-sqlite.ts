/**
 * Reads another program's SQLite database without leaving a trace beside it or in it.
 *
 * A plain read-only open does leave one: for a WAL database it creates `-wal` and `-shm` where they are
 * missing, and rewrites `-shm` where no process holds it (SQLite 3.54.1, as Bun 1.4.5 carries it). So the way
 * in depends on what lies there (Q1):
 *
 * | header   | `-wal`            | `-shm`  | way in | why |
 * | rollback | any               | any     | `locked-read`: `mode=ro` | takes the shared lock, creates nothing |
 * | WAL      | holds pages       | there   | `shared-memory`: `readonly_shm=1` | sees what is not checkpointed; with no owner alive it keeps its page index in memory |
 * | WAL      | holds pages       | missing | `no-locks`: a VFS without locks | the page index is again ours, in memory |
 * | WAL      | missing or empty  | any     | `immutable`: `immutable=1` | the database file is all there is |
 *
 * The last two take no lock, so they count only if the files are the same afterwards; else it is tried again.
 * A lock that another process holds is waited for shortly (Q2): the caller keeps what it last saw.
 */
import { constants, Database, type SQLQueryBindings } from 'bun:sqlite';
import { realpathSync } from 'node:fs';
import {
  errorCode,
  type FileSystemPort,
  notAFile,
  sameContent,
  systemFiles,
  toProblem,
  tryStat,
} from '../files/file-system.ts';
import type { FileStamp } from './session-index.ts';

/** How long a lock is waited for, in milliseconds (Q2). */
export const READ_BUSY_MS = 100;
/** How often a read is tried while the files change or vanish under it. */
const ATTEMPTS = 4;

export type WayIn = 'locked-read' | 'shared-memory' | 'no-locks' | 'immutable';

/** What a query callback gets. Each row is an object by column name. */
export interface ReadonlyDatabase {
  rows(sql: string, ...values: readonly SQLQueryBindings[]): readonly Record<string, unknown>[];
  /** Column names of a table, empty if there is no such table: schemas change between releases. */
  columns(table: string): ReadonlySet<string>;
}

export type SqliteRead<T> =
  | { readonly kind: 'rows'; readonly value: T; readonly stamp: FileStamp; readonly way: WayIn }
  | SqliteFailure;

export type SqliteFailure =
  | { readonly kind: 'missing' }
  /** Another process holds the lock; what was read before may still be shown, as stale. */
  | { readonly kind: 'locked' }
  | { readonly kind: 'unreadable'; readonly reason: string };

export interface ReadonlyOptions {
  readonly files?: FileSystemPort;
  readonly busyMs?: number;
  readonly platform?: NodeJS.Platform;
}

/**
 * Identity and version of a database with its log, for the index: nothing was written since if it is the same.
 * `undefined` if there is no such file. Follows links, as SQLite does.
 */
export function databaseStamp(path: string, files: FileSystemPort = systemFiles): FileStamp | undefined {
  const target = resolveLink(path);
  if (target === undefined) return undefined;
  return look(target, files)?.stamp;
}

/**
 * Runs `query` on a read-only view of the database. Never throws for what is wrong with the file or the
 * query (a column that is gone is `unreadable`); what `query` itself throws goes through. `query` may run
 * more than once.
 */
export function readSqlite<T>(
  path: string,
  query: (database: ReadonlyDatabase) => T,
  options: ReadonlyOptions = {},
): SqliteRead<T> {
  const files = options.files ?? systemFiles;
  const target = resolveLink(path);
  if (target === undefined) return { kind: 'missing' };
  let last: SqliteRead<T> = { kind: 'unreadable', reason: 'it changed at every attempt' };
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const plan = planRead(target, files);
    if (plan.kind !== 'way') return plan;
    last = readOnce(target, plan, query, options);
    // What went wrong while the files changed says nothing about them.
    if (isLasting(last) && !movedOn(target, plan, files)) return last;
    if (last.kind === 'locked') return last;
  }
  return last.kind === 'rows' ? { kind: 'unreadable', reason: 'it changed at every attempt' } : last;
}

/** What a kept reader says: as {@link readSqlite}, or what was read last with the reason why it is old. */
export type KeptRead<T> =
  | SqliteRead<T>
  | { readonly kind: 'stale'; readonly value: T; readonly reason: string };

/**
 * A reader for those that look again and again: it opens nothing while nothing was written, and shows its
 * last good answer while the database is locked or cannot be read (Q2). A database that is gone is gone.
 */
export function keepSqlite<T>(
  path: string,
  query: (database: ReadonlyDatabase) => T,
  options: ReadonlyOptions = {},
): { read(): KeptRead<T> } {
  let last: Extract<SqliteRead<T>, { kind: 'rows' }> | undefined;
  return {
    read() {
      const stamp = databaseStamp(path, options.files);
      if (last !== undefined && stamp !== undefined && sameContent(stamp, last.stamp)) return last;
      const now = readSqlite(path, query, options);
      if (now.kind === 'rows') last = now;
      if (now.kind === 'missing') last = undefined;
      if (now.kind === 'rows' || now.kind === 'missing' || last === undefined) return now;
      return {
        kind: 'stale',
        value: last.value,
        reason: now.kind === 'locked' ? 'it is locked' : now.reason,
      };
    },
  };
}

interface Plan {
  readonly kind: 'way';
  readonly way: WayIn;
  readonly stamp: FileStamp;
}

interface Files {
  readonly database: FileStamp;
  readonly walSize: number;
  readonly hasShm: boolean;
  readonly stamp: FileStamp;
}

function resolveLink(path: string): string | undefined {
  try {
    // SQLite looks for `-wal` beside the target, not beside the link.
    return realpathSync(path);
  } catch {
    // A dangling link, a missing file or a folder that may not be entered: there is nothing to read.
    return undefined;
  }
}

function look(path: string, files: FileSystemPort): Files | undefined {
  const database = tryStat(files, path);
  if (!('size' in database) || database.kind !== 'file') return undefined;
  const wal = tryStat(files, `${path}-wal`);
  const shm = tryStat(files, `${path}-shm`);
  const walSize = 'size' in wal ? wal.size : 0;
  const stamp = {
    size: database.size + walSize,
    mtimeMs: Math.max(database.mtimeMs, 'size' in wal ? wal.mtimeMs : 0),
    ino: database.ino,
    dev: database.dev,
  };
  return { database, walSize, hasShm: 'size' in shm, stamp };
}

function planRead(path: string, files: FileSystemPort): Plan | SqliteFailure {
  const refused = notAFile(tryStat(files, path));
  if (refused?.kind === 'missing') return { kind: 'missing' };
  if (refused !== undefined) return { kind: 'unreadable', reason: refused.kind };
  const found = look(path, files);
  if (found === undefined) return { kind: 'missing' };
  const header = readHeader(path, files);
  if (typeof header === 'string') return { kind: 'unreadable', reason: header };
  return { kind: 'way', way: chooseWay(header.wal, found), stamp: found.stamp };
}

function chooseWay(wal: boolean, found: Files): WayIn {
  if (!wal) return 'locked-read';
  if (found.walSize === 0) return 'immutable';
  return found.hasShm ? 'shared-memory' : 'no-locks';
}

/** Bytes 18 and 19 of the header are 2 in a database that is in WAL mode. */
function readHeader(path: string, files: FileSystemPort): { readonly wal: boolean } | string {
  const header = Buffer.alloc(20);
  try {
    const fd = files.open(path);
    try {
      if (files.read(fd, header, 0, header.length, 0) < header.length) return 'it is not a database';
    } finally {
      files.close(fd);
    }
  } catch (error) {
    const problem = toProblem(error);
    return problem.kind === 'unreadable' ? `it cannot be opened (${problem.code})` : problem.kind;
  }
  if (header.toString('latin1', 0, 16) !== 'SQLite format 3\0') return 'it is not a database';
  return { wal: header[18] === 2 || header[19] === 2 };
}

function readOnce<T>(
  path: string,
  plan: Plan,
  query: (database: ReadonlyDatabase) => T,
  options: ReadonlyOptions,
): SqliteRead<T> {
  let database: Database | undefined;
  try {
    database = open(path, plan.way, options.platform ?? process.platform);
    database.run(`PRAGMA busy_timeout = ${options.busyMs ?? READ_BUSY_MS}`);
    // Keeps the page index in our memory; must come before the first page is read.
    if (plan.way === 'no-locks') database.run('PRAGMA locking_mode = EXCLUSIVE');
    const view = viewOf(database);
    const value = database.transaction(() => query(view))();
    return { kind: 'rows', value, stamp: plan.stamp, way: plan.way };
  } catch (error) {
    return toFailure(error);
  } finally {
    database?.close();
  }
}

function open(path: string, way: WayIn, platform: NodeJS.Platform): Database {
  const flags = constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI;
  return new Database(databaseUri(path, way, platform), flags);
}

/** The SQLite URI of an absolute path; exported for its tests. */
export function databaseUri(path: string, way: WayIn, platform: NodeJS.Platform): string {
  const slashed = platform === 'win32' ? `/${path.replaceAll('\\', '/')}` : path;
  const encoded = slashed.split('/').map(encodeURIComponent).join('/');
  // The colon of a drive letter is no special character of SQLite's URIs, but its code would not be decoded in time.
  const location = platform === 'win32' ? encoded.replace('%3A', ':') : encoded;
  const vfs = platform === 'win32' ? 'win32-none' : 'unix-none';
  const query = {
    'locked-read': 'mode=ro',
    'shared-memory': 'mode=ro&readonly_shm=1',
    'no-locks': `mode=ro&vfs=${vfs}`,
    immutable: 'mode=ro&immutable=1',
  }[way];
  return `file:${location}?${query}`;
}

function viewOf(database: Database): ReadonlyDatabase {
  const rows: ReadonlyDatabase['rows'] = (sql, ...values) =>
    database.query<Record<string, unknown>, SQLQueryBindings[]>(sql).all(...values);
  return {
    rows,
    columns: (table) =>
      new Set(
        rows('SELECT name FROM pragma_table_info(?)', table).flatMap((row) =>
          typeof row['name'] === 'string' ? [row['name']] : [],
        ),
      ),
  };
}

function toFailure(error: unknown): SqliteFailure {
  const code = errorCode(error);
  if (!code.startsWith('SQLITE_')) throw error;
  if (/^SQLITE_(BUSY|LOCKED)/.test(code)) return { kind: 'locked' };
  const reason = error instanceof Error ? error.message : code;
  return { kind: 'unreadable', reason: `${reason} (${code})` };
}

function isLasting<T>(result: SqliteRead<T>): boolean {
  return result.kind === 'rows' || result.kind === 'unreadable';
}

/** Whether the files changed in a way that makes the result worthless. */
function movedOn(path: string, plan: Plan, files: FileSystemPort): boolean {
  const now = look(path, files);
  if (now === undefined) return true;
  // Under a lock of SQLite's own, writers go on beside us and the snapshot holds.
  if (plan.way === 'locked-read') return false;
  if (plan.way === 'shared-memory') return !now.hasShm;
  return !sameContent(now.stamp, plan.stamp) || (plan.way === 'immutable' && now.walSize > 0);
}
