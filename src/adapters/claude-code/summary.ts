import { withoutLabel } from '../../runtime/session/state.ts';
import { seal, unseal } from '../../runtime/store/sealed.ts';
import type { Titles } from './titles.ts';
import type { Turn } from './turn.ts';

/** What one transcript file says, as it was read. */
export interface TranscriptSummary {
  readonly turn: Turn;
  readonly titles: Titles;
  /** The folder the session was started in; `cwd` of later rows moves (it is where `--resume` must run). */
  readonly cwd?: string;
  readonly startedAt?: number;
  /** Of the newest row that names it. */
  readonly version?: string;
  readonly gitBranch?: string;
  readonly entrypoint?: string;
  /** Identity of the first conversation row: a fork copies it. */
  readonly firstUuid?: string;
  /** The session that the rows were copied from, where they say so (2.1.332). */
  readonly forkedFromId?: string;
  /** The file begins with rows that are older than its first note of its own: it is a copy (G6). */
  readonly copied: boolean;
  /** Lines that were skipped: malformed, over a megabyte, or blocks of NUL bytes. */
  readonly skipped: number;
}

/**
 * The summary as the index keeps it: cleaned titles, names of tools and words of closed sets; no command, no
 * path of a tool, no message.
 */
export function encodeSummary(summary: TranscriptSummary): string {
  const { turn } = summary;
  const { error: _words, ...times } = turn.turn;
  const bare: Turn = { ...turn, state: withoutLabel(turn.state), turn: times, pending: [] };
  return seal({ ...summary, turn: bare });
}

/** Reads what {@link encodeSummary} wrote; `undefined` if it isn't that, and the file is then read again. */
export function decodeSummary(value: string): TranscriptSummary | undefined {
  return unseal<TranscriptSummary>(value);
}
