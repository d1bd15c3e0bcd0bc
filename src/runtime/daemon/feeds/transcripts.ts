import { SESSIONS } from '../../limits.ts';
import type { PlainEvent } from '../vocabulary.ts';
import type { TranscriptSeen } from './ports.ts';

/** What the registry and the engine know of a session that a file was seen of. */
export interface Known {
  /** A hook, a live file or a parsed row has spoken for it. */
  readonly spoken: boolean;
  /** Its owner is proven gone: its file is history. */
  readonly dead: boolean;
}

/** One sighting of feed 2. */
export interface TranscriptSighting {
  readonly id: string;
  readonly path: string;
  readonly event: Extract<PlainEvent, 'transcript_grew' | 'transcript_discovered'>;
}

export interface TranscriptScan {
  readonly sightings: readonly TranscriptSighting[];
  readonly discovered: number;
  readonly grew: number;
  /** Grown files whose session somebody has spoken for: told as a sign of life only. */
  readonly spokenFor: number;
  /** Files that were not written to for so long that they say nothing (K-11). */
  readonly quiet: number;
  /** New files of sessions whose owner is proven gone. */
  readonly ownerGone: number;
}

export interface TranscriptTracker {
  scan(seen: readonly TranscriptSeen[], now: number, known: (id: string) => Known): TranscriptScan;
  reset(): void;
  /** Paths that are remembered. */
  readonly size: number;
}

/**
 * Feed 2: presence, size and modification time of transcripts, never a line of them (S-601 … S-605). Growth is work
 * only for a session that nothing else has spoken for; the rows decide everywhere else.
 */
export function createTranscriptTracker(): TranscriptTracker {
  const state = { sizes: new Map<string, number>() };
  return {
    scan(seen, now, known) {
      const count = { discovered: 0, grew: 0, spokenFor: 0, quiet: 0, ownerGone: 0 };
      const sightings: TranscriptSighting[] = [];
      const next = new Map<string, number>();
      for (const { id, path, size, mtimeMs } of seen) {
        const before = state.sizes.get(path);
        next.set(path, size);
        // A time in the future counts as recent: a clock that was set back must not hide a session (S-603).
        if (now - mtimeMs > SESSIONS.ttlMs) {
          count.quiet += 1;
          continue;
        }
        const isNew = before === undefined;
        if (!isNew && size <= before) continue;
        const { spoken, dead } = known(id);
        if (isNew && dead) {
          count.ownerGone += 1;
          continue;
        }
        const event = isNew || spoken ? 'transcript_discovered' : 'transcript_grew';
        if (isNew) count.discovered += 1;
        else if (spoken) count.spokenFor += 1;
        else count.grew += 1;
        sightings.push({ id, path, event });
      }
      // Paths that have disappeared are forgotten with the old map (S-605).
      state.sizes = next;
      return { sightings, ...count };
    },
    reset: () => state.sizes.clear(),
    get size() {
      return state.sizes.size;
    },
  };
}
