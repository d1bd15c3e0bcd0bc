import type { FileStat, FileSystemPort } from '../../runtime/files/file-system.ts';
import { createFollower, type Follower } from '../../runtime/files/follow.ts';
import type { Line, LineCounts } from '../../runtime/files/jsonl.ts';
import { cleanTitle } from '../../runtime/session/text.ts';
import { isInherited } from './inherited.ts';
import { type RolloutRecord, toRecord } from './records.ts';
import type { Rollout } from './rollout.ts';
import { applyRecord } from './turn.ts';

/** Rollouts that are followed at once: those that moved last. */
const MAX_FOLLOWED = 256;

export interface Followed {
  readonly follower: Follower;
  readonly rollout: Rollout;
}

/**
 * Remembers, in a process that scans again and again, where each growing rollout was read to: of one that grew only
 * what is new is read, however long its turn is by now.
 */
export interface RolloutMemory {
  /** What the rollout says after what was appended; `undefined` if it must be read anew. */
  advance(path: string, stat: FileStat): Rollout | undefined;
  /** Follows a rollout from `offset`, just past its last whole line. */
  keep(path: string, stat: FileStat, offset: number, rollout: Rollout): void;
}

/** What is remembered; one for each adapter and its life. */
export type FollowedRollouts = Map<string, Followed>;

/** The memory over one scan's file operations. */
export function rolloutMemory(
  followed: FollowedRollouts,
  files: FileSystemPort,
  counts: LineCounts,
): RolloutMemory {
  return {
    advance(path, stat) {
      const known = followed.get(path);
      if (!known) return undefined;
      followed.delete(path);
      const { state } = known.follower;
      if (state?.ino !== stat.ino || state.dev !== stat.dev || stat.size < state.size) return undefined;
      const poll = known.follower.poll();
      if (poll.kind !== 'lines' || poll.restarted !== undefined || poll.gap) return undefined;
      const rollout = extendRollout(known.rollout, poll.lines);
      followed.set(path, { follower: known.follower, rollout });
      return rollout;
    },
    keep(path, stat, offset, rollout) {
      const state = { path, ino: stat.ino, dev: stat.dev, offset, size: stat.size };
      followed.delete(path);
      followed.set(path, { follower: createFollower(path, { files, counts, state }), rollout });
      for (const oldest of followed.keys()) {
        if (followed.size <= MAX_FOLLOWED) break;
        followed.delete(oldest);
      }
    },
  };
}

/** Adds the records of more lines to what a rollout said before them. */
export function extendRollout(rollout: Rollout, lines: readonly Line[]): Rollout {
  return lines.map((line) => toRecord(line.record)).reduce(extendByRecord, rollout);
}

function extendByRecord(rollout: Rollout, record: RolloutRecord): Rollout {
  if (isInherited(record, rollout.meta)) return rollout;
  const turn = applyRecord(rollout.turn, record);
  switch (record.kind) {
    case 'context': {
      const { model, cwd } = record;
      const context = { ...(model ? { model } : {}), ...(cwd ? { cwd } : {}) };
      return { ...rollout, turn, context, firstContext: rollout.firstContext ?? context };
    }
    case 'usage':
      return { ...rollout, turn, usage: record.usage };
    case 'prompt': {
      const title = rollout.prompt ?? (rollout.promptSearched ? cleanTitle(record.text ?? '') : undefined);
      return { ...rollout, turn, ...(title ? { prompt: title } : {}) };
    }
    default:
      return { ...rollout, turn };
  }
}
