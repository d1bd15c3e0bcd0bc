import type { ScanProblem } from '../../runtime/feed.ts';
import type { FileSystemPort } from '../../runtime/files/file-system.ts';
import { databaseStamp } from '../../runtime/store/readonly-sqlite.ts';
import type { FileStamp, IndexEntry, SessionIndex } from '../../runtime/store/session-index.ts';
import { readSessions, type StoredSession } from './database.ts';
import type { OpencodeHome } from './homes.ts';
import type { TurnError } from './outcome.ts';
import type { TurnRecord } from './rows.ts';
import { readStorage } from './storage.ts';
import { objectOf, parseJson } from './values.ts';

/** Raise the number when the form of {@link StoredSession} or what it is derived from changes. */
export const INDEX_SCOPE = 'opencode/1';
/** A database written this shortly before it was read may change again without a new time, milliseconds. */
const SETTLE_MS = 2_000;

/** What a home holds. */
export interface StoreRead {
  /** `none`: there is no store at all. */
  readonly source: 'database' | 'storage' | 'none';
  readonly sessions: readonly StoredSession[];
  readonly problems: readonly ScanProblem[];
}

export interface StoreOptions {
  readonly files: FileSystemPort;
  readonly platform: NodeJS.Platform;
  /** Epoch milliseconds. */
  readonly now: number;
  readonly index?: SessionIndex;
}

/**
 * The sessions of a home. A database whose files have not changed is not opened again; of a changed one only the
 * sessions whose log has grown are read. Locked: what was read last, said to be stale (Q2). Corrupt: the files of
 * the older layout, else what was read last.
 */
export function readStore(home: OpencodeHome, options: StoreOptions): StoreRead {
  const stamp = databaseStamp(home.database, options.files);
  if (!stamp) return fromStorage(home, options.files);
  const kept = options.index ? keptSessions(options.index, home.database) : undefined;
  if (kept?.settled && sameStamp(kept.stamp, stamp)) {
    return {
      source: 'database',
      sessions: [...kept.sessions.values()],
      problems: problemsOf(home, kept.skipped),
    };
  }
  const known = (id: string, seq: number, updatedAt: number): StoredSession | undefined => {
    const session = kept?.sessions.get(id);
    return session?.seq === seq && session.info.updatedAt === updatedAt ? session : undefined;
  };
  const read = readSessions(home.database, known, options);
  if (read.kind === 'rows') {
    const { sessions, skipped } = read.value;
    if (options.index)
      keep(options.index, home.database, read.stamp, read.value, kept?.sessions, options.now);
    const lost = sessions.reduce((sum, session) => sum + (session.skipped ?? 0), skipped);
    return { source: 'database', sessions: sessions.map(asKept), problems: problemsOf(home, lost) };
  }
  if (read.kind === 'missing') return fromStorage(home, options.files);
  const reason = read.kind === 'locked' ? 'another process holds its lock' : read.reason;
  const older = read.kind === 'locked' ? undefined : fromStorage(home, options.files);
  return asLastSeen(home, reason, kept, older);
}

function asLastSeen(
  home: OpencodeHome,
  reason: string,
  kept: Kept | undefined,
  older: StoreRead | undefined,
): StoreRead {
  const said = (what: string): ScanProblem => ({
    subject: home.database,
    reason: `${reason}; ${what}`,
    skipped: 0,
  });
  if (older && older.sessions.length > 0) {
    return { ...older, problems: [said('showing what the older storage files list'), ...older.problems] };
  }
  if (!kept) return { source: 'database', sessions: [], problems: [said('its sessions are not shown')] };
  return {
    source: 'database',
    sessions: [...kept.sessions.values()],
    problems: [said('stale: showing what was read last')],
  };
}

function problemsOf(home: OpencodeHome, skipped: number): readonly ScanProblem[] {
  return skipped > 0 ? [{ subject: home.database, reason: 'rows that could not be read', skipped }] : [];
}

function fromStorage(home: OpencodeHome, files: FileSystemPort): StoreRead {
  const { sessions, skipped, exists } = readStorage(home.storage, files);
  return {
    source: exists ? 'storage' : 'none',
    sessions,
    problems: skipped > 0 ? [{ subject: home.storage, reason: 'files that could not be read', skipped }] : [],
  };
}

interface Kept {
  readonly stamp: FileStamp;
  /** False while the database was being written when it was read. */
  readonly settled: boolean;
  readonly skipped: number;
  readonly sessions: ReadonlyMap<string, StoredSession>;
}

function keptSessions(index: SessionIndex, database: string): Kept | undefined {
  const entries = index.load(INDEX_SCOPE);
  const head = entries.get(database);
  if (!head) return undefined;
  const about = objectOf(parseJson(head.value));
  const prefix = sessionPath(database, '');
  const sessions = new Map<string, StoredSession>();
  for (const [path, entry] of entries) {
    if (!path.startsWith(prefix)) continue;
    const session = readKept(entry.value);
    if (session) sessions.set(session.info.id, session);
  }
  // A count that does not fit means that another process has rewritten a part: read all again.
  if (about?.['sessions'] !== sessions.size) return undefined;
  return {
    stamp: head.stamp,
    settled: about['settled'] === true,
    skipped: Number(about['skipped'] ?? 0),
    sessions,
  };
}

/** The error of a session as the index has it: a list says the same whether its rows were read for it or not. */
function asKept(session: StoredSession): StoredSession {
  const end = session.turn?.end;
  const error = end?.error;
  if (!session.turn || !end || !error) return session;
  return { ...session, turn: { ...session.turn, end: { ...end, error: quietError(error) } } };
}

/** What we wrote ourselves under this scope; anything else only makes the session be read again. */
function readKept(value: string): StoredSession | undefined {
  const parsed = objectOf(parseJson(value));
  const id = objectOf(parsed?.['info'])?.['id'];
  return parsed && typeof id === 'string' && typeof parsed['activityAt'] === 'number'
    ? (parsed as unknown as StoredSession)
    : undefined;
}

function keep(
  index: SessionIndex,
  database: string,
  stamp: FileStamp,
  read: { readonly sessions: readonly StoredSession[]; readonly skipped: number },
  before: ReadonlyMap<string, StoredSession> | undefined,
  now: number,
): void {
  const alive = new Set([database]);
  for (const session of read.sessions) {
    const path = sessionPath(database, session.info.id);
    alive.add(path);
    const value = JSON.stringify(withoutContent(session));
    const last = before?.get(session.info.id);
    if (!last || JSON.stringify(withoutContent(last)) !== value)
      index.stage(INDEX_SCOPE, path, { stamp, value });
  }
  const lost = read.sessions.reduce((sum, session) => sum + (session.skipped ?? 0), read.skipped);
  const about = { sessions: read.sessions.length, settled: now - stamp.mtimeMs > SETTLE_MS, skipped: lost };
  const head: IndexEntry = { stamp, value: JSON.stringify(about) };
  index.stage(INDEX_SCOPE, database, head);
  index.prune(INDEX_SCOPE, alive);
}

/** Remembers which open turns nobody can be working on any more, so that no process need be looked at for them. */
export function rememberGone(
  index: SessionIndex,
  home: OpencodeHome,
  sessions: readonly StoredSession[],
): void {
  const entries = index.load(INDEX_SCOPE);
  for (const session of sessions) {
    const path = sessionPath(home.database, session.info.id);
    const entry = entries.get(path);
    if (!entry || !session.turn) continue;
    const value = JSON.stringify(withoutContent({ ...session, goneAt: session.turn.lastWriteAt }));
    index.stage(INDEX_SCOPE, path, { ...entry, value });
  }
}

function sessionPath(database: string, id: string): string {
  return `${database}#${id}`;
}

/** Errors whose message is the provider's own; any other may quote the session (a failed query holds its rows). */
const PROVIDER_ERRORS = /^(?:APIError|ProviderAuthError|ContextOverflowError|ContentFilterError)$/;

/** The index holds cleaned titles and states, no other content: no arguments of a call, no quoted rows. */
function withoutContent(session: StoredSession): StoredSession {
  return session.turn ? { ...session, turn: quietTurn(session.turn) } : session;
}

function quietError(error: TurnError): TurnError {
  return PROVIDER_ERRORS.test(error.name) ? error : { name: error.name };
}

function quietTurn(turn: TurnRecord): TurnRecord {
  const error = turn.end?.error;
  const quiet = error ? { error: quietError(error) } : {};
  return {
    ...turn,
    ...(turn.doing ? { doing: { ...turn.doing, call: { name: turn.doing.call.name } } } : {}),
    ...(turn.end ? { end: { ...turn.end, ...quiet } } : {}),
    ...(turn.before ? { before: quietTurn(turn.before) } : {}),
  };
}

function sameStamp(a: FileStamp, b: FileStamp): boolean {
  return a.size === b.size && a.mtimeMs === b.mtimeMs && a.ino === b.ino && a.dev === b.dev;
}
