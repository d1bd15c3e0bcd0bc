import type { SessionRow } from '../runtime/session/row.ts';
import type { Snapshot } from './collect.ts';

/** One line of `runtime-watch --json` (`cli-surface.md` §5). */
export type WatchEvent =
  | { readonly type: 'snapshot'; readonly at: string; readonly snapshot: Snapshot }
  | ({ readonly type: 'session_added' } & EventBody)
  | ({ readonly type: 'session_changed' } & EventBody & Previous)
  | ({ readonly type: 'session_removed' } & EventBody & Previous);

interface EventBody {
  readonly at: string;
  readonly runtimeId: string;
  readonly sessionId: string;
  readonly state: string;
  readonly petReaction: string;
  readonly petActivity?: SessionRow['petActivity'];
  readonly session: SessionRow;
}

interface Previous {
  readonly previousState: string;
  readonly previousPetReaction: string;
  readonly previousPetActivity?: SessionRow['petActivity'];
}

/**
 * Turns a sequence of snapshots into events: the first as a whole, then only what differs. A session that leaves
 * the list is reported as it was last seen, with state `stopped`.
 */
export function createSnapshotDiff(): (snapshot: Snapshot) => WatchEvent[] {
  const memory: { last: Map<string, SessionRow> | undefined } = { last: undefined };
  return (snapshot) => {
    const rows = new Map(
      snapshot.sessions.map((row) => [`${row.runtimeId}:${row.instanceId}:${row.sessionId}`, row]),
    );
    const before = memory.last;
    memory.last = rows;
    const at = snapshot.scannedAt;
    return before ? [...compare(before, rows, at)] : [{ type: 'snapshot', at, snapshot }];
  };
}

function* compare(
  before: ReadonlyMap<string, SessionRow>,
  rows: ReadonlyMap<string, SessionRow>,
  at: string,
): Generator<WatchEvent> {
  for (const [key, row] of rows) {
    const old = before.get(key);
    if (!old) yield { type: 'session_added', ...body(row, at) };
    else if (differs(old, row)) yield { type: 'session_changed', ...body(row, at), ...previous(old) };
  }
  for (const [key, old] of before) {
    if (rows.has(key)) continue;
    yield {
      type: 'session_removed',
      ...body(old, at),
      state: 'stopped',
      petReaction: 'idle',
      ...previous(old),
    };
  }
}

function body(row: SessionRow, at: string): EventBody {
  return {
    at,
    runtimeId: row.runtimeId,
    sessionId: row.sessionId,
    state: row.state,
    petReaction: row.petReaction,
    ...(row.petActivity ? { petActivity: row.petActivity } : {}),
    session: row,
  };
}

function previous(row: SessionRow): Previous {
  return {
    previousState: row.state,
    previousPetReaction: row.petReaction,
    ...(row.petActivity ? { previousPetActivity: row.petActivity } : {}),
  };
}

/** What a reader of events would show differently; evidence times and liveness churn alone are no change. */
function differs(a: SessionRow, b: SessionRow): boolean {
  return (
    a.state !== b.state ||
    a.lastActivityAt !== b.lastActivityAt ||
    a.petReaction !== b.petReaction ||
    a.petActivity?.kind !== b.petActivity?.kind ||
    a.petActivity?.label !== b.petActivity?.label ||
    a.waitingOn !== b.waitingOn ||
    a.needsYou !== b.needsYou ||
    a.life !== b.life ||
    a.title !== b.title ||
    a.model !== b.model ||
    (a.subAgents?.length ?? 0) !== (b.subAgents?.length ?? 0) ||
    (a.backgroundWork ?? 0) !== (b.backgroundWork ?? 0)
  );
}
