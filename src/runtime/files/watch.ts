/**
 * Watches the folders in which runtimes write: file notification drives reading, a slow poll is its
 * safety net, and the only feed where watching fails (X12).
 *
 * The poll stats the folders and the few hot files, and opens nothing. Once a minute it also compares the
 * stamps of all files: a network drive may take a watch and never announce anything. A folder in which such
 * a change stays unannounced is polled from then on, and said so.
 */
import { join } from 'node:path';
import { createCoalescer, systemTimers, type TimerPort } from './coalesce.ts';
import { type FileSystemPort, systemFiles, tryNames, tryStat } from './file-system.ts';
import { systemWatch, type WatchPort } from './watch-port.ts';
import { type FolderNode, FolderTree, OVER_LIMIT, UNANNOUNCED, type WatchRoot } from './watch-tree.ts';

export type { WatchRoot } from './watch-tree.ts';

/** Period of the safety net (K-10), milliseconds. */
export const POLL_EVERY_MS = 5000;
/** How often the stamps of all files are compared, milliseconds. */
export const FULL_CHECK_EVERY_MS = 60_000;
/** The most watches that are taken; the rest is polled. A common limit of the system for a user is 8,192. */
export const WATCH_LIMIT = 4000;
/** Quiet after which a burst is reported, milliseconds. */
export const SETTLE_MS = 12;
/** The longest that a burst is held, milliseconds. */
export const MAX_WAIT_MS = 60;
/** Work without a break, milliseconds: the daemon answers its clients in between. */
const SLICE_MS = 8;
/** The poll takes at most one part in so many of the time. */
const IDLE_SHARE = 50;
const STATS_PER_STEP = 200;

export interface WatchOptions {
  /**
   * Files and folders to look at again; each at most once in a report. `overflow`: there were more, look at
   * everything.
   */
  readonly onChange: (paths: readonly string[], overflow: boolean) => void;
  /** Files that are stat'ed at each poll: those of live sessions. */
  readonly hot?: () => Iterable<string>;
  readonly pollEveryMs?: number;
  readonly fullCheckEveryMs?: number;
  readonly limit?: number;
  /** Takes one line for each kind of trouble. */
  readonly log?: (line: string) => void;
  readonly files?: FileSystemPort;
  readonly port?: WatchPort;
  readonly timers?: TimerPort;
}

export type WatchStatus =
  | { readonly kind: 'watching'; readonly folders: number; readonly missing: readonly string[] }
  | {
      readonly kind: 'polling';
      readonly folders: number;
      /** How many of them are polled. */
      readonly polled: number;
      readonly everyMs: number;
      readonly reason: string;
      readonly missing: readonly string[];
    };

export interface FolderWatch {
  close(): void;
  status(): WatchStatus;
  /** {@link status} as one line, for `daemon status`. */
  words(): string;
  /** Runs a whole poll at once; for a clock that jumped (sleep), when events may have been lost. */
  pollNow(): void;
}

/** Watches folders until it is closed. Never throws: what cannot be watched is polled. */
export function watchFolders(roots: readonly WatchRoot[], options: WatchOptions): FolderWatch {
  return new PolledWatch(roots, options);
}

class PolledWatch implements FolderWatch {
  readonly #options: WatchOptions;
  readonly #files: FileSystemPort;
  readonly #timers: TimerPort;
  readonly #tree: FolderTree;
  readonly #coalescer: ReturnType<typeof createCoalescer>;
  readonly #said = new Set<string>();
  /** Paths that the system announced, with the number of the poll they came before. */
  readonly #heard = new Map<string, number>();
  #hot = new Map<string, number>();
  #serial = 0;
  #fullSerial = 0;
  #fullAt = Number.NEGATIVE_INFINITY;
  #cancel: () => void = () => {};

  constructor(roots: readonly WatchRoot[], options: WatchOptions) {
    this.#options = options;
    this.#files = options.files ?? systemFiles;
    this.#timers = options.timers ?? systemTimers;
    this.#coalescer = createCoalescer({
      settleMs: SETTLE_MS,
      maxWaitMs: MAX_WAIT_MS,
      timers: this.#timers,
      onReport: options.onChange,
    });
    this.#tree = new FolderTree(roots, {
      files: this.#files,
      port: options.port ?? systemWatch(),
      limit: options.limit ?? WATCH_LIMIT,
      onPath: (path, heard) => this.#report(path, heard),
      onTrouble: (folder, reason) => this.#trouble(folder, reason),
    });
    this.#schedule(this.#everyMs);
  }

  close(): void {
    this.#cancel();
    this.#tree.close();
    this.#coalescer.close();
  }

  status(): WatchStatus {
    const nodes = [...this.#tree.nodes()];
    const polled = nodes.filter((node) => node.polledFor !== undefined);
    const missing = this.#tree.roots.filter((root) => root.node === undefined).map((root) => root.spec.path);
    const reason = polled[0]?.polledFor;
    if (reason === undefined) return { kind: 'watching', folders: nodes.length, missing };
    const everyMs = this.#everyMs;
    return { kind: 'polling', folders: nodes.length, polled: polled.length, everyMs, reason, missing };
  }

  words(): string {
    const status = this.status();
    if (status.kind === 'watching') return `watching ${status.folders} folders`;
    const part = status.polled === status.folders ? 'all' : `${status.polled} of ${status.folders}`;
    return `polling ${part} folders every ${status.everyMs / 1000} s: ${inWords(status.reason)}`;
  }

  pollNow(): void {
    this.#cancel();
    for (const _ of this.#poll()) {
      // Each step is a slice of the work; here they follow each other at once.
    }
    this.#schedule(this.#everyMs);
  }

  get #everyMs(): number {
    return this.#options.pollEveryMs ?? POLL_EVERY_MS;
  }

  #report(path: string, heard: boolean): void {
    if (heard) this.#heard.set(path, this.#serial);
    this.#coalescer.add(path);
  }

  #trouble(folder: string, reason: string): void {
    if (this.#said.has(reason)) return;
    this.#said.add(reason);
    this.#options.log?.(
      `cannot watch ${folder}: ${inWords(reason)}; looking every ${this.#everyMs / 1000} s instead`,
    );
  }

  #schedule(delay: number): void {
    this.#cancel = this.#timers.after(delay, () => this.#run(this.#poll(), 0));
  }

  /** Works through a poll in slices. A poll that costs much comes less often. */
  #run(steps: Generator<void>, spent: number): void {
    const started = this.#timers.now();
    while (!steps.next().done) {
      const used = this.#timers.now() - started;
      if (used < SLICE_MS) continue;
      this.#cancel = this.#timers.after(0, () => this.#run(steps, spent + used));
      return;
    }
    const cost = spent + this.#timers.now() - started;
    this.#schedule(Math.max(this.#everyMs, cost * IDLE_SHARE));
  }

  *#poll(): Generator<void> {
    this.#serial += 1;
    const full = this.#timers.now() - this.#fullAt >= (this.#options.fullCheckEveryMs ?? FULL_CHECK_EVERY_MS);
    if (full) this.#fullAt = this.#timers.now();
    this.#checkHot();
    for (const root of this.#tree.roots) if (root.node === undefined) this.#tree.attach(root, true);
    for (const node of [...this.#tree.nodes()]) {
      yield* this.#checkFolder(node, full);
      yield;
    }
    if (full) this.#forgetHeard();
  }

  #checkHot(): void {
    const stamps = new Map<string, number>();
    for (const path of this.#options.hot?.() ?? []) {
      const stamp = this.#stamp(path);
      stamps.set(path, stamp);
      const before = this.#hot.get(path);
      if (before !== undefined && before !== stamp && !this.#wasHeard(path, 1)) this.#report(path, false);
    }
    this.#hot = stamps;
  }

  *#checkFolder(node: FolderNode, full: boolean): Generator<void> {
    const before = node.mtimeMs;
    if (!this.#tree.verify(node)) return;
    if (node.mtimeMs !== before) {
      this.#tree.refresh(node);
      this.#report(node.path, false);
    }
    this.#judge(node);
    if (full) this.#tree.retry(node);
    if (full || node.polledFor !== undefined) yield* this.#checkFiles(node);
  }

  /** A change found at the poll before: if its announcement was only late, it has come by now. */
  #judge(node: FolderNode): void {
    const { suspect } = node;
    node.suspect = undefined;
    if (suspect === undefined || node.polledFor !== undefined || this.#wasHeard(suspect, 2)) return;
    node.polledFor = UNANNOUNCED;
    this.#trouble(node.path, UNANNOUNCED);
  }

  *#checkFiles(node: FolderNode): Generator<void> {
    const known = node.stamps;
    const stamps = new Map<string, number>();
    for (const [index, name] of tryNames(this.#files, node.path).names.entries()) {
      if (index % STATS_PER_STEP === STATS_PER_STEP - 1) yield;
      if (node.closed) return;
      if (node.children.has(name) || this.#tree.excludes(node, name)) continue;
      const stamp = this.#stamp(join(node.path, name));
      stamps.set(name, stamp);
      if (known !== undefined && known.get(name) !== stamp) this.#found(node, name);
    }
    for (const name of known?.keys() ?? []) if (!stamps.has(name)) this.#found(node, name);
    node.stamps = stamps;
  }

  #found(node: FolderNode, name: string): void {
    const path = join(node.path, name);
    if (this.#wasHeard(path, this.#serial - this.#fullSerial)) return;
    this.#report(path, false);
    if (node.polledFor === undefined) node.suspect = path;
  }

  /** Whether the system announced this path within the last so many polls. */
  #wasHeard(path: string, polls: number): boolean {
    const serial = this.#heard.get(path);
    return serial !== undefined && serial >= this.#serial - polls;
  }

  #forgetHeard(): void {
    for (const [path, serial] of this.#heard) if (serial < this.#fullSerial) this.#heard.delete(path);
    this.#fullSerial = this.#serial;
  }

  /** Size and time in one number: an append moves both. */
  #stamp(path: string): number {
    const stat = tryStat(this.#files, path);
    return 'size' in stat ? stat.mtimeMs * 31 + stat.size : -1;
  }
}

function inWords(reason: string): string {
  if (reason === 'ENOSPC') return 'the limit of watches is reached (ENOSPC)';
  if (reason === 'EMFILE') return 'the limit of watchers is reached (EMFILE)';
  if (reason === OVER_LIMIT || reason === UNANNOUNCED) return reason;
  return `the system refused (${reason})`;
}
