import type { Lineage } from '../../runtime/session/session.ts';
import type { SessionMeta } from './meta.ts';

/**
 * Family of a thread. A sub-agent folds under its parent; a fork is a session of its own (rule 6, R-14).
 *
 * @param knownParent what the state database says, for files whose first line is damaged
 */
export function lineageOf(
  meta: SessionMeta | undefined,
  segments: number,
  knownParent: string | undefined,
): Lineage | undefined {
  const parentId = meta?.parentId ?? knownParent;
  const lineage: Lineage = {
    ...(parentId ? { parentId } : {}),
    // A v2 sub-agent names its parent as `forked_from_id` too, which makes it no fork.
    ...(meta?.forkedFromId && !parentId ? { forkedFromId: meta.forkedFromId } : {}),
    ...(segments > 1 ? { segments } : {}),
  };
  return Object.keys(lineage).length > 0 ? lineage : undefined;
}
