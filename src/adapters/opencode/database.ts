import type { FileSystemPort } from '../../runtime/files/file-system.ts';
import { cleanTitle } from '../../runtime/session/text.ts';
import { type ReadonlyDatabase, readSqlite, type SqliteRead } from '../../runtime/store/readonly-sqlite.ts';
import { modelName, ownTitle, type SessionInfo } from './info.ts';
import {
  type MessageRow,
  newestTurn,
  PARTS_PER_TURN,
  type PartRow,
  readMessage,
  readPart,
  type TurnRecord,
} from './rows.ts';
import { numberOf, objectOf, parseJson, present, textOf } from './values.ts';

/** One session of the database. Times are epoch milliseconds. */
export interface StoredSession {
  /** Its title is OpenCode's own, or the first prompt of a session that has none yet. */
  readonly info: SessionInfo;
  /** The newest write of the session, a message or a part: `session.time_updated` stands still during an answer. */
  readonly activityAt: number;
  readonly turn?: TurnRecord;
  readonly usedTokens?: number;
  /** `seq` of the session's durable log; the same number means the same rows. */
  readonly seq?: number;
  /**
   * `lastWriteAt` of an open turn that was seen to be left by everybody. That is for good: whoever could run it had
   * to start before that write.
   */
  readonly goneAt?: number;
  /** Rows of this session that did not fit. */
  readonly skipped?: number;
}

export interface StoredSessions {
  readonly sessions: readonly StoredSession[];
  readonly skipped: number;
}

/** Characters of a column that are taken out of the database: enough for any part's kind, tool and state. */
const HEAD = 8_192;
const TITLE_HEAD = 4_096;
/** Newest messages of a session that are looked at; the prompt of a longer turn is fetched by its id. */
const MESSAGES = 2;
/** The same where those are all prompts. */
const QUEUED_MESSAGES = 12;

/**
 * Reads the sessions of an `opencode.db` (1.18.33's schema, and older ones as far as columns are there) with each
 * one's newest turn. Only `session`, `message`, `part`, `session_message` and `event_sequence` are read, never the
 * tables that hold tokens. `known` gives what is known of an unchanged session, by its id.
 */
export function readSessions(
  path: string,
  known: (id: string, seq: number, updatedAt: number) => StoredSession | undefined,
  options: { readonly files?: FileSystemPort; readonly platform?: NodeJS.Platform } = {},
): SqliteRead<StoredSessions> {
  return readSqlite(path, (database) => collect(database, known), options);
}

function collect(
  database: ReadonlyDatabase,
  known: (id: string, seq: number, updatedAt: number) => StoredSession | undefined,
): StoredSessions {
  const query = listQuery(database);
  const hasV2 = database.columns('session_message').has('seq');
  const rows = query === undefined ? [] : database.rows(query);
  const sessions = rows.flatMap((row) => {
    const info = readRow(row);
    if (!info) return [];
    const seq = numberOf(row['seq']);
    const before = seq === undefined ? undefined : known(info.id, seq, info.updatedAt ?? 0);
    // The session's own columns are always the new ones; what they lack was read from its messages.
    if (before) return [{ ...before, info: { ...before.info, ...info } }];
    const stored = readStored(database, info, hasV2);
    return [seq === undefined ? stored : { ...stored, seq }];
  });
  return { sessions, skipped: rows.length - sessions.length };
}

/** Columns that other releases may lack. */
const OPTIONAL = ['parent_id', 'agent', 'model', 'slug', 'version', 'time_archived'] as const;

function listQuery(database: ReadonlyDatabase): string | undefined {
  const columns = database.columns('session');
  if (!columns.has('id') || !columns.has('directory')) return undefined;
  const optional = OPTIONAL.filter((name) => columns.has(name)).map((name) =>
    name === 'model' ? `substr(s.model, 1, 2048) AS model` : `s.${name}`,
  );
  const hasLog = database.columns('event_sequence').has('seq');
  return `SELECT s.id, substr(s.title, 1, ${TITLE_HEAD}) AS title, s.directory, s.time_created, s.time_updated
    ${optional.map((name) => `, ${name}`).join('')}
    ${hasLog ? ', e.seq FROM session s LEFT JOIN event_sequence e ON e.aggregate_id = s.id' : ' FROM session s'}`;
}

function readRow(row: Readonly<Record<string, unknown>>): SessionInfo | undefined {
  const id = textOf(row['id']);
  if (!id?.startsWith('ses')) return undefined;
  const model = textOf(row['model']);
  return present<SessionInfo>({
    id,
    title: ownTitle(textOf(row['title'])),
    parentId: textOf(row['parent_id']),
    directory: textOf(row['directory']),
    agent: textOf(row['agent']),
    model: model === undefined ? undefined : modelName(parseJson(model)),
    slug: textOf(row['slug']),
    version: textOf(row['version']),
    createdAt: numberOf(row['time_created']),
    updatedAt: numberOf(row['time_updated']),
    archivedAt: numberOf(row['time_archived']),
  });
}

/** A message that has ended well, or in an error, says so itself; any other is judged by what it is made of. */
function needsParts({ completedAt, finish, error }: MessageRow): boolean {
  if (error) return false;
  return completedAt === undefined || finish === undefined || finish === 'tool-calls';
}

function readStored(database: ReadonlyDatabase, info: SessionInfo, hasV2: boolean): StoredSession {
  const messages = readMessages(database, info.id);
  if (messages.rows.length === 0 && hasV2) {
    const v2 = readV2(database, info);
    if (v2) return v2;
  }
  const newest = messages.rows.find(({ role }) => role === 'assistant');
  const parts = newest && needsParts(newest) ? readParts(database, newest.id) : { rows: [], skipped: 0 };
  const turn = newestTurn(messages.rows, parts.rows);
  const answer = messages.rows.find((message) => message.usedTokens !== undefined);
  const skipped = messages.skipped + parts.skipped;
  const model = info.model ?? messages.rows.find((message) => message.model !== undefined)?.model;
  const title = info.title ?? cleanTitle(firstPrompt(database, info.id) ?? '');
  return present<StoredSession>({
    info: { ...info, ...(model ? { model } : {}), ...(title ? { title } : {}) },
    activityAt: Math.max(info.updatedAt ?? info.createdAt ?? 0, turn?.lastWriteAt ?? 0),
    turn,
    usedTokens: answer?.usedTokens,
    seq: undefined,
    skipped: skipped > 0 ? skipped : undefined,
  });
}

/**
 * Named fields only, in one call and so one parse: a user message carries whole diffs in its summary. Invalid JSON
 * gives null.
 */
const MESSAGE_FIELDS = `id, time_created, time_updated, CASE WHEN json_valid(data) THEN json_extract(data,
  '$.role', '$.parentID', '$.time.completed', '$.finish', '$.error.name', '$.error.data.message',
  '$.providerID', '$.modelID', '$.model', '$.tokens') END AS fields`;

interface Read<T> {
  readonly rows: readonly T[];
  readonly skipped: number;
}

/** The newest messages, newest first, and the prompt that the newest answer belongs to. */
function readMessages(database: ReadonlyDatabase, sessionId: string): Read<MessageRow> {
  const few = newestMessages(database, sessionId, MESSAGES);
  // Several prompts in a row: the answer before them says how things stood.
  const { rows, skipped } = isAnswered(few.rows) ? few : newestMessages(database, sessionId, QUEUED_MESSAGES);
  const parentId = rows.find(({ role }) => role === 'assistant')?.parentId;
  if (parentId === undefined || rows.some(({ id }) => id === parentId)) return { rows, skipped };
  const parent = database.rows(`SELECT ${MESSAGE_FIELDS} FROM message WHERE id = ?`, parentId);
  return { rows: [...rows, ...parent.flatMap((row) => toMessage(row) ?? [])], skipped };
}

function isAnswered(rows: readonly MessageRow[]): boolean {
  return rows.length < MESSAGES || rows.some(({ role }) => role === 'assistant');
}

function newestMessages(database: ReadonlyDatabase, sessionId: string, limit: number): Read<MessageRow> {
  const found = database.rows(
    `SELECT ${MESSAGE_FIELDS} FROM message WHERE session_id = ? ORDER BY time_created DESC, id DESC LIMIT ${limit}`,
    sessionId,
  );
  const rows = found.flatMap((row) => toMessage(row) ?? []);
  return { rows, skipped: found.length - rows.length };
}

function toMessage(row: Readonly<Record<string, unknown>>): MessageRow | undefined {
  const id = textOf(row['id']);
  const fields = parseJson(textOf(row['fields']) ?? '');
  if (id === undefined || !Array.isArray(fields)) return undefined;
  const [role, parentID, completed, finish, name, message, providerID, modelID, model, tokens] =
    fields as readonly unknown[];
  const data = { role, parentID, time: { completed }, finish, error: { name, data: { message } } };
  const createdAt = numberOf(row['time_created']) ?? 0;
  const read = readMessage(id, createdAt, numberOf(row['time_updated']) ?? createdAt, data);
  if (!read) return undefined;
  const used = modelName(textOf(modelID) === undefined ? model : { providerID, modelID });
  const usedTokens = tokensOf(tokens);
  return { ...read, ...(used ? { model: used } : {}), ...(usedTokens ? { usedTokens } : {}) };
}

/** What the newest answer says stood in its context; 0 in one that has only begun. */
function tokensOf(value: unknown): number | undefined {
  const tokens = objectOf(value);
  const cache = objectOf(tokens?.['cache']);
  const total = numberOf(tokens?.['total']);
  if (total !== undefined && total > 0) return total;
  const sum = [
    tokens?.['input'],
    tokens?.['output'],
    tokens?.['reasoning'],
    cache?.['read'],
    cache?.['write'],
  ]
    .map((part) => numberOf(part) ?? 0)
    .reduce((all, part) => all + part, 0);
  return sum > 0 ? sum : undefined;
}

/** The newest parts of a message, newest first, each by the head of its data. */
function readParts(database: ReadonlyDatabase, messageId: string): Read<PartRow> {
  const found = database.rows(
    `SELECT time_updated, substr(data, 1, ${HEAD}) AS head FROM part WHERE message_id = ?
      ORDER BY id DESC LIMIT ${PARTS_PER_TURN}`,
    messageId,
  );
  const rows = found.flatMap((row) => toPart(row) ?? []);
  return { rows, skipped: found.length - rows.length };
}

function toPart(row: Readonly<Record<string, unknown>>): PartRow | undefined {
  const head = textOf(row['head']) ?? '';
  const updatedAt = numberOf(row['time_updated']) ?? 0;
  return readPart(updatedAt, head.length < HEAD ? parseJson(head) : parseHead(head));
}

/**
 * What the beginning of a part too large to load tells: its kind, the tool's name and whether it runs. OpenCode
 * writes these before the input and the output.
 */
export function parseHead(head: string): unknown {
  const value = (key: string): string | undefined =>
    new RegExp(`"${key}":"([^"\\\\]{1,200})"`).exec(head)?.[1];
  const [state = ''] = /"state":\s*\{.*/s.exec(head) ?? [];
  const status = /"status":"([a-z]{1,20})"/.exec(state)?.[1];
  const type = /^\{"type":"([^"]{1,40})"/.exec(head)?.[1] ?? value('type');
  return { type, tool: value('tool'), ...(state ? { state: { status } } : {}) };
}

/** The first words that a person typed, for a session that OpenCode has not named yet. */
function firstPrompt(database: ReadonlyDatabase, sessionId: string): string | undefined {
  const [first] = database.rows(
    'SELECT id FROM message WHERE session_id = ? ORDER BY time_created, id LIMIT 1',
    sessionId,
  );
  const messageId = textOf(first?.['id']);
  if (messageId === undefined) return undefined;
  const parts = database.rows(
    `SELECT CASE WHEN json_valid(data) AND json_extract(data, '$.type') = 'text'
        AND coalesce(json_extract(data, '$.synthetic'), 0) = 0
      THEN substr(json_extract(data, '$.text'), 1, ${TITLE_HEAD}) END AS text
      FROM part WHERE message_id = ? ORDER BY id LIMIT 4`,
    messageId,
  );
  return parts.map((part) => textOf(part['text'])).find((text) => text !== undefined);
}

/** A session of the `/api/session` routes keeps its messages in a table of its own. */
function readV2(database: ReadonlyDatabase, info: SessionInfo): StoredSession | undefined {
  const rows = database.rows(
    `SELECT type, time_created, time_updated, substr(data, 1, ${HEAD}) AS head FROM session_message
      WHERE session_id = ? AND type IN ('user', 'assistant') ORDER BY seq DESC LIMIT ${MESSAGES}`,
    info.id,
  );
  const messages = rows.flatMap((row, index) => v2Message(row, rows.length - index) ?? []);
  const turn = newestTurn(
    messages,
    messages[0]?.role === 'assistant' ? [{ updatedAt: 0, type: 'text' }] : [],
  );
  if (!turn) return undefined;
  return { info, activityAt: Math.max(info.updatedAt ?? 0, turn.lastWriteAt), turn: { ...turn, v2: true } };
}

function v2Message(row: Readonly<Record<string, unknown>>, order: number): MessageRow | undefined {
  const head = textOf(row['head']) ?? '';
  const data = head.length < HEAD ? objectOf(parseJson(head)) : v2Head(head);
  const time = objectOf(data?.['time']);
  const createdAt = numberOf(row['time_created']) ?? numberOf(time?.['created']) ?? 0;
  const updatedAt = numberOf(row['time_updated']) ?? numberOf(time?.['completed']) ?? createdAt;
  return readMessage(`v2_${order}`, createdAt, updatedAt, { ...data, role: row['type'] });
}

function v2Head(head: string): Readonly<Record<string, unknown>> {
  const completed = /"completed":(\d{1,16})/.exec(head)?.[1];
  // The end of a long answer lies beyond the head: it is taken for one that went well.
  return completed === undefined ? {} : { time: { completed: Number(completed) }, finish: 'stop' };
}
