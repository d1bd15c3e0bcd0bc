import type { SessionMeta } from './meta.ts';
import type { RolloutRecord } from './records.ts';

/** A slack for clocks: a turn's id and its thread's are made within one process. */
const SAME_MOMENT_MS = 1_000;

/**
 * Whether a record was copied into this file from another thread's history, and so says nothing about this thread
 * (G5, G6): in a sub-agent's file everything below `subagent_history_start_ordinal`; in forks of older versions,
 * which copy with new time stamps, every turn whose id (a UUIDv7, so dated) is older than the thread itself.
 */
export function isInherited(record: RolloutRecord, meta: SessionMeta | undefined): boolean {
  if (!meta) return false;
  if (meta.ownFromOrdinal !== undefined && record.ordinal !== undefined)
    return record.ordinal < meta.ownFromOrdinal;
  if (meta.forkedFromId === undefined || !('turnId' in record)) return false;
  const turnAt = uuidTime(record.turnId);
  const threadAt = uuidTime(meta.id);
  return turnAt !== undefined && threadAt !== undefined && turnAt < threadAt - SAME_MOMENT_MS;
}

/** The creation time in a UUIDv7, epoch milliseconds; `undefined` for any other text. */
export function uuidTime(id: string | undefined): number | undefined {
  const match = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/i.exec(id ?? '');
  return match ? Number.parseInt(`${match[1]}${match[2]}`, 16) : undefined;
}
