import { appendFileSync, mkdirSync, mkdtempSync, rmSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { codexHome } from '../../../src/adapters/codex/homes.ts';
import { mapCodexHook } from '../../../src/adapters/codex/hooks.ts';
import type { CodexHost } from '../../../src/adapters/codex/host.ts';
import { createCodex } from '../../../src/adapters/codex/index.ts';
import {
  applyNotification,
  applyThread,
  asNotification,
  EMPTY_VIEW,
  type ServerView,
  serverSightings,
} from '../../../src/adapters/codex/server-view.ts';
import type { FeedScan } from '../../../src/runtime/feed.ts';
import { run } from '../../../src/runtime/process/spawn.ts';
import { publicState } from '../../../src/runtime/session/project.ts';
import { createRegistry } from '../../../src/runtime/session/registry.ts';
import { applyReport, type Reported, reportedClaim } from '../../../src/runtime/session/reported.ts';
import type { Session, SessionRef, Sighting } from '../../../src/runtime/session/session.ts';
import { memoryIndex } from '../../../src/runtime/store/memory-index.ts';
import { linesOf, type Recording, type TableRow } from './recording.ts';

export interface ReplayMode {
  readonly hooks: boolean;
  readonly index: boolean;
}

/** Where a recording is played into: a registry of its own, or a daemon. */
export interface ReplayTarget {
  /** The recording's time. */
  at(now: number): void;
  hook(payload: Readonly<Record<string, unknown>>, at: number): Promise<void>;
  /** The app-server's word, or nothing when it is lost. */
  server(sightings: readonly Sighting[] | undefined): void;
  look(scan: () => Promise<FeedScan>): Promise<void>;
  find(ref: SessionRef): Session | undefined;
  sessions(): readonly Session[];
}

/** What the registry said after one row of the table. */
export interface Step {
  readonly row: TableRow;
  /** The thread's own state; `unknown` while the registry does not have it. */
  readonly state: string;
  readonly session?: Session;
  readonly root?: Session;
}

/**
 * A lock is sampled every 20 ms, and taken before the first record is written: what a sample shows as held was held
 * one sample earlier.
 */
const SAMPLE_MS = 25;
const REF = { runtimeId: 'codex', instanceId: 'transcripts' } as const;

/**
 * Plays a recording as a machine: rollouts grow line by line in a home folder of their own, locks and processes are
 * shown by a `/proc` of our making, hooks and app-server messages arrive in the recorded order. After every row the
 * real scan runs with the row's time as now, and the registry is asked for the thread's state.
 */
export async function replay(
  recording: Recording,
  mode: ReplayMode,
  target: ReplayTarget = registryTarget(),
): Promise<readonly Step[]> {
  const machine = new Machine(recording, mode, target);
  try {
    const steps: Step[] = [];
    for (const row of recording.table) steps.push(await machine.play(row));
    machine.expectAllLinesPlayed();
    return steps;
  } finally {
    machine.close();
  }
}

function registryTarget(): ReplayTarget {
  const registry = createRegistry();
  const reports = new Map<string, Reported>();
  const state = { now: 0 };
  return {
    at(now) {
      state.now = now;
    },
    async hook(payload, at) {
      const mapped = mapCodexHook(payload, at);
      if (!mapped) return;
      const { sessionId, report } = mapped.thread;
      const reported = applyReport(reports.get(sessionId), report);
      if (!reported) return;
      reports.set(sessionId, reported);
      const claims = [reportedClaim('codex.hooks', reported)];
      registry.apply('codex.hooks', [{ session: { ...REF, sessionId }, claims }], state.now);
    },
    server(sightings) {
      if (sightings) registry.apply('codex.app-server', sightings, state.now);
      else registry.withdraw('codex.app-server', state.now);
    },
    async look(scan) {
      registry.replace('codex', (await scan()).sightings, state.now);
      registry.tick(state.now);
    },
    find: (ref) => registry.find(ref),
    sessions: () => registry.sessions(),
  };
}

class Machine {
  readonly #recording: Recording;
  readonly #mode: ReplayMode;
  readonly #folder = mkdtempSync(join(tmpdir(), 'codex-replay-'));
  readonly #home: ReturnType<typeof codexHome>;
  readonly #target: ReplayTarget;
  readonly #played = new Map<string, number>();
  readonly #starts = new Map<number, number>();
  readonly #dead = new Set<number>();
  readonly #usedHooks = new Set<Recording['hooks'][number]>();
  readonly #held = new Map<string, number>();
  readonly #index = memoryIndex();
  #now = 0;
  #view: ServerView = EMPTY_VIEW;
  #nextServer = 0;
  #nextLock = 0;
  #lastStart = 0;
  #serverDied = false;

  constructor(recording: Recording, mode: ReplayMode, target: ReplayTarget) {
    this.#recording = recording;
    this.#target = target;
    this.#mode = mode;
    this.#home = codexHome({ env: {}, home: this.#folder, platform: 'linux' });
    mkdirSync(join(this.#folder, 'proc'), { recursive: true });
    mkdirSync(this.#home.sessions, { recursive: true });
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  expectAllLinesPlayed(): void {
    for (const file of this.#recording.paths.keys()) {
      const total = linesOf(this.#recording, file).length;
      if (this.#played.get(file) !== total)
        throw new Error(`${file}: played ${this.#played.get(file)} of ${total}`);
    }
  }

  async play(row: TableRow): Promise<Step> {
    this.#now = row.at;
    this.#target.at(row.at);
    this.#applyLocks(row.at);
    this.#serverUpTo(row);
    if (row.file && row.line) this.#append(row.file, row.line);
    if (row.what.startsWith('hook ')) await this.#hook(row);
    if (/^action: (run \d+|tui start|codex [\d.]+ tui start)/.test(row.what)) this.#lastStart = row.at;
    this.#die(row.what);
    await this.#target.look(() => this.#scan());
    const id = this.#threadOf(row);
    const session = id ? this.#target.find({ ...REF, sessionId: id }) : undefined;
    const root = this.#target.sessions().find((one) => one.subAgents.some((ref) => ref.sessionId === id));
    return {
      row,
      state: session ? publicState(session.own.state) : 'unknown',
      ...(session ? { session } : {}),
      ...(root ? { root } : {}),
    };
  }

  #append(file: string, line: number): void {
    if (line !== (this.#played.get(file) ?? 0) + 1) throw new Error(`${file}: line ${line} is out of order`);
    const path = join(this.#home.root, this.#recording.paths.get(file) ?? '');
    mkdirSync(dirname(path), { recursive: true });
    appendFileSync(path, `${linesOf(this.#recording, file)[line - 1]}\n`);
    this.#played.set(file, line);
  }

  async #hook(row: TableRow): Promise<void> {
    const hook = this.#recording.hooks.find(
      (one) =>
        one.at === row.at &&
        !this.#usedHooks.has(one) &&
        row.what.split(' ')[1] === String(one.payload['hook_event_name']),
    );
    if (!hook) throw new Error(`no recorded hook for ${row.what}`);
    this.#usedHooks.add(hook);
    if (this.#mode.hooks) await this.#target.hook(hook.payload, hook.at);
  }

  /** Messages are taken in their own order; one that the table shows waits for its row. */
  #serverUpTo(row: TableRow): void {
    const shown = row.what.startsWith('app-server ');
    while (this.#nextServer < this.#recording.server.length) {
      const message = this.#recording.server[this.#nextServer];
      if (!message || message.at > row.at || (message.at === row.at && !shown)) return;
      this.#nextServer += 1;
      this.#serverMessage(message);
      if (shown && message.at === row.at && isShownAs(message, row.what)) return;
    }
  }

  #serverMessage(message: Recording['server'][number]): void {
    if (this.#serverDied) return;
    const notification = asNotification(message.body);
    if (notification) this.#view = applyNotification(this.#view, notification, message.at);
    const polled = message.body['state'] as
      | Readonly<Record<string, Readonly<Record<string, unknown>>>>
      | undefined;
    for (const [id, thread] of Object.entries(polled ?? {})) {
      // The recorder asked thread by thread; what it shows may be older than a notification before it.
      const known = this.#view.get(id);
      if (!known || known.ephemeral !== (thread['ephemeral'] === true))
        this.#view = applyThread(this.#view, { id, ...thread }, message.at);
    }
    this.#target.server(serverSightings(this.#view, 'daemon'));
  }

  #applyLocks(at: number): void {
    for (; this.#nextLock < this.#recording.locks.length; this.#nextLock += 1) {
      const sample = this.#recording.locks[this.#nextLock];
      if (!sample) return;
      const releases = [...this.#held].some(([id]) => !sample.held.has(id));
      if (sample.at - (releases ? 0 : SAMPLE_MS) > at) return;
      this.#setLocks(sample.held, sample.at);
    }
  }

  #setLocks(held: ReadonlyMap<string, number>, at: number): void {
    mkdirSync(this.#home.locks, { recursive: true });
    writeFileSync(join(this.#home.locks, '.coordination.lock'), '');
    for (const [id, pid] of this.#held) {
      // Codex removes the file when it ends well; a killed one leaves it.
      if (!held.has(id) && !this.#dead.has(pid)) unlinkSync(join(this.#home.locks, `${id}.lock`));
    }
    this.#held.clear();
    for (const [id, pid] of held) {
      writeFileSync(join(this.#home.locks, `${id}.lock`), '');
      this.#held.set(id, pid);
      if (!this.#starts.has(pid)) this.#starts.set(pid, this.#lastStart || at - SAMPLE_MS);
    }
    this.#writeProc();
  }

  /** SIGKILL, SIGTERM and SIGHUP end a process at once; SIGINT lets it close its turn. */
  #die(what: string): void {
    const pid = /(?:kill -(?:9|15)|SIGTERM|SIGHUP)(?: daemon pid)? (\d+)/.exec(what)?.[1];
    if (!what.startsWith('action: ') || pid === undefined) return;
    this.#dead.add(Number(pid));
    this.#serverDied ||= what.includes('daemon pid');
    if (this.#serverDied) this.#target.server(undefined);
    this.#writeProc();
  }

  #writeProc(): void {
    const proc = join(this.#folder, 'proc');
    const bootSeconds = Math.floor(this.#recording.table[0]?.at ?? 0) / 1000 - 10_000;
    const boot = Math.floor(bootSeconds);
    writeFileSync(join(proc, 'stat'), `btime ${boot}\n`);
    for (const [pid, startedAt] of this.#starts) {
      rmSync(join(proc, String(pid)), { recursive: true, force: true });
      if (this.#dead.has(pid)) continue;
      mkdirSync(join(proc, String(pid)));
      const ticks = Math.round((startedAt - boot * 1000) / 10);
      const fields = ['S', '1', pid, pid, ...Array(15).fill(0), ticks];
      writeFileSync(join(proc, String(pid), 'stat'), `${pid} (codex) ${fields.join(' ')} 0 0\n`);
    }
    const lines = [...this.#held]
      .filter(([, pid]) => !this.#dead.has(pid))
      .map(([id, pid], at) => procLockLine(at + 1, pid, join(this.#home.locks, `${id}.lock`)));
    writeFileSync(join(proc, 'locks'), lines.join(''));
  }

  #scan(): Promise<FeedScan> {
    const host: CodexHost = {
      platform: 'linux',
      procRoot: join(this.#folder, 'proc'),
      kill: () => {},
      run,
      now: () => this.#now,
    };
    const context = {
      env: {},
      home: this.#folder,
      platform: 'linux' as const,
      now: () => this.#now,
      log: { debug() {}, warn() {} },
      ...(this.#mode.index ? { index: this.#index } : {}),
    };
    return createCodex(host).scan(context, { withoutLive: true });
  }

  #threadOf(row: TableRow): string | undefined {
    const ids = new Set(
      [...this.#recording.paths.values()].map((path) => path.slice(path.lastIndexOf('T') + 10)),
    );
    const threads = [...ids].map((id) => id.slice(0, 36));
    if (row.thread === undefined) return threads[0];
    return threads.find((id) => id.endsWith(row.thread ?? ''));
  }
}

function isShownAs(message: Recording['server'][number], what: string): boolean {
  const method = String(message.body['method']);
  if (what.startsWith('app-server status ')) return method === 'thread/status/changed';
  return what.includes(method);
}

function procLockLine(number: number, pid: number, path: string): string {
  const { dev, ino } = statSync(path);
  const major = (dev >> 8) & 0xfff;
  const minor = (dev & 0xff) | ((dev >> 12) & 0xffffff00);
  const hex = (value: number) => value.toString(16).padStart(2, '0');
  return `${number}: FLOCK  ADVISORY  WRITE ${pid} ${hex(major)}:${hex(minor)}:${ino} 0 EOF\n`;
}
