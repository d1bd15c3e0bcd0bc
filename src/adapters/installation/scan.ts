import {
  createProgramSearch,
  type ProgramSearch,
  type SearchHost,
} from '../../runtime/process/search-path.ts';
import { CATALOG, type CatalogEntry } from '../catalog.ts';
import { type Candidate, foundProgram, probe, remember, remembered, slow } from './probe.ts';
import {
  type FoundProgram,
  type InstallationReport,
  type InstallationScan,
  reportOn,
  strangerReason,
} from './report.ts';

/** The whole scan's time. */
export const SCAN_MS = 10_000;
/** How long after the deadline the ends of killed probes are still waited for; the bound is 100 ms. */
const LATE_MS = 60;

/** This computer, as a scan sees it. */
export interface InstallationHost extends SearchHost {
  /** Processor cores; at most `max(4, cores)` probes run at a time (V4). */
  readonly cores: number;
}

export interface ScanRequest {
  /** Default: the whole catalog. */
  readonly entries?: readonly CatalogEntry[];
  /** Epoch milliseconds; default: 10 s from now. Leave 2 s, which the login shell may take where it is asked. */
  readonly deadlineAt?: number;
  /** Ask every program again instead of believing what is remembered. */
  readonly refresh?: boolean;
}

/**
 * Finds the programs of every runtime and their versions. Probes run at once, those without a remembered answer
 * first; what hasn't answered by the one deadline is "installed, version unknown (slow)", never missing (V1, V3,
 * Resolves at the latest 100 ms after the deadline and never rejects. Remembers answers by the program's
 * file, so that an unchanged computer is scanned without starting a process.
 */
export async function scanInstallations(
  host: InstallationHost,
  request: ScanRequest = {},
): Promise<InstallationScan> {
  const deadlineAt = request.deadlineAt ?? host.now() + SCAN_MS;
  const refresh = request.refresh ?? false;
  const search = createProgramSearch(host, refresh);
  const tasks = await Promise.all(
    (request.entries ?? CATALOG).map((entry) =>
      planFor(entry, search, host, { refresh, patienceMs: deadlineAt - host.now() }),
    ),
  );
  const scan = new Scan(deadlineAt, search, host);
  await scan.runAll(tasks);
  return {
    reports: tasks.map((task): InstallationReport => reportOn(task.entry, task.found(), host.now())),
    spawned: scan.probes + search.spawned(),
  };
}

/** One runtime's candidates; what is still to be asked shrinks, what was found grows. */
interface Task {
  readonly entry: CatalogEntry;
  readonly candidates: readonly Slot[];
  readonly found: () => readonly FoundProgram[];
}

/** A candidate and, once there is one, its result. */
interface Slot {
  readonly candidate: Candidate;
  readonly wasSlow: boolean;
  /** A refresh asks again although there is an answer; those without any go first all the same. */
  readonly wasKnown: boolean;
  result: FoundProgram | null;
}

/** What the caller wants of remembered answers. */
interface Wish {
  readonly refresh: boolean;
  /** How long this scan waits for one that has to be asked, milliseconds. */
  readonly patienceMs: number;
}

async function planFor(
  entry: CatalogEntry,
  search: ProgramSearch,
  host: InstallationHost,
  wish: Wish,
): Promise<Task> {
  const candidates = await candidatesOf(entry, search, host);
  const slots = await Promise.all(candidates.map((candidate) => slotFor(candidate, host, wish)));
  return { entry, candidates: slots, found: () => slots.map((slot) => slot.result ?? unasked(slot, slots)) };
}

/** A program without a result: nobody had to ask it, because one before it answered, or time ran out. */
function unasked({ candidate }: Slot, slots: readonly Slot[]): FoundProgram {
  const answered = slots.some(
    ({ result }) => result?.versionState === 'known' || result?.versionState === 'slow',
  );
  const answer = slow(`\`${candidate.program.path}\``);
  return foundProgram(candidate, answered ? { ...answer, problem: null } : answer, false);
}

async function candidatesOf(
  entry: CatalogEntry,
  search: ProgramSearch,
  host: InstallationHost,
): Promise<readonly Candidate[]> {
  const known = (entry.knownPaths?.(host.env, host.home, host.platform) ?? []).flatMap(
    (path) => search.at(path) ?? [],
  );
  const named = await Promise.all(
    entry.binaries.map(async ({ name }) =>
      (await search.find(name)).map((program): Candidate => ({ entry, command: name, program })),
    ),
  );
  const first = entry.binaries[0]?.name ?? entry.id;
  const all = [...known.map((program): Candidate => ({ entry, command: first, program })), ...named.flat()];
  return all.filter(
    ({ program }, index) => all.findIndex((other) => other.program.realPath === program.realPath) === index,
  );
}

async function slotFor(candidate: Candidate, host: InstallationHost, wish: Wish): Promise<Slot> {
  const stranger = strangerReason(candidate.entry, candidate.command, candidate.program.realPath);
  const settled = (result: FoundProgram | null, wasKnown = true, wasSlow = false): Slot => ({
    candidate,
    wasKnown,
    wasSlow,
    result,
  });
  if (stranger !== null) {
    return settled(
      foundProgram(candidate, { versionState: 'unrecognised', version: null, problem: stranger }, true),
    );
  }
  const isEditor = candidate.entry.binaries.some(
    ({ name, editor }) => name === candidate.command && editor === true,
  );
  if (isEditor) {
    return settled(foundProgram(candidate, { versionState: 'editor', version: null, problem: null }, true));
  }
  const { answer, wasSlow } = await remembered(candidate, host.cache, host.now(), wish.patienceMs);
  if (answer === null || wish.refresh) return settled(null, answer !== null, wasSlow);
  return settled(foundProgram(candidate, answer, true));
}

class Scan {
  probes = 0;
  readonly #deadlineAt: number;
  readonly #search: ProgramSearch;
  readonly #host: InstallationHost;

  constructor(deadlineAt: number, search: ProgramSearch, host: InstallationHost) {
    this.#deadlineAt = deadlineAt;
    this.#search = search;
    this.#host = host;
  }

  /** Works through the runtimes that need asking, a bounded number at a time. */
  async runAll(tasks: readonly Task[]): Promise<void> {
    const waiting = tasks.filter((task) => nextSlot(task) !== null).sort((a, b) => urgency(a) - urgency(b));
    const width = Math.min(waiting.length, Math.max(4, this.#host.cores));
    const worker = async (): Promise<void> => {
      for (let task = waiting.shift(); task !== undefined && this.#left() > 0; task = waiting.shift()) {
        await this.#settle(task);
      }
    };
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, Math.max(0, this.#left()) + LATE_MS);
    await Promise.race([Promise.all(Array.from({ length: width }, worker)), late]);
    clearTimeout(timer);
  }

  #left(): number {
    return this.#deadlineAt - this.#host.now();
  }

  /** Asks a runtime's programs one after the other until one answers. */
  async #settle(task: Task): Promise<void> {
    for (let slot = nextSlot(task); slot !== null && this.#left() > 0; slot = nextSlot(task)) {
      this.probes += 1;
      const startedAt = this.#host.now();
      const answer = await probe(slot.candidate, this.#deadlineAt, this.#search, this.#host);
      slot.result = foundProgram(slot.candidate, answer, false);
      const now = this.#host.now();
      await remember(slot.candidate, answer, this.#host.cache, { now, waitedMs: now - startedAt });
    }
  }
}

/** The next program to ask: the first without a result, unless one before it has answered. */
function nextSlot({ candidates }: Task): Slot | null {
  for (const slot of candidates) {
    if (slot.result === null) return slot;
    if (slot.result.versionState === 'known' || slot.result.versionState === 'slow') return null;
  }
  return null;
}

/** Never asked before first; those that were too slow the last time last, so that they hold nobody up. */
function urgency(task: Task): number {
  const slot = nextSlot(task);
  if (slot === null) return 3;
  return slot.wasSlow ? 2 : Number(slot.wasKnown);
}
