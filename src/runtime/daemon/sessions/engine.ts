import { SESSIONS } from '../../limits.ts';
import { applyReport } from '../../session/reported.ts';
import type { ServiceClock } from '../clock.ts';
import { type ServiceLog, silent } from '../log.ts';
import { RequestError } from '../protocol.ts';
import { nanosToMs, parseNanos } from '../stamp.ts';
import type { End, Observe, Row, Stamp, WindowReport, WireState } from '../vocabulary.ts';
import {
  agentIdOf,
  type Entry,
  fillFields,
  isPassive,
  latch,
  type ObserveOutcome,
  type Origin,
  recordStamp,
  reportOf,
  type StampOutcome,
  skippedByStamp,
  trackPid,
  wireState,
} from './entry.ts';
import { rowOf, sortRows } from './rows.ts';
import { createWindows, quietest } from './windows.ts';

/** What adapters have proven about the owners of one session. */
export interface OwnerProof {
  /** Somebody who owns it lives: a live file with a matching start, a held lock, a server that lists it. */
  readonly alive: boolean;
  /** The pids among them, where the proof names any. */
  readonly pids: ReadonlySet<number>;
}

export interface EngineOptions {
  readonly clock: ServiceClock;
  readonly log?: ServiceLog;
  readonly platform?: NodeJS.Platform;
  /** `false` for a scratch engine that judges a journal: nothing ages in it (S-521). */
  readonly reaps?: boolean;
  /** Asked on every end and reap: must be cheap, and do no I/O (S-648). */
  readonly ownerProof?: (sessionId: string) => OwnerProof | undefined;
  /** The state that the one registry shows, where it knows better than reports alone. */
  readonly shownState?: (sessionId: string, own: WireState) => WireState;
}

/** What became of an end (S-932). */
export type EndOutcome =
  | 'ended'
  | 'already_ended'
  | 'replaced_pid_ignored'
  | 'other_owner_lives'
  | 'unknown'
  | StampOutcome;

/** A session with a process to look at (S-124). */
export interface PidCandidate {
  readonly id: string;
  readonly pid: number;
  readonly pidStart: string | undefined;
  readonly prompted: boolean;
  readonly streamed: boolean;
  readonly lastSeen: number;
  readonly startedAt: number;
}

/** The registry of reported sessions (S-1xx, S-2xx): synchronous, in memory, without I/O. */
export interface SessionsEngine {
  observe(observe: Observe, origin: Origin): ObserveOutcome;
  end(end: End, origin: Origin): { readonly known: boolean; readonly outcome: EndOutcome };
  window(report: WindowReport): void;
  windowUnregister(key: string): boolean;
  /** The body of `list` and of every frame; reaps, and never moves the version (S-121, S-321). */
  list(): { readonly sessions: readonly Row[] };
  /** The folder to open for a session (S-208). Throws `RequestError` naming it when no window shows it. */
  focusFolder(sessionId: string): string;
  /** A living owner was seen (S-123). */
  confirmPidLiveness(sessionId: string, token: string | undefined): void;
  /** Its owner process is gone or another process has its pid: ends it if that pid still owns it (S-643, S-646). */
  processEnded(sessionId: string, pid: number): boolean;
  candidates(): readonly PidCandidate[];
  /** Ids of sessions that have not ended, in lower case (S-124). */
  liveIds(): ReadonlySet<string>;
  creditOutage(ms: number): void;
  /** What is held about one session, for claims and tests; not to be changed. */
  entry(sessionId: string): Readonly<Entry> | undefined;
  entries(): readonly Readonly<Entry>[];
  /** Moves when something that a consumer shows has changed (S-120). */
  version(): number;
  onChange(listener: () => void): () => void;
  /** Calls back for every session that took a report in or was forgotten, shown or not: feeds the one registry. */
  onReport(listener: (sessionId: string) => void): () => void;
  /** Something outside that `list` shows has changed, such as the registry's states. */
  bump(): void;
}

/** Creates an empty engine. */
export function createSessionsEngine(options: EngineOptions): SessionsEngine {
  const { clock } = options;
  const log = options.log ?? silent;
  const windows = createWindows({ clock, log, platform: options.platform ?? process.platform });
  const entries = new Map<string, Entry>();
  const changeListeners = new Set<() => void>();
  const reportListeners = new Set<(sessionId: string) => void>();
  const state = { version: 0 };

  const bump = (): void => {
    state.version += 1;
    for (const listener of changeListeners) listener();
  };

  const tell = (id: string): void => {
    for (const listener of reportListeners) listener(id);
  };

  const drop = (entry: Entry, level: 'trace' | 'debug', reason: string): void => {
    entries.delete(entry.id);
    log(level, level === 'debug' ? 'session_evicted' : 'session_reaped', { id: entry.id, reason });
    tell(entry.id);
  };

  /** Drops what was silent for too long (S-202); a proven owner keeps its session, except wrapped chats. */
  const reap = (): number => {
    if (options.reaps === false) return 0;
    const now = clock.awakeMs();
    const old = [...entries.values()].filter((entry) => {
      const ended = entry.shown.phase === 'ended';
      if (now - entry.lastActive <= (ended ? SESSIONS.endedTtlMs : SESSIONS.ttlMs)) return false;
      return ended || entry.streamed || !options.ownerProof?.(entry.id)?.alive;
    });
    for (const entry of old)
      drop(entry, 'trace', entry.shown.phase === 'ended' ? 'ended_ttl' : 'session_ttl');
    if (old.length > 0) log('debug', 'sessions_reaped', { count: old.length });
    return old.length;
  };

  const evictIfFull = (): void => {
    if (entries.size < SESSIONS.sessions) return;
    const oldest = quietest([...entries.values()], (entry) => entry.id);
    if (oldest) drop(oldest, 'debug', 'capacity');
  };

  /** When an event counts as seen (S-102): journals keep their own times, which are never in the future. */
  const seenAt = (stamp: Stamp | undefined, origin: Origin, old: number): number => {
    const nanos = stamp && parseNanos(stamp.ts);
    const fromJournal = origin === 'journal' || origin === 'replay';
    if (!fromJournal || nanos === undefined) return clock.now();
    return Math.max(old, Math.min(nanosToMs(nanos), clock.now()));
  };

  /** When the event fired, for the evidence: its own stamp, if it has one. */
  const firedAt = (stamp: Stamp | undefined): number => {
    const nanos = stamp && parseNanos(stamp.ts);
    return nanos === undefined ? clock.now() : Math.min(nanosToMs(nanos), clock.now());
  };

  const touch = (entry: Entry, stamp: Stamp | undefined, origin: Origin): void => {
    entry.lastActive = clock.awakeMs();
    entry.lastSeen = seenAt(stamp, origin, entry.lastSeen);
  };

  const create = (observe: Observe, origin: Origin): ObserveOutcome => {
    evictIfFull();
    const at = firedAt(observe.stamp);
    const shown = applyReport(undefined, reportOf(observe, at, 'shown'));
    if (!shown) return 'heartbeat_only';
    const seen = seenAt(observe.stamp, origin, 0);
    const entry: Entry = {
      ...EMPTY,
      id: observe.session_id,
      agent: observe.agent ?? 'claude',
      shown,
      lastEvent: observe.event,
      startedAt: seen,
      lastSeen: seen,
      lastActive: clock.awakeMs(),
      pid: observe.pid,
    };
    latch(entry, observe, at);
    fillFields(entry, observe);
    applyToHooks(entry, observe, at);
    recordStamp(entry, observe.stamp);
    entries.set(entry.id, entry);
    return 'created';
  };

  const update = (entry: Entry, observe: Observe, origin: Origin): ObserveOutcome => {
    const at = firedAt(observe.stamp);
    const before = entry.shown.phase;
    trackPid(entry, observe.pid);
    latch(entry, observe, at);
    entry.shown = applyReport(entry.shown, reportOf(observe, at, 'shown')) ?? entry.shown;
    applyToHooks(entry, observe, at);
    entry.lastEvent = observe.event;
    touch(entry, observe.stamp, origin);
    const enriched = fillFields(entry, observe);
    recordStamp(entry, observe.stamp);
    if (entry.shown.phase !== before) return 'state_changed';
    return enriched ? 'metadata_enriched' : 'heartbeat_only';
  };

  /** A replaced process is heard again once it opens something, or is proven to live on this session. */
  const isReplaced = (entry: Entry, observe: Observe): boolean => {
    const { pid, event } = observe;
    if (pid === undefined || !entry.replacedPids.includes(pid)) return false;
    const opens = event === 'session_start' || event === 'user_prompt_submit';
    if (opens && agentIdOf(observe) === undefined) return false;
    return !options.ownerProof?.(entry.id)?.pids.has(pid);
  };

  const judge = (observe: Observe, origin: Origin): ObserveOutcome => {
    const entry = entries.get(observe.session_id);
    if (!entry) return create(observe, origin);
    const skipped = skippedByStamp(entry, observe.stamp, origin);
    if (skipped) return skipped;
    const ignored =
      entry.shown.phase === 'ended' && isPassive(observe)
        ? 'ended_passive_ignored'
        : isReplaced(entry, observe)
          ? 'replaced_pid_ignored'
          : undefined;
    if (!ignored) return update(entry, observe, origin);
    recordStamp(entry, observe.stamp);
    return ignored;
  };

  const judgeEnd = (end: End, origin: Origin): EndOutcome => {
    const entry = entries.get(end.session_id);
    if (!entry) return 'unknown';
    const skipped = skippedByStamp(entry, end.stamp, origin);
    if (skipped) return skipped;
    recordStamp(entry, end.stamp);
    if (entry.shown.phase === 'ended') return 'already_ended';
    if (end.pid !== undefined && entry.replacedPids.includes(end.pid)) return 'replaced_pid_ignored';
    if (handOver(entry, end.pid)) return 'other_owner_lives';
    finish(entry, firedAt(end.stamp));
    touch(entry, end.stamp, origin);
    return 'ended';
  };

  /**
   * A session ends only with its last owner: another process that is proven to live on it takes over. An
   * end that names no process may speak of the only proven one, whose file is not gone yet.
   */
  const handOver = (entry: Entry, pid: number | undefined): boolean => {
    const proven = options.ownerProof?.(entry.id)?.pids ?? NOBODY;
    const leaving = pid ?? entry.pid;
    const others = [...proven].filter((owner) => owner !== leaving);
    const heir = others.find((owner) => entry.replacedPids.includes(owner)) ?? others[0];
    if (heir === undefined || (leaving === undefined && others.length < 2)) return false;
    if (leaving === entry.pid) trackPid(entry, heir);
    return true;
  };

  const finish = (entry: Entry, at: number): void => {
    entry.shown = applyReport(entry.shown, { event: 'end', at }) ?? entry.shown;
    entry.hooks = applyReport(entry.hooks, { event: 'end', at });
    if (entry.stream) entry.stream = { state: 'ended', at };
    entry.lastEvent = 'stop';
  };

  return {
    observe(observe, origin) {
      const reaped = reap();
      const before = entries.get(observe.session_id)?.shown.phase;
      const outcome = judge(observe, origin);
      const bumped = reaped > 0 || ['created', 'state_changed', 'metadata_enriched'].includes(outcome);
      const after = entries.get(observe.session_id)?.shown.phase;
      log('debug', 'session_observed', {
        id: observe.session_id,
        agent: observe.agent ?? 'claude',
        pid: observe.pid,
        agent_id: observe.agent_id,
        event: eventName(observe),
        seq: observe.stamp?.seq,
        old: before && wireState(before),
        new: after && wireState(after),
        outcome,
        origin,
        reaped,
        bumped,
      });
      if (!outcome.endsWith('_ignored')) tell(observe.session_id);
      if (bumped) bump();
      return outcome;
    },
    end(end, origin) {
      const reaped = reap();
      const outcome = judgeEnd(end, origin);
      log('debug', 'session_end', {
        id: end.session_id,
        pid: end.pid,
        reason: end.reason,
        seq: end.stamp?.seq,
        outcome,
        origin,
        reaped,
      });
      if (outcome === 'ended') tell(end.session_id);
      if (outcome === 'ended' || reaped > 0) bump();
      return { known: outcome !== 'unknown', outcome };
    },
    window(report) {
      if (windows.report(report)) bump();
    },
    windowUnregister(key) {
      const removed = windows.remove(key);
      if (removed) bump();
      return removed;
    },
    list() {
      reap();
      windows.reap();
      const shown = options.shownState;
      const rows = [...entries.values()].map((entry) => {
        const own = wireState(entry.shown.phase);
        return rowOf(entry, shown ? shown(entry.id, own) : own, windows.sourceOf(entry.cwd));
      });
      return { sessions: sortRows(rows) };
    },
    focusFolder(sessionId) {
      reap();
      windows.reap();
      const folder = windows.folderOf(entries.get(sessionId)?.cwd);
      if (folder === undefined) throw new RequestError(`no window shows session ${sessionId}`);
      return folder;
    },
    confirmPidLiveness(sessionId, token) {
      const entry = entries.get(sessionId);
      if (!entry || entry.shown.phase === 'ended') return;
      entry.lastSeen = clock.now();
      entry.lastActive = clock.awakeMs();
      entry.pidStart ??= token;
    },
    processEnded(sessionId, pid) {
      const entry = entries.get(sessionId);
      if (!entry || entry.pid !== pid || entry.shown.phase === 'ended') return false;
      if (handOver(entry, pid)) return false;
      finish(entry, clock.now());
      touch(entry, undefined, 'local');
      log('debug', 'session_process_ended', { id: sessionId, pid });
      tell(sessionId);
      bump();
      return true;
    },
    candidates: () =>
      [...entries.values()].flatMap((entry): PidCandidate[] => {
        const { id, pid, pidStart, prompted, streamed, lastSeen, startedAt } = entry;
        if (pid === undefined || entry.shown.phase === 'ended') return [];
        return [{ id, pid, pidStart, prompted, streamed, lastSeen, startedAt }];
      }),
    liveIds: () =>
      new Set(
        [...entries.values()]
          .filter((entry) => entry.shown.phase !== 'ended')
          .map((entry) => entry.id.toLowerCase()),
      ),
    creditOutage: (ms) => windows.credit(ms),
    entry: (sessionId) => entries.get(sessionId),
    entries: () => [...entries.values()],
    version: () => state.version,
    onChange(listener) {
      changeListeners.add(listener);
      return () => void changeListeners.delete(listener);
    },
    onReport(listener) {
      reportListeners.add(listener);
      return () => void reportListeners.delete(listener);
    },
    bump,
  };
}

const NOBODY: ReadonlySet<number> = new Set();

const EMPTY = {
  hooks: undefined,
  stream: undefined,
  cwd: undefined,
  repo: undefined,
  transcriptPath: undefined,
  model: undefined,
  pidStart: undefined,
  prompted: false,
  streamed: false,
  replacedPids: [],
  recentSeqs: [],
  latestStamp: undefined,
} as const;

/**
 * Hooks make reported evidence of their own. Streams are exact and kept apart; a file that only appeared or
 * grew says nothing about a state of a session that no hook has spoken for.
 */
function applyToHooks(entry: Entry, observe: Observe, at: number): void {
  const { event } = observe;
  if (typeof event !== 'string' && 'stream_state' in event) return;
  if (!entry.hooks && isPassive(observe) && agentIdOf(observe) === undefined) return;
  entry.hooks = applyReport(entry.hooks, reportOf(observe, at, 'hooks'));
}

function eventName(observe: Observe): string {
  const { event } = observe;
  if (typeof event === 'string') return event;
  return 'notification' in event ? event.notification : `stream:${event.stream_state}`;
}
