/** What a rollout's file name says. The time in it is local and never changes; nothing is read from it. */
export interface RolloutName {
  /** The first UUID: the thread. */
  readonly threadId: string;
  /** The second one, in files that a rewind began: the segment (CX §2.5). */
  readonly segmentId?: string;
  /** `.jsonl.zst`, which Codex accepts wherever a `.jsonl` is. */
  readonly compressed: boolean;
}

const NAME =
  /^rollout-.*?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}))?\.jsonl(\.zst)?$/i;

/** Reads a file name; `undefined` if it is no rollout's. */
export function parseRolloutName(name: string): RolloutName | undefined {
  const match = NAME.exec(name);
  const threadId = match?.[1]?.toLowerCase();
  if (!threadId) return undefined;
  const segmentId = match?.[2]?.toLowerCase();
  return { threadId, ...(segmentId ? { segmentId } : {}), compressed: match?.[3] !== undefined };
}

/** A rollout on disk. */
export interface RolloutFile extends RolloutName {
  readonly path: string;
  readonly archived: boolean;
}

/**
 * Puts the files of one thread in the order of its history, so that the last one is its tail: first the file
 * without a segment, then the segments by their ids (UUIDv7, so by age). Of two files of one segment, an unpacked
 * one beats a packed one, and one in `sessions` beats one in `archived_sessions` (a move that is under way).
 */
export function orderSegments<T extends RolloutFile>(files: readonly T[]): readonly T[] {
  const best = new Map<string, T>();
  for (const file of files) {
    const key = file.segmentId ?? '';
    const known = best.get(key);
    if (known === undefined || rank(file) < rank(known)) best.set(key, file);
  }
  return [...best.entries()].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([, file]) => file);
}

function rank(file: RolloutFile): number {
  return (file.archived ? 2 : 0) + (file.compressed ? 1 : 0);
}
