import type { ScanProblem } from '../../runtime/feed.ts';
import { type FileSystemPort, tryNames } from '../../runtime/files/file-system.ts';
import { cleanTitle } from '../../runtime/session/text.ts';
import { databaseStamp, type ReadonlyDatabase, readSqlite } from '../../runtime/store/readonly-sqlite.ts';
import type { SessionIndex } from '../../runtime/store/session-index.ts';
import { asFields, type Fields, objectOf, parseFields, textOf } from './fields.ts';
import { type CodexHome, joinPath } from './homes.ts';
import { isInjected } from './records.ts';
import type { TurnContext } from './rollout.ts';
import { sameStamp } from './titles.ts';

/** What the state database adds to the rollouts. It is never required. */
export interface ThreadTable {
  /** Names that were given to threads. */
  readonly names: ReadonlyMap<string, string>;
  /** First prompts, cleaned. */
  readonly prompts: ReadonlyMap<string, string>;
  /** Parent thread by sub-agent thread. */
  readonly parents: ReadonlyMap<string, string>;
  /** Last model and folder. */
  readonly contexts: ReadonlyMap<string, TurnContext>;
}

export const NO_TABLE: ThreadTable = {
  names: new Map(),
  prompts: new Map(),
  parents: new Map(),
  contexts: new Map(),
};

/** The schema of the stored values. */
export const STATE_SCOPE = 'codex-state/1';
/** Rows that are read at most, newest first. */
const MAX_ROWS = 100_000;
/** Characters of a prompt that a title may need. */
const PROMPT_CHARS = 2_048;

/**
 * Reads `state_<n>.sqlite`, of several the one with the highest schema number. A database that is locked, corrupt or
 * of a schema we don't know costs titles only: what the index remembers stands in, and the reason is a problem.
 */
export function readThreadTable(
  home: CodexHome,
  files: FileSystemPort,
  platform: NodeJS.Platform,
  index: SessionIndex | undefined,
): { readonly table: ThreadTable; readonly problem?: ScanProblem } {
  const path = newestDatabase(home, files, platform);
  const stamp = path === undefined ? undefined : databaseStamp(path, files);
  if (path === undefined || stamp === undefined) return { table: NO_TABLE };
  const known = index?.load(STATE_SCOPE).get(path);
  if (known && sameStamp(known.stamp, stamp)) return { table: tableFromText(known.value) };
  const read = readSqlite(path, queryThreads, { files, platform });
  if (read.kind === 'rows') {
    index?.stage(STATE_SCOPE, path, { stamp: read.stamp, value: tableToText(read.value) });
    return { table: read.value };
  }
  const table = known ? tableFromText(known.value) : NO_TABLE;
  if (read.kind === 'missing') return { table };
  const reason =
    read.kind === 'locked'
      ? 'it is locked by Codex; titles may be stale'
      : `${read.reason}; titles come from the rollouts`;
  return { table, problem: { subject: path, reason, skipped: 0 } };
}

function newestDatabase(
  home: CodexHome,
  files: FileSystemPort,
  platform: NodeJS.Platform,
): string | undefined {
  const numbered = tryNames(files, home.root).names.flatMap((name) => {
    const version = /^state_(\d+)\.sqlite$/.exec(name)?.[1] ?? (name === 'state.sqlite' ? '0' : undefined);
    return version === undefined ? [] : [{ name, version: Number(version) }];
  });
  const newest = numbered.sort((a, b) => b.version - a.version)[0];
  return newest ? joinPath(platform, home.root, newest.name) : undefined;
}

function queryThreads(database: ReadonlyDatabase): ThreadTable {
  const columns = database.columns('threads');
  if (!columns.has('id')) return NO_TABLE;
  const known = ['name', 'first_user_message', 'preview', 'title', 'model', 'cwd'];
  const wanted = known.filter((column) => columns.has(column));
  const selected = wanted.map((column) => `substr(${column}, 1, ${PROMPT_CHARS}) AS ${column}`);
  const order = columns.has('updated_at') ? 'ORDER BY updated_at DESC' : '';
  const rows = database.rows(
    `SELECT id${selected.map((text) => `, ${text}`).join('')} FROM threads ${order} LIMIT ${MAX_ROWS}`,
  );
  return {
    names: new Map(rows.flatMap((row) => pair(row, cleanTitle(textOf(row, 'name') ?? '')))),
    prompts: new Map(rows.flatMap((row) => pair(row, promptOf(row)))),
    parents: queryParents(database),
    contexts: new Map(rows.flatMap((row) => context(textOf(row, 'id'), row))),
  };
}

function context(id: string | undefined, row: Fields): [string, TurnContext][] {
  const model = textOf(row, 'model');
  const cwd = textOf(row, 'cwd');
  if (!id || (!model && !cwd)) return [];
  return [[id.toLowerCase(), { ...(model ? { model } : {}), ...(cwd ? { cwd } : {}) }]];
}

function pair(row: Fields, value: string | undefined): [string, string][] {
  const id = textOf(row, 'id');
  return id && value ? [[id.toLowerCase(), value]] : [];
}

/** The first prompt; `preview` and `title` hold it too, the latter also in versions without a name. */
function promptOf(row: Fields): string | undefined {
  const texts = [textOf(row, 'first_user_message'), textOf(row, 'preview'), textOf(row, 'title')];
  const real = texts.find((text) => text !== undefined && !isInjected(text));
  return real === undefined ? undefined : cleanTitle(real);
}

function queryParents(database: ReadonlyDatabase): ReadonlyMap<string, string> {
  const columns = database.columns('thread_spawn_edges');
  if (!columns.has('child_thread_id') || !columns.has('parent_thread_id')) return new Map();
  const rows = database.rows(
    `SELECT child_thread_id, parent_thread_id FROM thread_spawn_edges LIMIT ${MAX_ROWS}`,
  );
  return new Map(
    rows.flatMap((row): [string, string][] => {
      const child = textOf(row, 'child_thread_id');
      const parent = textOf(row, 'parent_thread_id');
      return child && parent ? [[child.toLowerCase(), parent.toLowerCase()]] : [];
    }),
  );
}

function tableToText(table: ThreadTable): string {
  return JSON.stringify({
    names: Object.fromEntries(table.names),
    prompts: Object.fromEntries(table.prompts),
    parents: Object.fromEntries(table.parents),
    contexts: Object.fromEntries(table.contexts),
  });
}

function tableFromText(text: string): ThreadTable {
  const fields = parseFields(text);
  const mapOf = (key: string) =>
    new Map(
      Object.entries(objectOf(fields, key) ?? {}).filter(
        (entry): entry is [string, string] => typeof entry[1] === 'string',
      ),
    );
  const contexts = Object.entries(objectOf(fields, 'contexts') ?? {}).flatMap(([id, row]) =>
    context(id, asFields(row) ?? {}),
  );
  return {
    names: mapOf('names'),
    prompts: mapOf('prompts'),
    parents: mapOf('parents'),
    contexts: new Map(contexts),
  };
}
