import type { Line } from '../../runtime/files/jsonl.ts';
import { neverCompileTwice } from '../../runtime/process/compile-policy.ts';
import { kindOf, rowOf } from './lines.ts';
import type { Envelope, Row } from './rows.ts';
import { addTitle, hasWords, type Titles } from './titles.ts';
import { objectOf, textOf, timeOf } from './values.ts';

/** What the start of a transcript says: where the session comes from, and what its first prompt was. */
export interface Origin {
  readonly titles: Titles;
  /** Of the first conversation row. */
  readonly first: Envelope;
  /** Epoch milliseconds. For a fork, where it can be told, the start of the fork. */
  readonly startedAt?: number;
  readonly forkedFromId?: string;
  readonly copied: boolean;
}

/** How much older than the file's own first note a copied row must be (G6). */
const COPY_SLACK_MS = 2_000;
/** Print mode begins a file with notes of its queue, among these many lines. */
const NOTES_AT_START = 8;

/** True for the first words of a person, a picture alone is none; reading a head stops there. */
export function isFirstPrompt(line: Line): boolean {
  const row = rowOf(line);
  return row.kind === 'prompt' && row.by === 'user' && hasWords(row.text);
}

/** Reads the start of a transcript. */
export function readOrigin(head: readonly Line[], sessionId: string): Origin {
  const prompt = head.findIndex(isFirstPrompt);
  const rows = (prompt < 0 ? head : head.slice(0, prompt + 1)).map(rowOf);
  const first = rows.map(envelopeOf).find((envelope) => envelope.uuid !== undefined) ?? {};
  const noteAt = head
    .slice(0, NOTES_AT_START)
    .map(noteTime)
    .find((at) => at !== undefined);
  const startedAt = noteAt ?? first.at;
  const forkedFromId = copiedFrom(head.slice(prompt + 1), sessionId);
  const older = noteAt !== undefined && first.at !== undefined && first.at < noteAt - COPY_SLACK_MS;
  return {
    titles: rows.reduce(addTitle, {}),
    first,
    copied: older || forkedFromId !== undefined,
    ...(startedAt !== undefined ? { startedAt } : {}),
    ...(forkedFromId ? { forkedFromId } : {}),
  };
}

function envelopeOf(row: Row): Envelope {
  return row.kind === 'title' ? {} : row;
}

/** Notes of the queue are never copied into a fork: their time is that of the file's own start. */
function noteTime(line: Line): number | undefined {
  return kindOf(line) === 'queue-operation' ? timeOf(objectOf(line.record)?.['timestamp']) : undefined;
}

neverCompileTwice(isFirstPrompt, noteTime);

/** Replies that are looked at for the session that asked for them. */
const REPLIES_LOOKED_AT = 3;

/** Copied replies name the session that asked for them (2.1.332); looked for in what was read anyway. */
function copiedFrom(afterPrompt: readonly Line[], sessionId: string): string | undefined {
  let looked = 0;
  for (const line of afterPrompt) {
    if (kindOf(line) !== 'conversation') continue;
    if (line.has('"requestSessionId"')) {
      const id = textOf(objectOf(line.record)?.['requestSessionId']);
      return id === sessionId ? undefined : id;
    }
    looked += 1;
    if (looked >= REPLIES_LOOKED_AT) return undefined;
  }
  return undefined;
}
