/** Sessions as the registry hands them out, for the tests of telling. */
import type { Fused, Session, SessionFacts } from '../../../src/runtime/session/session.ts';
import type { Outcome, SessionState } from '../../../src/runtime/session/state.ts';

export const T = 1_796_000_000_000;

export interface Shape {
  readonly id?: string;
  readonly at?: number;
  readonly opened?: number;
  readonly ended?: number;
  readonly work?: number;
  readonly life?: Fused['life'];
  readonly confidence?: 'exact' | 'reported' | 'inferred';
  readonly error?: string;
  readonly facts?: SessionFacts;
  readonly runtimeId?: string;
}

/** One session in a state. */
export function session(state: SessionState, shape: Shape = {}): Session {
  const fused: Fused = {
    state,
    life: shape.life ?? 'alive',
    evidence: { source: 'codex.app-server', at: shape.at ?? T, confidence: shape.confidence ?? 'exact' },
    chain: [],
    turnOpenedAt: shape.opened,
    turnEndedAt: shape.ended,
    lastOutcome: undefined,
    error: shape.error,
    backgroundWork: shape.work ?? 0,
  };
  return {
    ref: { runtimeId: shape.runtimeId ?? 'codex', instanceId: 'transcripts', sessionId: shape.id ?? 'a' },
    facts: { workDir: '/home/me/shop', ...shape.facts },
    own: fused,
    shown: fused,
    subAgents: [],
    origin: 'unboundLocal',
    visibility: 'localSummaryOnly',
  };
}

export const rested = (outcome: Outcome): SessionState => ({ kind: 'rested', outcome });
