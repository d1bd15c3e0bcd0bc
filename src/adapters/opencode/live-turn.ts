import type { TurnFacts } from '../../runtime/session/evidence.ts';
import { isBusy, type LiveSession } from './live.ts';
import { outcomeOf, outcomeOfError } from './outcome.ts';

/** A turn begins with its prompt; one that came before the newest turn is that turn's own (a shell run has none yet). */
export function openTurn(session: LiveSession, at: number): LiveSession {
  const asked = session.prompt?.at;
  const last = session.turn.openedAt;
  const openedAt = asked !== undefined && (last === undefined || asked > last) ? asked : at;
  const { answer: _answer, failure: _failure, ...kept } = session;
  return { ...kept, phase: 'busy', turn: { openedAt }, waits: new Map(), tools: new Map(), streaming: false };
}

/**
 * The process rests. Of a session that it has not run that says nothing. Requests outlive their turn in
 * `GET /permission`; here they go with it.
 */
export function rest(session: LiveSession, at: number): LiveSession {
  if (!isBusy(session)) return session;
  const resting: LiveSession = {
    ...session,
    phase: 'idle',
    streaming: false,
    waits: new Map(),
    tools: new Map(),
    lastAt: at,
  };
  return { ...resting, turn: endOfTurn(resting, at) };
}

/** How the turn of a session that rests ended, as far as its newest answer and the errors since its beginning say. */
export function endOfTurn(session: LiveSession, at: number): TurnFacts {
  const { answer, failure, turn } = session;
  const error = answer?.error ?? failure;
  const closed = answer?.completedAt !== undefined || answer?.error !== undefined;
  const end = closed && answer ? outcomeOf(answer) : failure ? outcomeOfError(failure) : undefined;
  // Found running when listening began, and nothing was heard of its beginning: others know.
  if (end === undefined) return turn.openedAt === undefined ? {} : { openedAt: turn.openedAt };
  const openedAt = turn.openedAt ?? answer?.completedAt ?? at;
  const endedAt = Math.max(openedAt, turn.endedAt ?? answer?.completedAt ?? at);
  return {
    openedAt,
    endedAt,
    end,
    ...(error && end === 'failed' ? { error: error.text ?? error.name } : {}),
  };
}
