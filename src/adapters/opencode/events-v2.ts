import type { BusEvent } from './bus.ts';
import { isBusy, type LiveSession } from './live.ts';
import { openTurn, rest } from './live-turn.ts';
import { readTurnError } from './outcome.ts';
import { textOf } from './values.ts';

/**
 * Sessions of the `/api/session` routes speak a language of their own and never show in `/session/status`.
 * Seen: prompt.admitted, prompted, step.started, text.started, text.delta, text.ended, step.failed; the rest is
 * read by its form (`*.delta`, `*.ended`, `step.*`).
 */
export function applyV2(
  session: LiveSession,
  type: string,
  properties: BusEvent['properties'],
  at: number,
): LiveSession {
  if (type === 'step.failed') {
    const error = readTurnError(properties['error']) ?? { name: 'unknown' };
    return rest({ ...session, answer: { id: '', hasParts: true, completedAt: at, error } }, at);
  }
  if (type === 'step.ended') return endStep(session, textOf(properties['finish']), at);
  const open = isBusy(session) ? session : openTurn(session, at);
  if (type.endsWith('.delta')) return { ...open, streaming: true, lastAt: at };
  if (type.endsWith('.ended')) return { ...open, streaming: false, lastAt: at };
  const begins = type === 'prompt.admitted' || type === 'prompted' || type.endsWith('.started');
  return begins ? { ...open, lastAt: at } : session;
}

function endStep(session: LiveSession, finish: string | undefined, at: number): LiveSession {
  if (finish === undefined || finish === 'tool-calls') return { ...session, streaming: false, lastAt: at };
  return rest({ ...session, answer: { id: '', hasParts: true, completedAt: at, finish } }, at);
}
