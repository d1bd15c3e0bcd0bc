import { needsUser, publicState } from '../../runtime/session/project.ts';
import type { Session } from '../../runtime/session/session.ts';
import type { SessionState } from '../../runtime/session/state.ts';
import type { Paint } from './style.ts';

/** The state in words for a person, with its doubt: a `?` stands where nobody but a file says so (design rule 1). */
export function stateWords(session: Session): { readonly text: string; readonly look: Paint } {
  const { shown } = session;
  const doubt = shown.evidence?.confidence === 'inferred' && shown.life === 'unknown' && isOpen(shown.state);
  return { text: `${plain(session)}${doubt ? '?' : ''}`, look: lookOf(session) };
}

function isOpen(state: SessionState): boolean {
  return state.kind === 'working' || (state.kind === 'waiting' && state.on !== 'output-limit');
}

function plain(session: Session): string {
  const { state, backgroundWork, life } = session.shown;
  switch (state.kind) {
    case 'waiting':
      return waitWords(state);
    case 'working':
      if (state.retrying) return 'retrying';
      return state.doing === 'tool' ? `tool: ${state.tool?.name ?? 'running'}` : state.doing;
    case 'starting':
      return 'starting';
    case 'rested':
    case 'ended':
      return `${publicState(state)}${backgroundWork > 0 && life === 'alive' ? ' (background work)' : ''}`;
    case 'idle':
    case 'unknown':
      return state.kind;
  }
}

function waitWords(state: Extract<SessionState, { kind: 'waiting' }>): string {
  switch (state.on) {
    case 'plan':
      return 'needs approval: plan';
    case 'question':
      return 'needs an answer';
    case 'form':
      return 'needs a form filled';
    case 'output-limit':
      return 'stopped at output limit';
    case 'setup':
      return 'needs set-up';
    case 'tool':
      return state.tool ? `needs approval: ${state.tool.name}` : 'needs approval';
    case 'unspecified':
      return state.for === 'approval' ? 'needs approval' : 'needs input';
  }
}

function lookOf(session: Session): Paint {
  const { state } = session.shown;
  if (needsUser(session.shown)) return 'yellow';
  const word = publicState(state);
  if (word === 'failed') return 'red';
  if (state.kind === 'working' || state.kind === 'starting') return 'green';
  return 'dim';
}
