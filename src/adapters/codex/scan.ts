import type { FeedScan, RuntimeInstance, ScanOptions, ScanProblem } from '../../runtime/feed.ts';
import { type FileSystemPort, systemFiles } from '../../runtime/files/file-system.ts';
import { createFileReader, type FileReader } from '../../runtime/files/head-tail.ts';
import type { SessionFacts, Sighting } from '../../runtime/session/session.ts';
import type { AdapterContext } from '../adapter.ts';
import { readServer } from './app-server.ts';
import { type CodexHome, codexHome } from './homes.ts';
import type { CodexHost } from './host.ts';
import { uuidTime } from './inherited.ts';
import { lineageOf } from './lineage.ts';
import { lockClaim, readThreadLocks, type ThreadLock, type ThreadLocks } from './locks.ts';
import { createRolloutStore, type RolloutStore } from './rollout-store.ts';
import { orderSegments } from './segments.ts';
import {
  findDaemonUnlocked,
  findLockHoldingServers,
  isAppServer,
  ownerName,
  type ServerAddress,
} from './server-find.ts';
import { serverSightings } from './server-view.ts';
import { readThreadTable, type ThreadTable } from './state-db.ts';
import { activityOf, joinSegments, type RecordContext, recordsClaim, type ThreadHistory } from './thread.ts';
import { type Names, readSessionNames, titleOf } from './titles.ts';
import { type FoundRollout, walkRollouts } from './walk.ts';

export const RUNTIME_ID = 'codex';
/** Codex keeps its sessions in one place, which names the instance. */
export const INSTANCE_ID = 'transcripts';

/** One look at everything Codex has on this computer. */
export async function scanCodex(
  context: AdapterContext,
  options: ScanOptions,
  host: CodexHost,
): Promise<FeedScan> {
  const look = new Look(context, options, host);
  return look.scan();
}

interface ThreadFiles {
  readonly id: string;
  readonly files: readonly FoundRollout[];
}

class Look {
  readonly #context: AdapterContext;
  readonly #options: ScanOptions;
  readonly #host: CodexHost;
  readonly #home: CodexHome;
  readonly #files: FileSystemPort;
  readonly #reader: FileReader;
  readonly #store: RolloutStore;
  readonly #problems: ScanProblem[] = [];

  constructor(context: AdapterContext, options: ScanOptions, host: CodexHost) {
    this.#context = context;
    this.#options = options;
    this.#host = { ...host, platform: context.platform, now: () => context.now() };
    this.#home = codexHome(context);
    this.#files = context.files ?? systemFiles;
    this.#reader = createFileReader(this.#files);
    this.#store = createRolloutStore(this.#reader, this.#files, context.index);
  }

  async scan(): Promise<FeedScan> {
    const locks = this.#locks();
    // Statuses are asked for before the files are read: a record that is newer than its status can be told as such.
    const early = await this.#live(findLockHoldingServers(locks, this.#host));
    const walked = walkRollouts(this.#home, this.#files, this.#context.platform);
    this.#problems.push(...walked.problems);
    const late = locks.readable ? [] : await this.#live(this.#unlockedServer(walked.rollouts));
    const live = [...early, ...late];
    const threads = this.#threads(walked.rollouts, locks);
    const sightings = joinSightings([...threads, ...unwritten(threads, locks, this.#context.now()), ...live]);
    this.#context.index?.flush();
    return {
      instances: [this.#instance(walked.present, locks.held.size > 0 || live.length > 0)],
      sightings,
      problems: this.#problems,
    };
  }

  #locks(): ThreadLocks {
    return readThreadLocks(this.#home, this.#files, this.#host);
  }

  #unlockedServer(rollouts: readonly FoundRollout[]): readonly ServerAddress[] {
    const newest = rollouts.reduce((latest, file) => Math.max(latest, file.stat.mtimeMs), 0);
    const address = findDaemonUnlocked(this.#home, newest > 0 ? newest : undefined, this.#host);
    return address ? [address] : [];
  }

  async #live(addresses: readonly ServerAddress[]): Promise<readonly Sighting[]> {
    if (this.#options.withoutLive) return [];
    const reads = await Promise.all(
      addresses.map(async (address) => {
        const options = { now: () => this.#context.now(), signal: this.#context.signal };
        return { address, read: await readServer(address.path, options) };
      }),
    );
    return reads.flatMap(({ address, read }) => {
      if (read.kind === 'read') return serverSightings(read.view, ownerName(address));
      this.#problems.push({ subject: `app-server ${ownerName(address)}`, reason: read.reason, skipped: 0 });
      return [];
    });
  }

  #threads(rollouts: readonly FoundRollout[], locks: ThreadLocks): readonly Sighting[] {
    const groups = [...Map.groupBy(rollouts, (file) => file.threadId)];
    const threads = groups.map(([id, files]): ThreadFiles => ({ id, files: orderSegments(files) }));
    const names = readSessionNames(this.#home.names, this.#reader, this.#files, this.#context.index);
    const state = readThreadTable(this.#home, this.#files, this.#context.platform, this.#context.index);
    if (state.problem) this.#problems.push(state.problem);
    const now = this.#context.now();
    const read = threads.map((thread) => this.#read(thread, state.table, locks.of(thread.id), now));
    const settled = this.#settleRaces(read, locks, state.table, now);
    this.#store.prune(new Set(rollouts.map((file) => file.path)));
    const titles = new Titles(names, state.table, new Map(settled.map((one) => [one.id, one.history])));
    return settled.map((one) => toSighting(one, titles, state.table, now));
  }

  #read(thread: ThreadFiles, table: ThreadTable, lock: ThreadLock, now: number): ReadThread {
    const only = this.#options.only;
    const wanted = only !== undefined && thread.id.startsWith(only.toLowerCase());
    const request = {
      want: { prompt: !table.prompts.has(thread.id), context: !table.contexts.has(thread.id) },
      // Where the owner may live, the command of its open call is worth reading the file again.
      details: wanted ? 'always' : lock.kind === 'held' || lock.kind === 'unknown' ? 'while-live' : 'no',
      now,
    } as const;
    const reads = thread.files.map((file) => this.#store.read(file, request));
    for (const one of reads) if (one.problem) this.#problems.push(one.problem);
    const history = joinSegments(reads.flatMap((one) => one.rollout ?? []));
    const skipped = reads.reduce((sum, one) => sum + one.skipped, 0);
    const inServer =
      lock.kind === 'held' && lock.pid !== undefined && isAppServer(lock.pid, this.#host.procRoot);
    return { ...thread, history, lock, skipped, inServer };
  }

  /**
   * The locks were read before the files. A turn that is open without a lock may have begun, or ended with its
   * process, in between: those few are looked at once more.
   */
  #settleRaces(
    threads: readonly ReadThread[],
    locks: ThreadLocks,
    table: ThreadTable,
    now: number,
  ): readonly ReadThread[] {
    const isOpenWithoutOwner = (one: ReadThread) =>
      one.history.turn.phase === 'open' && (one.lock.kind === 'free' || one.lock.kind === 'absent');
    if (!locks.readable || !threads.some(isOpenWithoutOwner)) return threads;
    const again = this.#locks();
    return threads.map((one) => {
      if (!isOpenWithoutOwner(one)) return one;
      const fresh = this.#store.restat(one.files);
      const lock = again.of(one.id);
      return fresh || lock.kind === 'held'
        ? this.#read({ id: one.id, files: fresh ?? one.files }, table, lock, now)
        : one;
    });
  }

  #instance(present: boolean, running: boolean): RuntimeInstance {
    return {
      runtimeId: RUNTIME_ID,
      instanceId: INSTANCE_ID,
      label: 'Codex CLI',
      status: running ? 'running' : present ? 'available' : 'missing',
      ...(present
        ? {}
        : { error: 'no sessions folder; nothing was ever run here, or CODEX_HOME is elsewhere' }),
      capabilities: ['sessionList', 'sessionHistory', 'liveWatch', 'nativeStatus', 'processWatch'],
      metadata: { transcriptRoot: this.#home.sessions },
    };
  }
}

/** One sighting a session: what files, locks and servers say of it stands side by side. */
function joinSightings(sightings: readonly Sighting[]): readonly Sighting[] {
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

interface ReadThread extends ThreadFiles {
  readonly history: ThreadHistory;
  readonly lock: ThreadLock;
  readonly skipped: number;
  /** An app-server runs it, so a terminal or another client may have it open, whoever began it. */
  readonly inServer: boolean;
}

/** A thread that was opened and never prompted has a lock and no file yet (X6): its owner lives, and it is idle. */
function unwritten(written: readonly Sighting[], locks: ThreadLocks, now: number): readonly Sighting[] {
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
    ...(files.length > 0 && files.every((file) => file.archived) ? { archived: true } : {}),
    ...(meta?.source === 'exec' && !thread.inServer ? { headless: true } : {}),
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
