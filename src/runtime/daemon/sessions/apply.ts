import { applyReport } from '../../session/reported.ts';
import type { ServiceClock } from '../clock.ts';
import { nanosToMs, parseNanos } from '../stamp.ts';
import type { Observe, Stamp } from '../vocabulary.ts';
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
  trackPid,
} from './entry.ts';

/** What adapters have proven about the owners of one session. */
export interface OwnerProof {
  /** Somebody who owns it lives: a live file with a matching start, a held lock, a server that lists it. */
  readonly alive: boolean;
  /** The pids among them, where the proof names any. */
  readonly pids: ReadonlySet<number>;
}

/** When an event counts as seen (S-102): journals keep their own times, which are never in the future. */
function seenAt(clock: ServiceClock, stamp: Stamp | undefined, origin: Origin, old: number): number {
  const nanos = stamp && parseNanos(stamp.ts);
  const fromJournal = origin === 'journal' || origin === 'replay';
  if (!fromJournal || nanos === undefined) return clock.now();
  return Math.max(old, Math.min(nanosToMs(nanos), clock.now()));
}

/** When the event fired, for the evidence: its own stamp, if it has one. */
export function firedAt(clock: ServiceClock, stamp: Stamp | undefined): number {
  const nanos = stamp && parseNanos(stamp.ts);
  return nanos === undefined ? clock.now() : Math.min(nanosToMs(nanos), clock.now());
}

/** Notes a sign of life (S-102). */
export function touch(clock: ServiceClock, entry: Entry, stamp: Stamp | undefined, origin: Origin): void {
  entry.lastActive = clock.awakeMs();
  entry.lastSeen = seenAt(clock, stamp, origin, entry.lastSeen);
}

/** The entry that a first sighting makes (S-111); `undefined` for one that makes none. */
export function createEntry(clock: ServiceClock, observe: Observe, origin: Origin): Entry | undefined {
  const at = firedAt(clock, observe.stamp);
  const shown = applyReport(undefined, reportOf(observe, at, 'shown'));
  if (!shown) return undefined;
  const seen = seenAt(clock, observe.stamp, origin, 0);
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
  return entry;
}

/** Applies a sighting of a known session (S-101 steps 5 and 7). */
export function updateEntry(
  clock: ServiceClock,
  entry: Entry,
  observe: Observe,
  origin: Origin,
): ObserveOutcome {
  const at = firedAt(clock, observe.stamp);
  const before = entry.shown.phase;
  trackPid(entry, observe.pid);
  latch(entry, observe, at);
  entry.shown = applyReport(entry.shown, reportOf(observe, at, 'shown')) ?? entry.shown;
  applyToHooks(entry, observe, at);
  entry.lastEvent = observe.event;
  touch(clock, entry, observe.stamp, origin);
  const enriched = fillFields(entry, observe);
  recordStamp(entry, observe.stamp);
  if (entry.shown.phase !== before) return 'state_changed';
  return enriched ? 'metadata_enriched' : 'heartbeat_only';
}

/** A replaced process is heard again once it opens something, or is proven to live on this session. */
export function isReplaced(entry: Entry, observe: Observe, proof: OwnerProof | undefined): boolean {
  const { pid, event } = observe;
  if (pid === undefined || !entry.replacedPids.includes(pid)) return false;
  const opens = event === 'session_start' || event === 'user_prompt_submit';
  if (opens && agentIdOf(observe) === undefined) return false;
  return !proof?.pids.has(pid);
}

/**
 * A session ends only with its last owner: another process that is proven to live on it takes over, and true
 * is returned. An end that names no process may speak of the only proven one, whose file is not gone yet.
 */
export function handOver(entry: Entry, pid: number | undefined, proof: OwnerProof | undefined): boolean {
  const leaving = pid ?? entry.pid;
  const others = [...(proof?.pids ?? [])].filter((owner) => owner !== leaving);
  const heir = others.find((owner) => entry.replacedPids.includes(owner)) ?? others[0];
  if (heir === undefined || (leaving === undefined && others.length < 2)) return false;
  if (leaving === entry.pid) trackPid(entry, heir);
  return true;
}

/** The session is over (S-119). */
export function finishEntry(entry: Entry, at: number): void {
  entry.shown = applyReport(entry.shown, { event: 'end', at }) ?? entry.shown;
  entry.hooks = applyReport(entry.hooks, { event: 'end', at });
  if (entry.stream) entry.stream = { state: 'ended', at };
  entry.lastEvent = 'stop';
}

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
