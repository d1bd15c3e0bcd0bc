import type { Fused } from './session.ts';
import type { Outcome, SessionState } from './state.ts';

/** `state` of session JSON and of the Shadow wire (`shadow-server.md` §8). */
export type PublicState =
  | 'idle'
  | 'running'
  | 'streaming'
  | 'tool_call'
  | 'waiting_for_approval'
  | 'blocked'
  | 'completed'
  | 'failed'
  | 'stopped'
  | 'unknown';

/** All public states, in the order of the shared vocabulary. */
export const PUBLIC_STATES: readonly PublicState[] = [
  'idle',
  'running',
  'streaming',
  'tool_call',
  'waiting_for_approval',
  'blocked',
  'completed',
  'failed',
  'stopped',
  'unknown',
];

/** `state` on the `sessions` socket (S-003). */
export type SocketState =
  | 'starting'
  | 'working'
  | 'idle'
  | 'waiting_for_input'
  | 'waiting_for_permission'
  | 'ended';

const OUTCOME_WORD: Record<Outcome, PublicState> = {
  completed: 'completed',
  failed: 'failed',
  stopped: 'stopped',
  limited: 'blocked',
};

/** Projects the internal state to session JSON. Rest keeps its outcome through idle, resume and exit. */
export function publicState(state: SessionState): PublicState {
  switch (state.kind) {
    case 'unknown':
      return 'unknown';
    case 'idle':
      return 'idle';
    case 'starting':
      return state.outcome ? OUTCOME_WORD[state.outcome] : 'idle';
    case 'working':
      return state.doing === 'tool' ? 'tool_call' : state.doing;
    case 'waiting':
      return state.for === 'approval' ? 'waiting_for_approval' : 'blocked';
    case 'rested':
      return OUTCOME_WORD[state.outcome];
    case 'ended':
      return state.outcome ? OUTCOME_WORD[state.outcome] : 'unknown';
  }
}

/** Projects the internal state to the `sessions` socket, which knows no outcomes. */
export function socketState(state: SessionState): SocketState {
  switch (state.kind) {
    case 'starting':
      return 'starting';
    case 'working':
      return 'working';
    case 'waiting':
      return state.for === 'approval' ? 'waiting_for_permission' : 'waiting_for_input';
    case 'ended':
      return 'ended';
    case 'rested':
    case 'idle':
    case 'unknown':
      return 'idle';
  }
}

/** True while a desktop would call the session active (`shadow-server.md` §8). */
export function looksActive(state: PublicState): boolean {
  return ['running', 'streaming', 'tool_call', 'waiting_for_approval', 'blocked'].includes(state);
}

/** Someone waits for the user, and that someone is there to receive the answer. */
export function needsUser(fused: Fused): boolean {
  if (fused.state.kind !== 'waiting') return false;
  return fused.life === 'alive' || fused.evidence?.confidence === 'exact';
}
