import { join } from 'node:path';
import { JOURNAL } from '../../limits.ts';
import type { JournalFiles } from './files.ts';
import { compacted, type JournalRead } from './read.ts';
import { idOfName } from './record.ts';

/**
 * How a journal is rewritten or removed without losing a line that a hook appends at the same moment. The
 * file is first renamed away: hooks that come later make a new one, and one that had it open still writes into what
 * was set aside. What is to stay goes back under the old name, beside whatever came meanwhile; what is set aside is
 * looked at until it has been quiet, and late lines are carried over.
 */
export interface Aside {
  readonly path: string;
  /** The journal it was. */
  readonly journal: string;
  /** Bytes that are taken care of. */
  readonly offset: number;
  /** Epoch milliseconds. */
  readonly since: number;
}

const ASIDE = /^\.(.+\.jsonl)\.\d+\.aside$/;

/** The journal's name in a set-aside file's name; `undefined` for any other file. */
export function journalOfAside(name: string): string | undefined {
  const journal = ASIDE.exec(name)?.[1];
  return journal !== undefined && idOfName(journal) !== undefined ? journal : undefined;
}

/** A temporary file of ours (S-520). */
export function isTemporary(name: string): boolean {
  return name.startsWith('.') && name.endsWith('.tmp');
}

const counter = { next: 0 };

function asideName(name: string, now: number): string {
  counter.next += 1;
  return `.${name}.${now}${String(counter.next % 1_000).padStart(3, '0')}.aside`;
}

export interface Rewritten {
  readonly aside: Aside;
  /** Bytes that were kept. */
  readonly size: number;
  /**
   * Where reading goes on: behind what was kept, at the late lines that nobody has read. At the beginning where a
   * hook has begun a new file meanwhile; then all is read once more, and the engine knows what it has seen.
   */
  readonly resumeAt: number;
}

/**
 * Compacts a journal that was read to its end (S-528). `undefined`: it has changed since the read, and is left as it
 * is for a later pass. Throws what the file system throws; nothing is lost then, a set-aside file is found again.
 */
export function compactJournal(
  files: JournalFiles,
  folder: string,
  name: string,
  read: JournalRead,
  now: number,
): Rewritten | undefined {
  const path = join(folder, name);
  if (!isUnchanged(files, path, read)) return undefined;
  const moved = moveAway(files, folder, name, read.next, now);
  const kept = Buffer.from(compacted(read), 'utf8');
  const alone = putBack(files, folder, name, Buffer.concat([kept, moved.late]));
  return { aside: moved.aside, size: kept.length, resumeAt: alone ? kept.length : 0 };
}

/** Removes a journal; lines that a hook appended since the read are put back. */
export function removeJournal(
  files: JournalFiles,
  folder: string,
  name: string,
  consumed: number,
  now: number,
): Aside {
  const moved = moveAway(files, folder, name, consumed, now);
  if (moved.late.length > 0) putBack(files, folder, name, moved.late);
  return moved.aside;
}

function isUnchanged(files: JournalFiles, path: string, read: JournalRead): boolean {
  const stat = files.stat(path);
  return (
    stat?.kind === 'file' &&
    stat.size === read.stat.size &&
    stat.ino === read.stat.ino &&
    read.next === stat.size
  );
}

/** Renames the journal away and reads what it gained since it was read. */
function moveAway(
  files: JournalFiles,
  folder: string,
  name: string,
  consumed: number,
  now: number,
): { readonly aside: Aside; readonly late: Buffer } {
  const path = join(folder, asideName(name, now));
  files.rename(join(folder, name), path);
  const late = wholeLines(files.read(path, consumed, JOURNAL.readBytes).bytes);
  return { aside: { path, journal: name, offset: consumed + late.length, since: now }, late };
}

/** A reader may see the first part of a line that is being written; the rest of it is carried over with it later. */
function wholeLines(bytes: Buffer): Buffer {
  return bytes.subarray(0, bytes.lastIndexOf(10) + 1);
}

/**
 * Brings bytes back under a journal's name: as a new file, complete from the moment it is seen; or behind the lines
 * of one that a hook has begun meanwhile. The order in the file does not matter, replays sort (S-521).
 */
function putBack(files: JournalFiles, folder: string, name: string, bytes: Uint8Array): boolean {
  const path = join(folder, name);
  const temporary = join(folder, `.${name}.tmp`);
  files.remove(temporary);
  files.create(temporary, bytes);
  try {
    if (files.link(temporary, path)) return true;
    files.append(path, bytes);
    return false;
  } finally {
    files.remove(temporary);
  }
}

/**
 * Carries late lines of a set-aside file over to the journal. Returns what is left to watch, or `undefined` once
 * it has been quiet for long enough and is gone.
 */
export function tendAside(files: JournalFiles, folder: string, aside: Aside, now: number): Aside | undefined {
  const stat = files.stat(aside.path);
  if (stat?.kind !== 'file') return undefined;
  const late = wholeLines(files.read(aside.path, aside.offset, JOURNAL.readBytes).bytes);
  if (late.length > 0) {
    files.append(join(folder, aside.journal), late);
    return { ...aside, offset: aside.offset + late.length, since: now };
  }
  if (now - aside.since <= JOURNAL.quietMs) return aside;
  files.remove(aside.path);
  return undefined;
}

/**
 * A set-aside file that an earlier service left behind when it was killed in between. Whether its content came back
 * is not known, so its last part is put back once more: replays drop what they know already (S-112).
 */
export function adoptAside(
  files: JournalFiles,
  folder: string,
  name: string,
  journal: string,
  read: JournalRead,
  now: number,
): Aside {
  putBack(files, folder, journal, Buffer.from(compacted(read), 'utf8'));
  return { path: join(folder, name), journal, offset: read.next, since: now };
}
