/**
 * The one internal session state (design: one state, two vocabularies). Public words are projections
 * made in `project.ts`; nothing else may invent a state word.
 */

/** How a turn ended. `limited` is an output limit that needs the user; it is shown as `blocked`. */
export type Outcome = 'completed' | 'failed' | 'stopped' | 'limited';

/** What a working session was last seen doing. Only `tool` claims that a tool call is open. */
export type Doing = 'running' | 'streaming' | 'tool';

/**
 * What a wait is about. The tool's own name beats what a feed calls the wait: a question is an
 * input even if the program says "permission prompt", a plan is an approval.
 */
export type WaitSubject = 'tool' | 'plan' | 'question' | 'form' | 'output-limit' | 'setup' | 'unspecified';

/** The tool call that is open, reduced to what a label may show. Values are raw: redact before showing. */
export interface ToolCall {
  readonly name: string;
  readonly command?: string;
  readonly path?: string;
  readonly pattern?: string;
}

export type SessionState =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'starting'; readonly outcome?: Outcome }
  | { readonly kind: 'idle' }
  | { readonly kind: 'working'; readonly doing: Doing; readonly tool?: ToolCall; readonly retrying?: boolean }
  | {
      readonly kind: 'waiting';
      readonly for: 'approval' | 'input';
      readonly on: WaitSubject;
      readonly tool?: ToolCall;
    }
  | { readonly kind: 'rested'; readonly outcome: Outcome }
  | { readonly kind: 'ended'; readonly outcome?: Outcome };

export const UNKNOWN: SessionState = { kind: 'unknown' };
export const IDLE: SessionState = { kind: 'idle' };
export const RUNNING: SessionState = { kind: 'working', doing: 'running' };
export const STREAMING: SessionState = { kind: 'working', doing: 'streaming' };

/** A wait for a permission, or for an answer, with its subject deciding which of the two it is. */
export function waitingOn(on: WaitSubject, tool?: ToolCall): SessionState {
  const needsApproval = on === 'tool' || on === 'plan';
  return { kind: 'waiting', for: needsApproval ? 'approval' : 'input', on, ...(tool ? { tool } : {}) };
}

/** A turn's end as a state: an output limit is a wait for the user while its owner lives. */
export function restedWith(outcome: Outcome): SessionState {
  return outcome === 'limited' ? waitingOn('output-limit') : { kind: 'rested', outcome };
}

/** A turn is open while somebody works on it or it waits for a person. */
export function hasOpenTurn(state: SessionState): boolean {
  if (state.kind === 'working') return true;
  return state.kind === 'waiting' && state.on !== 'output-limit' && state.on !== 'setup';
}

/** The state without what a label of its open call could show: what may be kept on disk. */
export function withoutLabel(state: SessionState): SessionState {
  return 'tool' in state && state.tool ? { ...state, tool: { name: state.tool.name } } : state;
}

/** Urgency order used where two sources speak at once and to fold sub-agents. */
export function urgency(state: SessionState): number {
  switch (state.kind) {
    case 'waiting':
      // A turn that ended at an output limit is at rest, however it is shown.
      return state.on === 'output-limit' ? 1 : 4;
    case 'working':
      return 3;
    case 'starting':
      return 2;
    case 'rested':
    case 'idle':
      return 1;
    case 'ended':
    case 'unknown':
      return 0;
  }
}

/** Two states that a user could not tell apart. */
export function sameState(a: SessionState, b: SessionState): boolean {
  if (a.kind !== b.kind) return false;
  if (a.kind === 'working' && b.kind === 'working') {
    return a.doing === b.doing && a.tool?.name === b.tool?.name && a.retrying === b.retrying;
  }
  if (a.kind === 'waiting' && b.kind === 'waiting') return a.for === b.for && a.on === b.on;
  if (a.kind === 'rested' && b.kind === 'rested') return a.outcome === b.outcome;
  if (a.kind === 'ended' && b.kind === 'ended') return a.outcome === b.outcome;
  if (a.kind === 'starting' && b.kind === 'starting') return a.outcome === b.outcome;
  return true;
}

/** The outcome that a state carries, if it is a resting one. */
export function outcomeOf(state: SessionState): Outcome | undefined {
  if (state.kind === 'rested') return state.outcome;
  if (state.kind === 'ended' || state.kind === 'starting') return state.outcome;
  return state.kind === 'waiting' && state.on === 'output-limit' ? 'limited' : undefined;
}
