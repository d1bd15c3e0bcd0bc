import { SESSIONS } from '../../limits.ts';
import type { LockProbe, RolloutHead, RolloutSeen } from './ports.ts';

/** What the scan has to tell of one thread. */
export type RolloutSighting =
  | { readonly kind: 'seen'; readonly id: string; readonly path: string; readonly cwd?: string }
  | { readonly kind: 'end'; readonly id: string; readonly why: 'lock released' | 'record gone' };

export interface RolloutScan {
  readonly sightings: readonly RolloutSighting[];
  readonly announced: number;
  readonly heartbeats: number;
  readonly ended: number;
  /** New rollouts of threads that nobody holds any more (S-624). */
  readonly unowned: number;
  /** Not recent when first seen, or still without a whole first line (S-622). */
  readonly unread: number;
  /** Rollouts that are no session of their own, by the reason, of this scan's first looks (S-621). */
  readonly skipped: Readonly<Record<string, number>>;
}

export interface RolloutTimes {
  /** Epoch milliseconds, against file times. */
  readonly now: number;
  /** Awake milliseconds, for the heartbeat. */
  readonly awake: number;
}

export interface RolloutTracker {
  scan(
    seen: readonly RolloutSeen[],
    times: RolloutTimes,
    head: (path: string) => RolloutHead,
    lock: LockProbe,
  ): RolloutScan;
  reset(): void;
  readonly size: number;
}

type Tracked =
  | { readonly kind: 'unread'; readonly size: number }
  | { readonly kind: 'skipped'; readonly size: number }
  | (Thread & { readonly kind: 'thread' });

interface Thread {
  readonly size: number;
  readonly id: string;
  readonly cwd: string | undefined;
  readonly ended: boolean;
  /** Only a lock that was seen held can end a session when it is let go (S-625). */
  readonly lockSeen: boolean;
  /** Awake milliseconds of the last announcement. */
  readonly saidAt: number;
}

/**
 * Feed 6b: Codex threads by their rollouts and writer locks (S-620 … S-629). Says that a thread is there, lives, or
 * has ended; never a state, and of a rollout it reads the first line alone.
 */
export function createRolloutTracker(): RolloutTracker {
  const state = { tracked: new Map<string, Tracked>() };
  return {
    scan(seen, times, head, lock) {
      const look = new RolloutLook(times, head, lock);
      const next = new Map<string, Tracked>();
      for (const file of seen) next.set(file.path, look.file(file, state.tracked.get(file.path)));
      look.leave(state.tracked, next);
      state.tracked = next;
      return look.result();
    },
    reset: () => state.tracked.clear(),
    get size() {
      return state.tracked.size;
    },
  };
}

class RolloutLook {
  readonly #sightings: RolloutSighting[] = [];
  readonly #count = { announced: 0, heartbeats: 0, ended: 0, unowned: 0, unread: 0 };
  readonly #skipped = new Map<string, number>();
  readonly #times: RolloutTimes;
  readonly #head: (path: string) => RolloutHead;
  readonly #lock: LockProbe;

  constructor(times: RolloutTimes, head: (path: string) => RolloutHead, lock: LockProbe) {
    this.#times = times;
    this.#head = head;
    this.#lock = lock;
  }

  result(): RolloutScan {
    return { sightings: this.#sightings, ...this.#count, skipped: Object.fromEntries(this.#skipped) };
  }

  file(file: RolloutSeen, before: Tracked | undefined): Tracked {
    if (before?.kind === 'skipped') return { ...before, size: file.size };
    if (before?.kind === 'thread') return this.#later(file, before);
    const moved = before === undefined || file.size > before.size;
    const isRecent = this.#times.now - file.mtimeMs <= SESSIONS.ttlMs;
    if (!moved || !isRecent) {
      this.#count.unread += 1;
      return { kind: 'unread', size: before ? Math.max(before.size, file.size) : file.size };
    }
    return this.#first(file, this.#head(file.path));
  }

  #first(file: RolloutSeen, head: RolloutHead): Tracked {
    const { size } = file;
    if (head.kind === 'unfinished') {
      this.#count.unread += 1;
      return { kind: 'unread', size };
    }
    if (head.kind === 'skip') {
      this.#skipped.set(head.gate, (this.#skipped.get(head.gate) ?? 0) + 1);
      return { kind: 'skipped', size };
    }
    const held = this.#lock(head.id);
    const thread = { size, id: head.id, cwd: head.cwd, saidAt: this.#times.awake };
    if (held === 'free' || held === 'absent') {
      // A restart must not list what had ended before (S-624).
      this.#count.unowned += 1;
      return { kind: 'thread', ...thread, ended: true, lockSeen: false };
    }
    this.#announce(file, thread);
    return { kind: 'thread', ...thread, ended: false, lockSeen: held === 'held' };
  }

  #later(file: RolloutSeen, before: Thread): Tracked {
    const { size } = file;
    const grew = size > before.size;
    if (before.ended && !grew) return { kind: 'thread', ...before, size };
    const held = this.#lock(before.id);
    if (before.ended) {
      this.#announce(file, before);
      const saidAt = this.#times.awake;
      return { kind: 'thread', ...before, size, ended: false, lockSeen: held === 'held', saidAt };
    }
    if (before.lockSeen && (held === 'free' || held === 'absent')) {
      this.#end(before.id, 'lock released');
      return { kind: 'thread', ...before, size, ended: true, lockSeen: false };
    }
    const lockSeen = before.lockSeen || held === 'held';
    const isDue = this.#times.awake - before.saidAt >= SESSIONS.rolloutHeartbeatMs;
    if (!isDue || !(held === 'held' || grew)) return { kind: 'thread', ...before, size, lockSeen };
    this.#say(file, before);
    this.#count.heartbeats += 1;
    return { kind: 'thread', ...before, size, lockSeen, saidAt: this.#times.awake };
  }

  /** Rollouts that have left the tree end their session once (S-627), unless another file of it is still there. */
  leave(old: ReadonlyMap<string, Tracked>, next: ReadonlyMap<string, Tracked>): void {
    const left = [...old].flatMap(([path, one]) =>
      one.kind === 'thread' && !one.ended && !next.has(path) ? [one.id] : [],
    );
    if (left.length === 0) return;
    const still = new Set([...next.values()].flatMap((one) => (one.kind === 'thread' ? [one.id] : [])));
    for (const id of new Set(left)) if (!still.has(id)) this.#end(id, 'record gone');
  }

  #announce(file: RolloutSeen, thread: Pick<Thread, 'id' | 'cwd'>): void {
    this.#say(file, thread);
    this.#count.announced += 1;
  }

  #say(file: RolloutSeen, { id, cwd }: Pick<Thread, 'id' | 'cwd'>): void {
    this.#sightings.push({ kind: 'seen', id, path: file.path, ...(cwd === undefined ? {} : { cwd }) });
  }

  #end(id: string, why: 'lock released' | 'record gone'): void {
    this.#sightings.push({ kind: 'end', id, why });
    this.#count.ended += 1;
  }
}
