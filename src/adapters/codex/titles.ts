import type { FileSystemPort } from '../../runtime/files/file-system.ts';
import { tryStat } from '../../runtime/files/file-system.ts';
import type { FileReader } from '../../runtime/files/head-tail.ts';
import { cleanTitle } from '../../runtime/session/text.ts';
import type { SessionIndex } from '../../runtime/store/session-index.ts';
import { asFields, parseFields, textOf } from './fields.ts';

/** Names by thread id. */
export type Names = ReadonlyMap<string, string>;

/** The schema of the stored values. */
export const NAMES_SCOPE = 'codex-names/1';
/** Lines are about 120 bytes; older renames than these are also in the state database. */
const NAMES_CAP = 8 * 1024 * 1024;

/**
 * `session_index.jsonl`: titles that Codex made and renames of interactive threads, appended; the last line of an id
 * is its name. Never read again while it is unchanged.
 */
export function readSessionNames(
  path: string,
  reader: FileReader,
  files: FileSystemPort,
  index: SessionIndex | undefined,
): Names {
  const stat = tryStat(files, path);
  if (!('size' in stat)) return new Map();
  const stamp = { size: stat.size, mtimeMs: stat.mtimeMs, ino: stat.ino, dev: stat.dev };
  const known = index?.load(NAMES_SCOPE).get(path);
  if (known && sameStamp(known.stamp, stamp)) return namesFromText(known.value);
  const read = reader.read(
    path,
    (file) =>
      collectNames(file.tail({ cap: NAMES_CAP, enough: () => false }).lines.map((line) => line.record)),
    stat,
  );
  if (read.kind !== 'read') return known ? namesFromText(known.value) : new Map();
  index?.stage(NAMES_SCOPE, path, { stamp, value: JSON.stringify(Object.fromEntries(read.value)) });
  return read.value;
}

function collectNames(records: readonly unknown[]): Map<string, string> {
  const names = new Map<string, string>();
  for (const record of records) {
    const fields = asFields(record);
    const id = textOf(fields, 'id');
    const name = cleanTitle(textOf(fields, 'thread_name') ?? '');
    if (id && name) names.set(id.toLowerCase(), name);
  }
  return names;
}

function namesFromText(text: string): Names {
  const fields = parseFields(text) ?? {};
  return new Map(
    Object.entries(fields).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

/** Two equal stamps mean: nothing to read. */
export function sameStamp(
  a: { size: number; mtimeMs: number; ino: number; dev: number },
  b: typeof a,
): boolean {
  return a.size === b.size && a.mtimeMs === b.mtimeMs && a.ino === b.ino && a.dev === b.dev;
}

/** Where a title can come from, best first. */
export interface TitleSources {
  /** Of `session_index.jsonl` or the state database: the program's own or the user's. */
  readonly name?: string | undefined;
  /** The thread's first real prompt. */
  readonly prompt?: string | undefined;
  /** A sub-agent's nickname. */
  readonly nickname?: string | undefined;
  /** Of the thread that it was forked from, when its own has no prompt yet. */
  readonly parentTitle?: string | undefined;
}

/** The title of a thread (X1): a name, else its own prompt, else where it comes from. */
export function titleOf(sources: TitleSources): string | undefined {
  return (
    sources.name ??
    sources.prompt ??
    (sources.nickname ? cleanTitle(sources.nickname) : undefined) ??
    sources.parentTitle
  );
}
