import { z } from 'zod';
import { writePrivate } from '../files/private-file.ts';
import { readBounded } from '../files/read-bounded.ts';
import { NOTIFY } from '../limits.ts';

/** Name of the file in the connector home. */
export const LEDGER_NAME = 'notified.json';

/** What was told of one session. Ids and times only; all of them epoch milliseconds. */
export interface Told {
  /** Turns that opened until then are over and done with: told, or for good reason not. */
  readonly through?: number;
  /** When the turn opened that was last seen open and is not over. */
  readonly open?: number;
  /** What the wait that was last told rests on. */
  readonly wait?: number;
  /** When this entry last changed. */
  readonly at: number;
}

/** Remembers across restarts what was told (N3), by session key. */
export interface Ledger {
  get(key: string): Told | undefined;
  set(key: string, told: Told): void;
  all(): Readonly<Record<string, Told>>;
}

/** A ledger in memory, beginning with what another one had. */
export function createLedger(before: Readonly<Record<string, Told>> = {}): Ledger {
  const entries = new Map(Object.entries(before));
  return {
    get: (key) => entries.get(key),
    set(key, told) {
      // Newest last, so that the oldest are the first to go.
      entries.delete(key);
      entries.set(key, told);
      for (const [oldest, { at }] of entries) {
        if (entries.size <= NOTIFY.ledgerSessions && told.at - at <= NOTIFY.ledgerMs) break;
        entries.delete(oldest);
      }
    },
    all: () => Object.fromEntries(entries),
  };
}

const time = z.number().finite();
const fileSchema = z.object({
  version: z.literal(1),
  sessions: z.record(
    z.string(),
    z.object({ through: time.optional(), open: time.optional(), wait: time.optional(), at: time }),
  ),
});

/** A ledger in a file, and when its writing failed last. */
export interface StoredLedger extends Ledger {
  /** Writes what has changed; the system's code where that fails. Called before anything is told (N5). */
  save(): string | undefined;
}

/**
 * The ledger of a file. One that can't be read begins anew: then what is over at the start is not told, and nothing
 * else is lost.
 */
export function openLedger(path: string): StoredLedger {
  const ledger = createLedger(readLedger(path));
  const state = { dirty: false };
  return {
    get: ledger.get,
    all: ledger.all,
    set(key, told) {
      state.dirty = true;
      ledger.set(key, told);
    },
    save() {
      if (!state.dirty) return undefined;
      const text = `${JSON.stringify({ version: 1, sessions: ledger.all() })}\n`;
      const written = writePrivate(path, text, { durable: false });
      if (written.kind === 'failed') return written.code;
      state.dirty = false;
      return undefined;
    },
  };
}

function readLedger(path: string): Readonly<Record<string, Told>> {
  const read = readBounded(path, NOTIFY.ledgerBytes);
  if (read.kind !== 'read') return {};
  const parsed = fileSchema.safeParse(parse(read.bytes.toString('utf8')));
  if (!parsed.success) return {};
  const sorted = Object.entries(parsed.data.sessions).sort(([, a], [, b]) => a.at - b.at);
  return Object.fromEntries(sorted.map(([key, told]) => [key, compact(told)]));
}

/** Without the keys that say nothing. */
export function compact(told: {
  readonly through?: number | undefined;
  readonly open?: number | undefined;
  readonly wait?: number | undefined;
  readonly at: number;
}): Told {
  const { through, open, wait, at } = told;
  return {
    ...(through === undefined ? {} : { through }),
    ...(open === undefined ? {} : { open }),
    ...(wait === undefined ? {} : { wait }),
    at,
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Half a file: as good as none.
    return undefined;
  }
}
