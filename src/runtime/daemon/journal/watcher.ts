import { join } from 'node:path';
import { JOURNAL } from '../../limits.ts';
import type { Scheduler, ServiceClock } from '../clock.ts';
import type { LogFields, ServiceLog } from '../log.ts';
import { createPeriodic, type Periodic } from '../periodic.ts';
import type { SessionsEngine } from '../sessions/engine.ts';
import type { Origin } from '../sessions/entry.ts';
import type { RepoLookup } from '../sessions/repo.ts';
import { withRepo } from '../sessions/service.ts';
import { type JournalFiles, type JournalStat, systemJournalFiles } from './files.ts';
import { judgeJournal, type LifeProbes } from './judge.ts';
import { type JournalRead, readJournal } from './read.ts';
import {
  byStamp,
  idOfName,
  JOURNAL_AGENTS,
  type JournalAgent,
  type JournalRecord,
  journalFolder,
  payloadOf,
} from './record.ts';
import {
  type Aside,
  adoptAside,
  compactJournal,
  isTemporary,
  journalOfAside,
  removeJournal,
  tendAside,
} from './set-aside.ts';

export interface JournalWatcherOptions {
  readonly socketPath: string;
  readonly engine: SessionsEngine;
  readonly repos: RepoLookup;
  readonly probes: LifeProbes;
  readonly clock: ServiceClock;
  readonly scheduler: Scheduler;
  readonly log: ServiceLog;
  readonly files?: JournalFiles;
}

/** One journal as the watcher knows it. */
interface Tracked {
  readonly ino: number;
  /** Where the next read begins. */
  readonly offset: number;
  /** False while nothing usable was in it, or the judgement is still to come. */
  readonly imported: boolean;
}

interface Journal {
  readonly agent: JournalAgent;
  readonly id: string;
  readonly folder: string;
  readonly name: string;
  readonly path: string;
}

interface Counts {
  journals: number;
  records: number;
  replayed: number;
  rejected: number;
  removed: number;
  errors: number;
}

type RemoveReason = 'rejected' | 'orphan' | 'too_old' | 'unreadable' | 'stale_tmp';

/**
 * Reads the journals of hooks (S-520 … S-531): at first sight a whole one is judged, and replayed if its session may
 * live; afterwards what was appended is applied, so an event whose POST was lost arrives within one scan. Nothing
 * runs twice: the engine drops what it has seen (S-112). One journal that can't be read hinders no other.
 */
export function createJournalWatcher(options: JournalWatcherOptions): Periodic {
  const { engine, clock, log, probes } = options;
  const files = options.files ?? systemJournalFiles;
  const tracked = new Map<string, Tracked>();
  const asides = new Map<string, Aside>();
  const state = { first: true };

  const periodic = createPeriodic({
    name: 'journals',
    everyMs: JOURNAL.pollMs,
    scheduler: options.scheduler,
    log,
    reset: () => tracked.clear(),
    scan: async (): Promise<LogFields> => {
      const live = engine.liveIds();
      const counts: Counts = { journals: 0, records: 0, replayed: 0, rejected: 0, removed: 0, errors: 0 };
      for (const agent of JOURNAL_AGENTS) await scanFolder(agent, live, counts);
      state.first = false;
      return { ...counts };
    },
  });
  return periodic;

  async function scanFolder(agent: JournalAgent, live: ReadonlySet<string>, counts: Counts): Promise<void> {
    const folder = journalFolder(options.socketPath, agent);
    const names = files.names(folder);
    for (const name of names) attempt(name, counts, () => tidy(agent, folder, name, counts));
    const journals = new Set<string>();
    for (const name of new Set([...names, ...files.names(folder)])) {
      const id = idOfName(name);
      if (id === undefined) continue;
      const journal: Journal = { agent, id, folder, name, path: join(folder, name) };
      journals.add(journal.path);
      await attempt(name, counts, () => look(journal, live, counts));
    }
    for (const path of tracked.keys())
      if (path.startsWith(folder) && !journals.has(path)) tracked.delete(path);
  }

  async function attempt(name: string, counts: Counts, run: () => void | Promise<void>): Promise<void> {
    try {
      await run();
    } catch (error) {
      counts.errors += 1;
      log('debug', 'session_journal_failed', {
        name,
        error: error instanceof Error ? error.message : String(error),
      });
    }
  }

  /** Our own left-overs: temporary files of an hour ago, and what was set aside. Anything else is not touched (S-520). */
  function tidy(agent: JournalAgent, folder: string, name: string, counts: Counts): void {
    const path = join(folder, name);
    const now = clock.now();
    const journal = journalOfAside(name);
    if (journal !== undefined) {
      tidyAside(agent, folder, name, journal, now);
      return;
    }
    if (!isTemporary(name)) return;
    const stat = files.stat(path);
    if (stat?.kind !== 'file' || now - stat.mtimeMs <= JOURNAL.strayMs) return;
    files.remove(path);
    noteRemoved(name, 'stale_tmp', counts);
  }

  function tidyAside(agent: JournalAgent, folder: string, name: string, journal: string, now: number): void {
    const path = join(folder, name);
    if (files.stat(path)?.kind !== 'file') return;
    const known = asides.get(path);
    const id = idOfName(journal) ?? '';
    const next = known
      ? tendAside(files, folder, known, now)
      : adoptAside(files, folder, name, journal, readJournal(files, path, { agent, id }, 0), now);
    if (next) asides.set(path, next);
    else asides.delete(path);
  }

  async function look(journal: Journal, live: ReadonlySet<string>, counts: Counts): Promise<void> {
    const stat = files.stat(journal.path);
    if (stat?.kind !== 'file') return;
    counts.journals += 1;
    const known = tracked.get(journal.path);
    if (!known?.imported) {
      if (known && known.ino === stat.ino && known.offset === stat.size)
        return expire(journal, known, stat, live, counts);
      return firstSight(journal, live, counts);
    }
    const moved = known.ino !== stat.ino || stat.size < known.offset;
    if (!moved && stat.size === known.offset) return expire(journal, known, stat, live, counts);
    const read = readJournal(files, journal.path, journal, moved ? 0 : known.offset);
    noteDropped(read);
    await apply(recordsOf(read), 'journal', counts);
    tracked.set(journal.path, { ino: read.stat.ino, offset: read.next, imported: true });
    compactIfLarge(journal, read);
  }

  async function firstSight(journal: Journal, live: ReadonlySet<string>, counts: Counts): Promise<void> {
    const read = readJournal(files, journal.path, journal, 0);
    const records = recordsOf(read);
    noteDropped(read);
    const track = (imported: boolean): void =>
      void tracked.set(journal.path, { ino: read.stat.ino, offset: read.next, imported });
    // The service has heard of this session itself: nothing is to be judged, only what it missed to be added.
    const known = !state.first && live.has(journal.id) && records.length > 0;
    const verdict = known
      ? ({ kind: 'accept', proven: true } as const)
      : await judgeJournal(journal, records, probes, clock.now());
    if (verdict.kind === 'unreadable') return track(false);
    if (verdict.kind === 'reject') {
      counts.rejected += 1;
      log('debug', 'session_journal_rejected', { id: journal.id, reason: verdict.reason });
      return remove(journal, read.next, 'rejected', counts);
    }
    await apply(records, known ? 'journal' : 'replay', counts);
    counts.replayed += 1;
    log('debug', 'session_journal_replayed', {
      id: journal.id,
      proven: verdict.proven,
      records: records.length,
    });
    track(true);
    compactIfLarge(journal, read);
  }

  /** Repositories are looked up first; the records are then applied without a pause in between (S-529). */
  async function apply(records: readonly JournalRecord[], origin: Origin, counts: Counts): Promise<void> {
    const steps: (() => void)[] = [];
    for (const record of records) {
      if (record.op === 'observe') {
        const observe = await withRepo(payloadOf(record), options.repos);
        steps.push(() => void engine.observe(observe, origin));
      } else {
        const end = payloadOf(record);
        steps.push(() => void engine.end(end, origin));
      }
    }
    for (const step of steps) step();
    counts.records += records.length;
  }

  /** Only for a journal that gained nothing in this pass, so never in the one that imported it (S-526). */
  function expire(
    journal: Journal,
    known: Tracked,
    stat: JournalStat,
    live: ReadonlySet<string>,
    counts: Counts,
  ): void {
    const age = clock.now() - stat.mtimeMs;
    const quiet = age > JOURNAL.quietMs;
    if (age > JOURNAL.ageMs) remove(journal, known.offset, 'too_old', counts);
    else if (quiet && !known.imported) remove(journal, known.offset, 'unreadable', counts);
    else if (quiet && !live.has(journal.id)) remove(journal, known.offset, 'orphan', counts);
  }

  function remove(journal: Journal, consumed: number, reason: RemoveReason, counts: Counts): void {
    const aside = removeJournal(files, journal.folder, journal.name, consumed, clock.now());
    asides.set(aside.path, aside);
    tracked.delete(journal.path);
    noteRemoved(journal.name, reason, counts);
  }

  function noteDropped({ skipped, cutBytes }: JournalRead): void {
    if (skipped > 0) log('debug', 'sighting_dropped', { gate: 'journal_record', count: skipped });
    if (cutBytes > 0) log('debug', 'sighting_dropped', { gate: 'journal_backlog', bytes: cutBytes });
  }

  function noteRemoved(name: string, reason: RemoveReason, counts: Counts): void {
    counts.removed += 1;
    log('debug', 'session_journal_removed', { name, reason });
  }

  /** A large journal, read to its end, is rewritten to its last part (S-528). */
  function compactIfLarge(journal: Journal, read: JournalRead): void {
    if (read.next <= JOURNAL.compactBytes || read.next !== read.stat.size) return;
    const whole = readJournal(files, journal.path, journal, 0);
    const rewritten = compactJournal(files, journal.folder, journal.name, whole, clock.now());
    if (!rewritten) return;
    asides.set(rewritten.aside.path, rewritten.aside);
    const stat = files.stat(journal.path);
    if (stat) tracked.set(journal.path, { ino: stat.ino, offset: rewritten.resumeAt, imported: true });
    log('debug', 'session_journal_compacted', { id: journal.id, before: whole.next, after: rewritten.size });
  }
}

/** Hooks of one moment may write in another order than they fired in. */
function recordsOf(read: JournalRead): readonly JournalRecord[] {
  return read.records.map(({ record }) => record).sort(byStamp);
}
