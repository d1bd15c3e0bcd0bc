import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { JOURNAL } from '../../limits.ts';
import { idOfName, type JournalAgent, journalFolder, journalName, runFolder } from './record.ts';

/**
 * What became of a journal line. `skipped`: there is to be none (no service ever ran here, or the id may not name
 * a file); `full`: nobody tends the file (S-507); `failed`: the system refused, which changes nothing else (S-509).
 */
export type AppendOutcome = 'journaled' | 'skipped' | 'full' | 'failed';

export interface AppendTarget {
  readonly socketPath: string;
  readonly agent: JournalAgent;
  readonly sessionId: string;
  /** Epoch milliseconds. */
  readonly now: number;
}

// O_NONBLOCK: a FIFO in the file's place must not hold the agent up.
const FLAGS =
  constants.O_WRONLY |
  constants.O_APPEND |
  constants.O_CREAT |
  (constants.O_NOFOLLOW ?? 0) |
  (constants.O_NONBLOCK ?? 0);

/**
 * Appends one line with one write (S-506); several processes may do so at once. Not `appendPrivate`: this one must
 * neither follow links nor make the run folder, must stop at a size, and is all that the hook sink can afford.
 * Never throws.
 */
export function appendJournal(target: AppendTarget, line: string): AppendOutcome {
  const name = journalName(target.sessionId);
  if (name === undefined || !isOurs(runFolder(target.socketPath))) return 'skipped';
  try {
    const folder = journalFolder(target.socketPath, target.agent);
    return appendTo(folder, name, line, target.now);
  } catch {
    // Fail-open: a full disk or a read-only home must not be felt by the agent (S-509); the POST still goes out.
    return 'failed';
  }
}

/** The folder must be one that nobody else can write into, or a link there could lead anywhere (C3). */
function isOurs(folder: string): boolean {
  try {
    const stats = lstatSync(folder);
    if (!stats.isDirectory()) return false;
    const uid = process.getuid?.();
    return uid === undefined || (stats.uid === uid && (stats.mode & 0o022) === 0);
  } catch {
    // No service has run here yet.
    return false;
  }
}

function appendTo(folder: string, name: string, line: string, now: number): AppendOutcome {
  const fd = openIn(folder, name);
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) return 'failed';
    if (stats.size >= JOURNAL.fullBytes) return 'full';
    if ((stats.mode & 0o077) !== 0 && process.platform !== 'win32') fchmodSync(fd, 0o600);
    const bytes = Buffer.from(line, 'utf8');
    if (writeSync(fd, bytes) !== bytes.length) return 'failed';
    if (stats.size === 0) sweep(folder, now);
    return 'journaled';
  } finally {
    closeSync(fd);
  }
}

function openIn(folder: string, name: string): number {
  const path = join(folder, name);
  try {
    return openSync(path, FLAGS, 0o600);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    // The first journal of this agent. The run folder itself is never made here: it is not recursive above it.
    makeFolder(join(folder, '..'));
    makeFolder(folder);
    return openSync(path, FLAGS, 0o600);
  }
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  }
}

/** A new journal takes the ones of a week ago with it, in case no service runs any more to do so (S-508). */
function sweep(folder: string, now: number): void {
  for (const name of readdirSync(folder)) {
    if (idOfName(name) === undefined) continue;
    const path = join(folder, name);
    try {
      const stats = lstatSync(path);
      if (stats.isFile() && now - stats.mtimeMs > JOURNAL.ageMs) unlinkSync(path);
    } catch {
      // Another sink sweeps at the same time; gone is what both want.
    }
  }
}
