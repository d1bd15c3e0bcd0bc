/** When a runtime's own hooks were last heard of (R-48: loaded), as far as it is still known. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import {
  idOfName,
  JOURNAL_AGENTS,
  type JournalAgent,
  journalFolder,
  readRecord,
} from '../../runtime/daemon/journal/record.ts';
import { readBounded } from '../../runtime/files/read-bounded.ts';

/** Of one journal; a longer one is of a session that the daemon tends, and it is asked first. */
const JOURNAL_READ_BYTES = 1024 * 1024;

/**
 * The time of the newest report of an agent in its journals, epoch milliseconds. A session's end is no proof by
 * itself: the marked event is one.
 */
export function heardInJournals(socketPath: string, agent: string): number | undefined {
  const known = JOURNAL_AGENTS.find((one) => one === agent);
  if (known === undefined) return undefined;
  const folder = journalFolder(socketPath, known);
  const times = namesIn(folder).flatMap((name) => timesIn(join(folder, name), known, idOfName(name) ?? ''));
  return times.length === 0 ? undefined : Math.max(...times);
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).filter((name) => idOfName(name) !== undefined);
  } catch {
    // No daemon ever ran here, so nothing was kept.
    return [];
  }
}

function timesIn(path: string, agent: JournalAgent, id: string): readonly number[] {
  const read = readBounded(path, JOURNAL_READ_BYTES);
  if (read.kind !== 'read') return [];
  return read.bytes
    .toString('utf8')
    .split('\n')
    .flatMap((line) => {
      const record = readRecord(parse(line), agent, id);
      return record?.op === 'observe' ? [Date.parse(record.ts)] : [];
    });
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    // A torn line, or none of ours.
    return undefined;
  }
}
