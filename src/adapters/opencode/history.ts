import type { History, HistoryBounds, HistoryEntry } from '../../runtime/feed.ts';
import type { FileSystemPort } from '../../runtime/files/file-system.ts';
import { redact } from '../../runtime/session/redact.ts';
import { clip, oneLine } from '../../runtime/session/text.ts';
import { type ReadonlyDatabase, readSqlite } from '../../runtime/store/readonly-sqlite.ts';
import { readTurnError, toolCall } from './outcome.ts';
import { type ServerApi, splitMessage } from './server-api.ts';
import { numberOf, objectOf, parseJson, textOf } from './values.ts';

const NOTHING: History = { entries: [], more: false, skipped: 0 };
/** One entry takes at most this share of all bytes, so that one long answer does not push out the rest. */
const ENTRY_SHARE = 0.5;
const TOOL_LABEL = 200;
/** Newest parts of one message that are shown. */
const PARTS = 200;

/** The newest entries of a session in the database, oldest first, cleaned and masked. */
export function historyOfDatabase(
  path: string,
  sessionId: string,
  bounds: HistoryBounds,
  options: { readonly files?: FileSystemPort; readonly platform?: NodeJS.Platform } = {},
): History {
  const read = readSqlite(path, (database) => collect(database, sessionId, bounds), options);
  return read.kind === 'rows' ? read.value : NOTHING;
}

/** The same through a server, for a store that isn't on this computer. */
export async function historyOfServer(
  api: ServerApi,
  sessionId: string,
  bounds: HistoryBounds,
): Promise<History> {
  const answer = await api.messages(sessionId, bounds.entries);
  if (answer.kind !== 'ok') return NOTHING;
  const entries = answer.value.flatMap((entry) => {
    const message = splitMessage(entry);
    return message ? entriesOf(message.createdAt, message.info, message.parts) : [];
  });
  return { ...bounded(entries, bounds, answer.next !== undefined), skipped: answer.skipped };
}

function collect(database: ReadonlyDatabase, sessionId: string, bounds: HistoryBounds): History {
  const messages = database.rows(
    `SELECT id, time_created, data FROM message WHERE session_id = ?
      ORDER BY time_created DESC, id DESC LIMIT ?`,
    sessionId,
    bounds.entries + 1,
  );
  const head = Math.max(1_024, bounds.bytes * 2);
  const counts = { skipped: 0 };
  const entries = messages
    .slice(0, bounds.entries)
    .toReversed()
    .flatMap((row) => {
      const info = objectOf(parseJson(textOf(row['data']) ?? ''));
      if (!info) {
        counts.skipped += 1;
        return [];
      }
      return entriesOf(numberOf(row['time_created']), info, partsOf(database, String(row['id']), head));
    });
  return { ...bounded(entries, bounds, messages.length > bounds.entries), skipped: counts.skipped };
}

/** Fields of the parts that are shown, cut in the database: an output may be megabytes. */
function partsOf(database: ReadonlyDatabase, messageId: string, head: number): readonly unknown[] {
  const rows = database.rows(
    `SELECT json_object('type', json_extract(data, '$.type'), 'synthetic', json_extract(data, '$.synthetic'),
        'text', substr(json_extract(data, '$.text'), 1, ?), 'tool', json_extract(data, '$.tool'),
        'state', json_object('input', CASE WHEN length(data) < 65536 THEN json_extract(data, '$.state.input') END)) AS part
      FROM (SELECT id, data FROM part WHERE message_id = ? AND json_valid(data) ORDER BY id DESC LIMIT ${PARTS})
      ORDER BY id`,
    head,
    messageId,
  );
  return rows.map((row) => parseJson(textOf(row['part']) ?? ''));
}

function entriesOf(
  at: number | undefined,
  info: Readonly<Record<string, unknown>>,
  parts: readonly unknown[],
): readonly HistoryEntry[] {
  const role = info['role'] === 'user' ? 'user' : 'assistant';
  const time = at === undefined ? {} : { at };
  const shown = parts.flatMap((value): readonly HistoryEntry[] => {
    const part = objectOf(value);
    const type = part?.['type'];
    if (type === 'text' && !part?.['synthetic']) return entry(role, textOf(part?.['text']) ?? '', time);
    return type === 'tool' && part ? entry('tool', toolLine(part), time) : [];
  });
  const error = readTurnError(info['error']);
  return error ? [...shown, ...entry('system', error.text ?? error.name, time)] : shown;
}

function toolLine(part: Readonly<Record<string, unknown>>): string {
  const { name, command, path, pattern } = toolCall(
    textOf(part['tool']) ?? 'tool',
    objectOf(part['state'])?.['input'],
  );
  const about = command ?? path ?? pattern;
  return about ? `${name}: ${clip(oneLine(about), TOOL_LABEL)}` : name;
}

function entry(
  role: HistoryEntry['role'],
  raw: string,
  time: { readonly at?: number },
): readonly HistoryEntry[] {
  const text = cleanBlock(raw);
  return text === '' ? [] : [{ role, text, ...time }];
}

function bounded(
  entries: readonly HistoryEntry[],
  bounds: HistoryBounds,
  more: boolean,
): Pick<History, 'entries' | 'more'> {
  const newestFirst: HistoryEntry[] = [];
  const size = { bytes: 0 };
  for (const one of entries.toReversed()) {
    const cut = cutTo(one, Math.floor(bounds.bytes * ENTRY_SHARE));
    size.bytes += Buffer.byteLength(cut.text);
    if (newestFirst.length >= bounds.entries || size.bytes > bounds.bytes) {
      return { entries: newestFirst.reverse(), more: true };
    }
    newestFirst.push(cut);
  }
  return { entries: newestFirst.reverse(), more };
}

function cutTo(one: HistoryEntry, limit: number): HistoryEntry {
  if (Buffer.byteLength(one.text) <= limit) return one;
  const mark = '…';
  const bytes = Buffer.from(one.text).subarray(0, Math.max(0, limit - Buffer.byteLength(mark)));
  // A character that was cut in two decodes to a replacement character at the end.
  return { ...one, text: bytes.toString('utf8').replace(/\ufffd$/, '') + mark, cut: true };
}

/** Lines that are safe to print (O4), with the indentation of code kept, secrets masked. */
function cleanBlock(raw: string): string {
  const lines = raw.split(/\r\n|\r|\n/).map((line) => {
    const indent = /^[ \t]*/.exec(line)?.[0].replaceAll('\t', '  ') ?? '';
    return (indent + oneLine(line)).trimEnd();
  });
  return redact(lines.join('\n').replace(/\n{3,}/g, '\n\n')).trim();
}
