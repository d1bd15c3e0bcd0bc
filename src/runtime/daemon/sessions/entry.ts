import { SESSIONS } from '../../limits.ts';
import type { Phase, Report, Reported } from '../../session/reported.ts';
import { parseNanos } from '../stamp.ts';
import type { Agent, Observe, Stamp, WireEvent, WireState } from '../vocabulary.ts';

/** By which way a report came (S-931). Journals are read while running, and once more as a whole at first sight. */
export type Origin = 'socket' | 'local' | 'journal' | 'replay';

/** What became of a sighting (S-931). */
export type ObserveOutcome =
  | 'created'
  | 'state_changed'
  | 'metadata_enriched'
  | 'heartbeat_only'
  | StampOutcome
  | 'ended_passive_ignored'
  | 'replaced_pid_ignored';

/** Why a stamp kept an event out (S-112, S-113). */
export type StampOutcome = 'duplicate_ignored' | 'journal_stale_ignored' | 'socket_reordered_ignored';

/** One session as the engine holds it (S-002, S-004). Fields below `agent` change in place. */
export interface Entry {
  readonly id: string;
  /** Fixed by the first sighting (S-005). */
  readonly agent: Agent;
  /** Where all reports have brought it: what the socket shows (S-103). */
  shown: Reported;
  /** The same for hooks alone: the reported evidence of the registry. */
  hooks: Reported | undefined;
  /** The last word of an authoritative feed of the present owner: exact evidence (S-106). */
  stream: { readonly state: WireState; readonly at: number } | undefined;
  lastEvent: WireEvent;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  lastSeen: number;
  /** Awake milliseconds; the only thing that a time to live is measured from (S-201). */
  lastActive: number;
  cwd: string | undefined;
  repo: string | undefined;
  transcriptPath: string | undefined;
  model: string | undefined;
  pid: number | undefined;
  /** Start token of that pid, set by the pid watcher only (S-641). */
  pidStart: string | undefined;
  prompted: boolean;
  streamed: boolean;
  replacedPids: readonly number[];
  recentSeqs: readonly string[];
  latestStamp: bigint | undefined;
}

const WIRE_OF: Record<Phase, WireState> = {
  starting: 'starting',
  working: 'working',
  idle: 'idle',
  waiting_input: 'waiting_for_input',
  waiting_permission: 'waiting_for_permission',
  ended: 'ended',
};

const PHASE_OF: Record<WireState, Phase> = {
  starting: 'starting',
  working: 'working',
  idle: 'idle',
  waiting_for_input: 'waiting_input',
  waiting_for_permission: 'waiting_permission',
  ended: 'ended',
};

/** The socket's word for a phase (S-003). */
export function wireState(phase: Phase): WireState {
  return WIRE_OF[phase];
}

/** The sub-agent a sighting speaks of; both agents with sub-agents are honoured, pi has none (S-115, R-14). */
export function agentIdOf(observe: Observe): string | undefined {
  return observe.agent === 'pi' ? undefined : observe.agent_id;
}

/** Sightings that prove no activity of a person or a turn: they never revive an ended session (S-108). */
export function isPassive(observe: Observe): boolean {
  const { event } = observe;
  if (agentIdOf(observe) !== undefined) return true;
  if (typeof event === 'string') return event === 'transcript_discovered' || event === 'transcript_grew';
  return 'notification' in event && event.notification === 'other';
}

/** Whether a sighting that came from outside is one of an agent's own hooks: not of a wrapper, not of a file. */
export function isOfHook({ event, agent }: Observe): boolean {
  if (agent === 'pi') return false;
  if (typeof event !== 'string') return 'notification' in event;
  return event !== 'transcript_grew' && event !== 'transcript_discovered';
}

/**
 * A sighting as a report for the state machine. `shown`: as the socket shows it, where the reminder of a minute's
 * rest is an input wait like any other (R-11, and R-06 on the cell beside it). `hooks`: as evidence, where it is not.
 */
export function reportOf(observe: Observe, at: number, use: 'shown' | 'hooks'): Report {
  const agentId = agentIdOf(observe);
  return {
    at,
    ...eventOf(observe.event, use),
    ...(agentId === undefined ? {} : { agentId }),
    ...(observe.event === 'stop' ? stopOf(observe) : {}),
  };
}

function eventOf(event: WireEvent, use: 'shown' | 'hooks'): Pick<Report, 'event' | 'on' | 'phase'> {
  if (typeof event === 'string') return { event };
  if ('stream_state' in event) return { event: 'stream_state', phase: PHASE_OF[event.stream_state] };
  switch (event.notification) {
    case 'permission_prompt':
      return { event: 'permission_prompt' };
    case 'agent_needs_input':
      return { event: 'agent_needs_input', on: 'question' };
    case 'idle_prompt':
      return { event: use === 'shown' ? 'agent_needs_input' : 'idle_prompt' };
    case 'other':
      return { event: 'other_notification' };
  }
}

function stopOf(observe: Observe): Partial<Report> {
  const { outcome, background } = observe;
  return {
    ...(outcome === 'none' ? { noTurn: true } : outcome ? { outcome } : {}),
    ...(background ? { backgroundWork: background } : {}),
  };
}

/** Whether a stamp keeps an event out of a session that is known (S-112, S-113). Unstamped events never are. */
export function skippedByStamp(
  entry: Entry,
  stamp: Stamp | undefined,
  origin: Origin,
): StampOutcome | undefined {
  const at = stamp && parseNanos(stamp.ts);
  if (!stamp || at === undefined) return undefined;
  if (entry.recentSeqs.includes(stamp.seq)) return 'duplicate_ignored';
  const behind = entry.latestStamp === undefined ? 0n : entry.latestStamp - at;
  if (behind <= 0n || origin === 'local') return undefined;
  if (origin !== 'socket') return 'journal_stale_ignored';
  // Further behind, the wall clock was set back: dropping would freeze the session (S-113).
  return behind < BigInt(SESSIONS.reorderMs) * 1_000_000n ? 'socket_reordered_ignored' : undefined;
}

/** Remembers a stamp (S-114). */
export function recordStamp(entry: Entry, stamp: Stamp | undefined): void {
  const at = stamp && parseNanos(stamp.ts);
  if (!stamp || at === undefined) return;
  entry.recentSeqs = [...entry.recentSeqs, stamp.seq].slice(-SESSIONS.recentSeqs);
  if (entry.latestStamp === undefined || at > entry.latestStamp) entry.latestStamp = at;
}

/** A new process speaks: it owns the session, and the former one is remembered as replaced (S-109). */
export function trackPid(entry: Entry, pid: number | undefined): void {
  if (pid === undefined || pid === entry.pid) return;
  if (entry.pid !== undefined) {
    const others = entry.replacedPids.filter((old) => old !== pid && old !== entry.pid);
    entry.replacedPids = [...others, entry.pid].slice(-SESSIONS.replacedPids);
    entry.streamed = false;
    entry.stream = undefined;
  }
  entry.pid = pid;
  entry.pidStart = undefined;
}

/** What lasts of a sighting beyond its event (S-110). */
export function latch(entry: Entry, observe: Observe, at: number): void {
  const { event } = observe;
  if (event === 'user_prompt_submit' && agentIdOf(observe) === undefined) entry.prompted = true;
  if (typeof event === 'string' || !('stream_state' in event)) return;
  entry.stream = { state: event.stream_state, at };
  if (entry.agent === 'claude') entry.streamed = true;
}

/** Fills in best-effort fields; true if one took a new value (S-006). */
export function fillFields(entry: Entry, observe: Observe): boolean {
  const next = {
    cwd: observe.cwd ?? entry.cwd,
    repo: observe.repo ?? entry.repo,
    transcriptPath: observe.transcript_path ?? entry.transcriptPath,
    model: observe.model ?? entry.model,
  };
  const changed =
    next.cwd !== entry.cwd ||
    next.repo !== entry.repo ||
    next.transcriptPath !== entry.transcriptPath ||
    next.model !== entry.model;
  Object.assign(entry, next);
  return changed;
}
