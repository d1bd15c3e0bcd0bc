import type { Claim } from '../../session/evidence.ts';
import { type Reported, reportedClaim } from '../../session/reported.ts';
import type { SessionFacts } from '../../session/session.ts';
import { IDLE, RUNNING, type SessionState, waitingOn } from '../../session/state.ts';
import type { Agent, WireState } from '../vocabulary.ts';
import type { Entry } from './entry.ts';

/** Runtime ids of the agents on the `sessions` socket. */
export const RUNTIME_OF: Readonly<Record<Agent, string>> = {
  claude: 'claude-code',
  codex: 'codex',
  pi: 'pi',
};

/**
 * The standing claims of the reports about one session, for the one registry: what hooks add up to, as
 * `<runtime>.hooks`, reported; and the last word of a wrapper or extension of its present owner, as
 * `<runtime>.stream`, exact. Nothing for a session that only a watcher of files has announced.
 */
export function claimsOf(entry: Readonly<Entry>): readonly Claim[] {
  const runtime = RUNTIME_OF[entry.agent];
  const hooks = entry.hooks ? [reportedClaim(`${runtime}.hooks`, ownReports(entry.agent, entry.hooks))] : [];
  return entry.stream ? [...hooks, streamClaim(`${runtime}.stream`, entry.stream)] : hooks;
}

/** Under the waits of Codex's sub-agents, which are threads with claims of their own, the parent's phase. */
function ownReports(agent: Agent, hooks: Reported): Reported {
  return agent === 'codex' && hooks.agentWaits.size > 0 ? { ...hooks, phase: hooks.parentPhase } : hooks;
}

function streamClaim(feed: string, stream: NonNullable<Entry['stream']>): Claim {
  return {
    feed,
    confidence: 'exact',
    at: stream.at,
    says: stateOf(stream.state),
    detail: `stream says ${stream.state}`,
  };
}

function stateOf(state: WireState): SessionState {
  switch (state) {
    case 'starting':
      return { kind: 'starting' };
    case 'working':
      return RUNNING;
    case 'idle':
      return IDLE;
    case 'waiting_for_input':
      return waitingOn('unspecified');
    case 'waiting_for_permission':
      return waitingOn('tool');
    case 'ended':
      return { kind: 'ended' };
  }
}

/** What the reports tell of the session itself, for the one registry. */
export function factsOf(entry: Readonly<Entry>): SessionFacts {
  return {
    startedAt: entry.startedAt,
    lastActivityAt: entry.lastSeen,
    ...(entry.cwd === undefined ? {} : { workDir: entry.cwd }),
    ...(entry.model === undefined ? {} : { model: entry.model }),
    ...(entry.transcriptPath === undefined ? {} : { file: entry.transcriptPath }),
    ...(entry.pid === undefined || entry.shown.phase === 'ended' ? {} : { pids: [entry.pid] }),
  };
}
