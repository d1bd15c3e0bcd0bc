import type { SessionFacts, Sighting } from '../../runtime/session/session.ts';
import { uuidTime } from './inherited.ts';
import { lineageOf } from './lineage.ts';
import { lockClaim, type ThreadLock, type ThreadLocks } from './locks.ts';
import type { ThreadTable } from './state-db.ts';
import { activityOf, type RecordContext, recordsClaim, type ThreadHistory } from './thread.ts';
import { type Names, titleOf } from './titles.ts';
import type { FoundRollout } from './walk.ts';

export const RUNTIME_ID = 'codex';
/** Codex keeps its sessions in one place, which names the instance. */
export const INSTANCE_ID = 'transcripts';

/** A thread with its files in the order of its history. */
export interface ThreadFiles {
  readonly id: string;
  readonly files: readonly FoundRollout[];
}

/** A thread that was read. */
export interface ReadThread extends ThreadFiles {
  readonly history: ThreadHistory;
  readonly lock: ThreadLock;
  /** Lines that were left out. */
  readonly skipped: number;
  /** An app-server runs it, so a terminal or another client may have it open, whoever began it. */
  readonly inServer: boolean;
}

/** What the files and locks say about every thread. */
export function threadSightings(
  threads: readonly ReadThread[],
  names: Names,
  table: ThreadTable,
  now: number,
): readonly Sighting[] {
  const titles = new Titles(names, table, new Map(threads.map((one) => [one.id, one.history])));
  return threads.map((one) => toSighting(one, titles, table, now));
}

/** One sighting a session: what files, locks and servers say of it stands side by side. */
export function joinSightings(sightings: readonly Sighting[]): readonly Sighting[] {
  const joined = new Map<string, Sighting>();
  for (const next of sightings) {
    const id = next.session.sessionId;
    const before = joined.get(id);
    joined.set(id, before ? joinTwo(before, next) : next);
  }
  return [...joined.values()];
}

function joinTwo(a: Sighting, b: Sighting): Sighting {
  const lineage = { ...a.facts?.lineage, ...b.facts?.lineage };
  return {
    session: a.session,
    facts: { ...a.facts, ...b.facts, ...(Object.keys(lineage).length > 0 ? { lineage } : {}) },
    claims: [...(a.claims ?? []), ...(b.claims ?? [])],
  };
}

/** A thread that was opened and never prompted has a lock and no file yet (X6): its owner lives, and it is idle. */
export function unwritten(
  written: readonly Sighting[],
  locks: ThreadLocks,
  now: number,
): readonly Sighting[] {
  const known = new Set(written.map((sighting) => sighting.session.sessionId));
  return [...locks.held]
    .filter(([id]) => !known.has(id))
    .map(([id, lock]) => {
      const startedAt = uuidTime(id);
      const claim = lockClaim(lock, { modern: true }, now, now);
      return {
        session: { runtimeId: RUNTIME_ID, instanceId: INSTANCE_ID, sessionId: id },
        facts: {
          source: 'transcript' as const,
          ...(startedAt === undefined ? {} : { startedAt, lastActivityAt: startedAt }),
          ...(lock.pid === undefined ? {} : { pids: [lock.pid] }),
        },
        claims: claim ? [claim] : [],
      };
    });
}

/** Titles of all threads; a fork may take its parent's. */
class Titles {
  readonly #names: Names;
  readonly #table: ThreadTable;
  readonly #histories: ReadonlyMap<string, ThreadHistory>;

  constructor(names: Names, table: ThreadTable, histories: ReadonlyMap<string, ThreadHistory>) {
    this.#names = names;
    this.#table = table;
    this.#histories = histories;
  }

  of(id: string, depth = 0): string | undefined {
    const history = this.#histories.get(id);
    const forkedFrom = history?.meta?.forkedFromId;
    return titleOf({
      name: this.#names.get(id) ?? this.#table.names.get(id),
      prompt: history?.prompt ?? this.#table.prompts.get(id),
      nickname: history?.meta?.parentId ? history.meta.nickname : undefined,
      // Forks of forks end somewhere; a loop in damaged files must too.
      parentTitle: forkedFrom && depth < 8 ? this.of(forkedFrom, depth + 1) : undefined,
    });
  }
}

function toSighting(thread: ReadThread, titles: Titles, table: ThreadTable, now: number): Sighting {
  const { history, lock, files } = thread;
  const tail = files.at(-1);
  const context: RecordContext = {
    now,
    mtimeMs: tail?.stat.mtimeMs ?? now,
    ...(lock.kind === 'held' ? { ownerStartedAt: lock.startedAt } : {}),
    ...(thread.skipped > 0 ? { skipped: thread.skipped } : {}),
  };
  const user = {
    modern: history.turn.modern,
    cliVersion: history.meta?.cliVersion,
    historyMode: history.meta?.historyMode,
  };
  const life = lockClaim(lock, user, now, activityOf(history.turn, context));
  return {
    session: { runtimeId: RUNTIME_ID, instanceId: INSTANCE_ID, sessionId: thread.id },
    facts: factsOf(thread, titles.of(thread.id), table, context),
    claims: [recordsClaim(history.turn, context), ...(life ? [life] : [])],
  };
}

function factsOf(
  thread: ReadThread,
  title: string | undefined,
  table: ThreadTable,
  context: RecordContext,
): SessionFacts {
  const { history, files, lock } = thread;
  const { meta } = history;
  const tail = files.at(-1);
  const lineage = lineageOf(meta, files.length, table.parents.get(thread.id));
  // Of a long last turn the records are too far back; the database has the last ones too.
  const known = table.contexts.get(thread.id);
  const model = history.context?.model ?? known?.model ?? history.firstContext?.model;
  const workDir = history.context?.cwd ?? known?.cwd ?? history.firstContext?.cwd ?? meta?.cwd;
  const startedAt = meta?.startedAt ?? uuidTime(thread.id);
  return {
    source: 'transcript',
    ...(title ? { title } : {}),
    ...(workDir ? { workDir } : {}),
    ...(model ? { model } : {}),
    ...(startedAt === undefined ? {} : { startedAt }),
    lastActivityAt: activityOf(history.turn, context),
    ...(lineage ? { lineage } : {}),
    ...(history.usage ? { contextUsage: history.usage } : {}),
    // Said either way: what was true once must not stick to the row.
    archived: files.length > 0 && files.every((file) => file.archived),
    // The first client of a server names itself in what that server begins: ours runs for nobody else.
    ...(meta?.originator === 'shadowob-connector' ? { origin: 'connectorOwned' as const } : {}),
    headless: meta?.source === 'exec' && !thread.inServer,
    ...(lock.kind === 'held' && lock.pid !== undefined ? { pids: [lock.pid] } : { pids: [] }),
    ...(tail ? { sizeBytes: tail.stat.size, file: tail.path } : {}),
    native: nativeOf(thread),
  };
}

function nativeOf({ history, files }: ReadThread): NonNullable<SessionFacts['native']> {
  const { meta } = history;
  return {
    transcriptFile: files.at(-1)?.path.split(/[\\/]/).at(-1) ?? null,
    ...(meta?.originator ? { originator: meta.originator } : {}),
    ...(meta?.source ? { source: meta.source } : {}),
    ...(meta?.cliVersion ? { cliVersion: meta.cliVersion } : {}),
  };
}
