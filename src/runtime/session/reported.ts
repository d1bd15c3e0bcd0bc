import type { Claim, TurnFacts } from './evidence.ts';
import type { Outcome, SessionState, ToolCall, WaitSubject } from './state.ts';
import { IDLE, UNKNOWN, waitingOn } from './state.ts';

/** The closed event vocabulary of reports (S-007); each runtime's own events are mapped onto it by its adapter. */
export type ReportedEvent =
  | 'session_start'
  | 'user_prompt_submit'
  | 'pre_tool_use'
  | 'post_tool_use'
  | 'stop'
  | 'permission_prompt'
  | 'idle_prompt'
  | 'agent_needs_input'
  | 'other_notification'
  | 'transcript_grew'
  | 'transcript_discovered'
  /** An authoritative feed of the socket says the phase itself: `Report.phase` (S-106). */
  | 'stream_state'
  | 'end';

/** One report about one session. Carries no content. */
export interface Report {
  readonly event: ReportedEvent;
  /** Epoch milliseconds at which the event fired. */
  readonly at: number;
  /** A sub-agent's own report: it never runs the parent's turn (S-115, R-14). */
  readonly agentId?: string;
  readonly tool?: ToolCall;
  /** What a wait is about, where the event names it. */
  readonly on?: WaitSubject;
  /** How a `stop` ended the turn; absent means well. */
  readonly outcome?: Outcome;
  readonly error?: string;
  /** Background shells still running at a `stop`. */
  readonly backgroundWork?: number;
  /** A `stop` of work that was no turn of the user's: the last outcome stays. */
  readonly noTurn?: boolean;
  /** What a `stream_state` says. */
  readonly phase?: Phase;
}

/** Where the reports have brought a session: the states of the sessions socket (S-003). */
export type Phase = 'starting' | 'working' | 'waiting_input' | 'waiting_permission' | 'idle' | 'ended';

/** What the reports about one session add up to (S-103). */
export interface Reported {
  readonly phase: Phase;
  /** Time of the report that set the phase. */
  readonly at: number;
  readonly last: ReportedEvent;
  readonly tool?: ToolCall;
  readonly on?: WaitSubject;
  readonly turn: TurnFacts;
  readonly backgroundWork: number;
  /** The wait is only the reminder of a minute's rest: the socket shows it, session JSON does not. */
  readonly reminder: boolean;
  /** Open waits of sub-agents by agent id (S-115), at most 64 (S-118). */
  readonly agentWaits: ReadonlyMap<string, 'waiting_input' | 'waiting_permission'>;
  /** The phase under those waits. */
  readonly parentPhase: Phase;
}

const MAX_AGENT_WAITS = 64;

const PASSIVE: ReadonlySet<ReportedEvent> = new Set([
  'transcript_discovered',
  'transcript_grew',
  'other_notification',
]);

/** Applies one report (S-101 steps 3 and 5, S-103 … S-119, without stamps and ownership). */
export function applyReport(previous: Reported | undefined, report: Report): Reported | undefined {
  if (report.event === 'end') return previous && end(previous, report);
  if (report.agentId !== undefined) return applyAgentReport(previous, report);
  if (previous?.phase === 'ended' && PASSIVE.has(report.event)) return previous;
  const passive = PASSIVE.has(report.event) || isLateReminder(previous, report);
  const phase = isLateReminder(previous, report) ? 'waiting_input' : nextPhase(previous?.phase, report);
  if (previous && passive) {
    return {
      ...previous,
      phase,
      // Under a sub-agent's wait the parent's own phase stands still; else it is what is shown (S-115, S-116).
      parentPhase: previous.agentWaits.size > 0 ? previous.parentPhase : phase,
      last: report.event,
      at: phase === previous.phase ? previous.at : report.at,
    };
  }
  return {
    phase,
    at: report.at,
    last: report.event,
    ...subjectOfWait(previous, report, phase),
    turn: nextTurn(previous?.turn ?? {}, report),
    backgroundWork: report.event === 'stop' ? (report.backgroundWork ?? 0) : (previous?.backgroundWork ?? 0),
    reminder: report.event === 'idle_prompt',
    agentWaits: new Map(),
    parentPhase: phase,
  };
}

/** What a wait is about. A repeated notice that names nothing is about what was named before. */
function subjectOfWait(
  previous: Reported | undefined,
  report: Report,
  phase: Phase,
): Pick<Reported, 'tool' | 'on'> {
  const repeats = phase === 'waiting_permission' && previous?.phase === phase && !report.tool && !report.on;
  const { tool, on } = repeats ? previous : report;
  return { ...(tool ? { tool } : {}), ...(on ? { on } : {}) };
}

/**
 * A permission notice while a question is open is the question's own, seconds late: the wait stays an input
 * (R-06, which amends this cell of S-103). The reminder of a minute's rest is no such question, and
 * neither is one that only a sub-agent asked.
 */
function isLateReminder(previous: Reported | undefined, report: Report): boolean {
  return (
    report.event === 'permission_prompt' && previous?.parentPhase === 'waiting_input' && !previous.reminder
  );
}

/** The table of S-103, parent sightings. `undefined` means the session was not known. */
function nextPhase(phase: Phase | undefined, report: Report): Phase {
  switch (report.event) {
    case 'session_start':
      return 'starting';
    case 'user_prompt_submit':
    case 'pre_tool_use':
    case 'post_tool_use':
      return 'working';
    case 'stop':
      return 'idle';
    case 'permission_prompt':
      return 'waiting_permission';
    case 'idle_prompt':
    case 'agent_needs_input':
      return 'waiting_input';
    case 'transcript_grew':
      return phase === undefined || phase === 'idle' ? 'working' : phase;
    case 'other_notification':
    case 'transcript_discovered':
      return phase ?? 'idle';
    case 'stream_state':
      return report.phase ?? phase ?? 'idle';
    case 'end':
      return 'ended';
  }
}

function nextTurn(turn: TurnFacts, report: Report): TurnFacts {
  if (report.event === 'user_prompt_submit') return { openedAt: report.at };
  if (report.event !== 'stop' || report.noTurn) return turn;
  return {
    ...turn,
    endedAt: report.at,
    end: report.outcome ?? 'completed',
    ...(report.error ? { error: report.error } : {}),
  };
}

/** A sub-agent shares the row and never moves the parent's turn (S-115, S-117). */
function applyAgentReport(previous: Reported | undefined, report: Report): Reported {
  const base: Reported = previous ?? {
    phase: 'idle',
    at: report.at,
    last: report.event,
    turn: {},
    backgroundWork: 0,
    reminder: false,
    agentWaits: new Map(),
    parentPhase: 'idle',
  };
  if (base.phase === 'ended') return base;
  const waits = new Map(base.agentWaits);
  const id = report.agentId ?? '';
  const wait = agentWait(report.event);
  if (wait && (waits.has(id) || waits.size < MAX_AGENT_WAITS)) waits.set(id, wait);
  if (report.event === 'post_tool_use') waits.delete(id);
  const kinds = [...waits.values()];
  const phase = kinds.includes('waiting_permission') ? 'waiting_permission' : (kinds[0] ?? base.parentPhase);
  const at = phase === base.phase ? base.at : report.at;
  return {
    ...base,
    phase,
    at,
    last: report.event,
    agentWaits: waits,
    ...(wait && report.tool ? { tool: report.tool } : {}),
    ...(wait && report.on ? { on: report.on } : {}),
  };
}

function agentWait(event: ReportedEvent): 'waiting_input' | 'waiting_permission' | undefined {
  if (event === 'permission_prompt') return 'waiting_permission';
  return event === 'idle_prompt' || event === 'agent_needs_input' ? 'waiting_input' : undefined;
}

/** The process or conversation is over; an open turn stays open here and is cut by `fuse` (S-119, R-02). */
function end(previous: Reported, report: Report): Reported {
  if (previous.phase === 'ended') return previous;
  return {
    ...previous,
    phase: 'ended',
    at: report.at,
    last: 'end',
    agentWaits: new Map(),
    parentPhase: 'ended',
  };
}

/** The standing claim of a hook feed. */
export function reportedClaim(feed: string, reported: Reported): Claim {
  return {
    feed,
    confidence: 'reported',
    at: reported.at,
    says: stateOf(reported),
    turn: reported.turn,
    backgroundWork: reported.backgroundWork,
    detail: `hook ${reported.last}`,
  };
}

function stateOf(reported: Reported): SessionState {
  const ending = reported.turn.end;
  switch (reported.phase) {
    case 'starting':
      return { kind: 'starting', ...(ending ? { outcome: ending } : {}) };
    case 'working': {
      const tool = reported.last === 'pre_tool_use' ? reported.tool : undefined;
      return tool ? { kind: 'working', doing: 'tool', tool } : { kind: 'working', doing: 'running' };
    }
    case 'waiting_permission':
      return waitingOn(reported.on ?? 'tool', reported.tool);
    case 'waiting_input':
      return reported.reminder ? restOf(ending) : waitingOn(reported.on ?? 'unspecified', reported.tool);
    case 'idle':
      return restOf(ending);
    case 'ended':
      return endOf(reported.turn);
  }
}

/** Rest without a known end is a session that nobody has prompted yet. */
function restOf(ending: Outcome | undefined): SessionState {
  if (!ending) return IDLE;
  return ending === 'limited' ? waitingOn('output-limit') : { kind: 'rested', outcome: ending };
}

function endOf(turn: TurnFacts): SessionState {
  if (turn.end) return { kind: 'ended', outcome: turn.end };
  return turn.openedAt === undefined ? UNKNOWN : { kind: 'ended', outcome: 'stopped' };
}
