import type { Capability, FeedScan, RuntimeInstance, ScanOptions, ScanProblem } from '../../runtime/feed.ts';
import { type FileSystemPort, systemFiles } from '../../runtime/files/file-system.ts';
import { createFileReader, type FileReader } from '../../runtime/files/head-tail.ts';
import type { Sighting } from '../../runtime/session/session.ts';
import { mapInSlices } from '../../runtime/slices.ts';
import type { AdapterContext } from '../adapter.ts';
import { readServer } from './app-server.ts';
import type { FollowedRollouts } from './followed.ts';
import { type CodexHome, codexHome } from './homes.ts';
import type { CodexHost } from './host.ts';
import { readThreadLocks, type ThreadLock, type ThreadLocks } from './locks.ts';
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
import {
  INSTANCE_ID,
  joinSightings,
  type ReadThread,
  RUNTIME_ID,
  type ThreadFiles,
  threadSightings,
  unwritten,
} from './sightings.ts';
import { readThreadTable, type ThreadTable } from './state-db.ts';
import { joinSegments } from './thread.ts';
import { readSessionNames } from './titles.ts';
import { type FoundRollout, walkRollouts } from './walk.ts';

/** What can be done: by files, locks and servers, and for a push by a server, theirs or ours (`docs/acting.md`). */
const CAPABILITIES: readonly Capability[] = [
  'sessionList',
  'sessionHistory',
  'liveWatch',
  'sendMessage',
  'abort',
  'approval',
  'nativeStatus',
  'processWatch',
];

/** One look at everything Codex has on this computer. */
export async function scanCodex(
  context: AdapterContext,
  options: ScanOptions,
  host: CodexHost,
  followed: FollowedRollouts,
): Promise<FeedScan> {
  const look = new Look(context, options, host, followed);
  return look.scan();
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

  constructor(context: AdapterContext, options: ScanOptions, host: CodexHost, followed: FollowedRollouts) {
    this.#context = context;
    this.#options = options;
    this.#host = { ...host, platform: context.platform, now: () => context.now() };
    this.#home = codexHome(context);
    this.#files = context.files ?? systemFiles;
    this.#reader = createFileReader(this.#files);
    this.#store = createRolloutStore(this.#reader, this.#files, context.index, followed);
  }

  async scan(): Promise<FeedScan> {
    const locks = this.#locks();
    // Statuses are asked for before the files are read: a record that is newer than its status can be told as such.
    const early = await this.#live(findLockHoldingServers(locks, this.#host));
    const walked = walkRollouts(this.#home, this.#files, this.#context.platform);
    this.#problems.push(...walked.problems);
    const late = locks.readable ? [] : await this.#live(this.#unlockedServer(walked.rollouts));
    const live = [...early, ...late];
    const threads = await this.#threads(walked.rollouts, locks);
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

  async #threads(rollouts: readonly FoundRollout[], locks: ThreadLocks): Promise<readonly Sighting[]> {
    const groups = [...Map.groupBy(rollouts, (file) => file.threadId)];
    const threads = groups.map(([id, files]): ThreadFiles => ({ id, files: orderSegments(files) }));
    const names = readSessionNames(this.#home.names, this.#reader, this.#files, this.#context.index);
    const state = readThreadTable(this.#home, this.#files, this.#context.platform, this.#context.index);
    if (state.problem) this.#problems.push(state.problem);
    const now = this.#context.now();
    const read = await mapInSlices(threads, (thread) =>
      this.#read(thread, state.table, locks.of(thread.id), now),
    );
    const settled = this.#settleRaces(read, locks, state.table, now);
    this.#store.prune(new Set(rollouts.map((file) => file.path)));
    return threadSightings(settled, names, state.table, now);
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
      capabilities: CAPABILITIES,
      metadata: { transcriptRoot: this.#home.sessions },
    };
  }
}
