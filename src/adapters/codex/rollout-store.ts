import type { ScanProblem } from '../../runtime/feed.ts';
import { type FileSystemPort, tryStat } from '../../runtime/files/file-system.ts';
import type { FileReader } from '../../runtime/files/head-tail.ts';
import type { LineCounts } from '../../runtime/files/jsonl.ts';
import type { IndexEntry, SessionIndex } from '../../runtime/store/session-index.ts';
import { readCompressed } from './compressed.ts';
import { type FollowedRollouts, rolloutMemory } from './followed.ts';
import { type Rollout, readRollout, type Wanted } from './rollout.ts';
import { ROLLOUT_SCOPE, restoreRollout, type StoredRollout, storeRollout } from './stored.ts';
import { sameStamp } from './titles.ts';
import { type FoundRollout, reasonText } from './walk.ts';

/** How a rollout is wanted. */
export interface RolloutRequest {
  readonly want: Wanted;
  /** What the index leaves out (commands, error texts) matters: always, while the turn may be going on, or not. */
  readonly details: 'always' | 'while-live' | 'no';
  /** Epoch milliseconds. */
  readonly now: number;
}

export interface ReadRollout {
  /** Absent when the file gave nothing. */
  readonly rollout?: Rollout;
  readonly problem?: ScanProblem;
  /** Lines left out. */
  readonly skipped: number;
}

/** Reads rollouts, index first: an unchanged file is not opened. */
export interface RolloutStore {
  read(file: FoundRollout, request: RolloutRequest): ReadRollout;
  /** The same files with new stats, if any of them has changed since. */
  restat(files: readonly FoundRollout[]): readonly FoundRollout[] | undefined;
  /** Forgets what is no longer there. */
  prune(alive: ReadonlySet<string>): void;
}

/** A turn without any sign of life for this long needs no command in its label, and its error no text (K-01). */
const FRESH_MS = 300_000;

/** A store over one index; without one every file is read. */
export function createRolloutStore(
  reader: FileReader,
  files: FileSystemPort,
  index: SessionIndex | undefined,
  followed: FollowedRollouts,
): RolloutStore {
  const memory = rolloutMemory(followed, files, reader.counts);
  const known = index?.load(ROLLOUT_SCOPE) ?? new Map<string, IndexEntry>();
  return {
    read(file, request) {
      const remembered = fromIndex(known.get(file.path), file, request);
      if (remembered) return remembered;
      const before = skippedSoFar(reader.counts);
      const advanced = memory.advance(file.path, file.stat);
      // An open turn moves on at once; it is put into the index when it has ended.
      if (advanced && advanced.turn.phase === 'open')
        return { rollout: advanced, skipped: skippedSoFar(reader.counts) - before };
      const read = file.compressed
        ? readCompressed(files, file.path, file.stat, reader.counts)
        : readRollout(reader, file.path, file.stat, request.want);
      const skipped = skippedSoFar(reader.counts) - before;
      if (read.kind === 'read') {
        const { rollout, committed } = read.value;
        index?.stage(ROLLOUT_SCOPE, file.path, {
          stamp: stampOf(read.stat),
          value: storeRollout(rollout, skipped),
        });
        if (committed !== undefined && rollout.turn.phase === 'open')
          memory.keep(file.path, read.stat, committed, rollout);
        return { rollout: asKept(rollout, request), skipped };
      }
      if (read.kind === 'missing') return { skipped };
      const reason = read.kind === 'not-unpacked' ? read.reason : reasonText(read);
      return { problem: { subject: file.path, reason, skipped: 1 }, skipped };
    },
    restat(found) {
      const fresh = found.map((file) => {
        const stat = tryStat(files, file.path);
        return 'size' in stat ? { ...file, stat } : file;
      });
      const changed = fresh.some((file, at) => {
        const old = found[at];
        return old !== undefined && !sameStamp(stampOf(file.stat), stampOf(old.stat));
      });
      return changed ? fresh : undefined;
    },
    prune(alive) {
      index?.prune(ROLLOUT_SCOPE, alive);
    },
  };
}

/** In a process that scans again and again the same entries are not parsed again. */
const restored = new WeakMap<IndexEntry, StoredRollout>();

function fromIndex(
  entry: IndexEntry | undefined,
  file: FoundRollout,
  request: RolloutRequest,
): ReadRollout | undefined {
  if (!entry || !sameStamp(entry.stamp, stampOf(file.stat))) return undefined;
  const stored = restored.get(entry) ?? restoreRollout(entry.value);
  if (!stored) return undefined;
  restored.set(entry, stored);
  const { rollout, partial, skipped } = stored;
  if (request.want.prompt && !rollout.promptSearched) return undefined;
  return partial && wantsDetails(rollout, request) ? undefined : { rollout, skipped };
}

function wantsDetails({ turn }: Rollout, { details, now }: RolloutRequest): boolean {
  if (details === 'always') return true;
  if (now - (turn.lastAt ?? 0) >= FRESH_MS) return false;
  return turn.end === 'failed' || (turn.phase === 'open' && details === 'while-live');
}

/** What the index would give: a list says the same whether a file was read for it or not. */
function asKept(rollout: Rollout, request: RolloutRequest): Rollout {
  if (wantsDetails(rollout, request)) return rollout;
  const { error: _error, ...turn } = rollout.turn;
  return { ...rollout, turn };
}

function skippedSoFar(counts: LineCounts): number {
  return counts.oversized + counts.malformed;
}

function stampOf(stat: FoundRollout['stat']): IndexEntry['stamp'] {
  return { size: stat.size, mtimeMs: stat.mtimeMs, ino: stat.ino, dev: stat.dev };
}
