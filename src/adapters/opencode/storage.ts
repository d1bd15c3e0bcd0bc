import { posix } from 'node:path';
import { type FileSystemPort, tryNames, tryStat } from '../../runtime/files/file-system.ts';
import type { StoredSession } from './database.ts';
import { readSessionInfo } from './info.ts';
import { parseJson } from './values.ts';

/** Files of the older layout that are read at most, newest first, and the bytes of each. */
const MAX_FILES = 2_000;
const MAX_BYTES = 64 * 1024;
const MAX_DEPTH = 3;

/** A `session_diff` file of a session, for its `native` facts (`cli-surface.md` §5). */
export interface DiffFile {
  readonly name: string;
  readonly bytes: number;
}

export interface StorageRead {
  readonly exists: boolean;
  readonly sessions: readonly (StoredSession & { readonly diff?: DiffFile })[];
  readonly skipped: number;
}

interface Found {
  readonly path: string;
  readonly name: string;
  readonly size: number;
  readonly mtimeMs: number;
}

/**
 * Sessions of the layout before `opencode.db`: one JSON file each under `storage/session/`, else only the names in
 * `storage/session_diff/`. They say nothing of a turn, so their state is unknown.
 */
export function readStorage(storage: string, files: FileSystemPort): StorageRead {
  if (!('size' in tryStat(files, storage))) return { exists: false, sessions: [], skipped: 0 };
  const described = walk(posix.join(storage, 'session'), files, 0).filter((file) => isSessionFile(file.name));
  const read = newest(described).map((file) => readDescribed(file, files));
  const known = new Map(read.flatMap((session) => (session ? [[session.info.id, session]] : [])));
  const diffs = newest(walk(posix.join(storage, 'session_diff'), files, MAX_DEPTH)).filter((file) =>
    isSessionFile(file.name),
  );
  for (const file of diffs) {
    const id = file.name.slice(0, -'.json'.length);
    const session = known.get(id) ?? { info: { id, updatedAt: file.mtimeMs }, activityAt: file.mtimeMs };
    known.set(id, { ...session, diff: { name: file.name, bytes: file.size } });
  }
  return { exists: true, sessions: [...known.values()], skipped: read.filter((session) => !session).length };
}

function isSessionFile(name: string): boolean {
  return /^ses_[A-Za-z0-9]{1,64}\.json$/.test(name);
}

function walk(folder: string, files: FileSystemPort, depth: number): readonly Found[] {
  return tryNames(files, folder).names.flatMap((name) => {
    const path = posix.join(folder, name);
    const stat = tryStat(files, path);
    if (!('size' in stat)) return [];
    if (stat.kind === 'file') return [{ path, name, size: stat.size, mtimeMs: stat.mtimeMs }];
    return stat.kind === 'folder' && depth < MAX_DEPTH ? walk(path, files, depth + 1) : [];
  });
}

function newest(found: readonly Found[]): readonly Found[] {
  return [...found].sort((a, b) => b.mtimeMs - a.mtimeMs).slice(0, MAX_FILES);
}

function readDescribed(
  file: Found,
  files: FileSystemPort,
): (StoredSession & { readonly diff?: DiffFile }) | undefined {
  const info = readSessionInfo(parseJson(readText(file, files)));
  if (!info) return undefined;
  return { info, activityAt: Math.max(info.updatedAt ?? 0, info.createdAt ?? 0) || file.mtimeMs };
}

function readText(file: Found, files: FileSystemPort): string {
  if (file.size > MAX_BYTES) return '';
  const bytes = Buffer.alloc(file.size);
  try {
    const fd = files.open(file.path);
    try {
      return bytes.toString('utf8', 0, files.read(fd, bytes, 0, bytes.length, 0));
    } finally {
      files.close(fd);
    }
  } catch {
    // Counted by the caller as a file that does not fit.
    return '';
  }
}
