import type { TurnEnd } from '../../../runtime/control.ts';
import type { TurnError } from '../outcome.ts';

/** The end of a turn in the words of `TurnEnd`. */
export function endWith(
  outcome: TurnEnd['outcome'],
  error: TurnError | undefined,
  text: string,
  finish?: string,
): TurnEnd {
  const said = text === '' ? {} : { text };
  switch (outcome) {
    case 'completed':
      return { outcome, ...said };
    case 'limited':
      return { outcome, ...said, error: 'the answer was cut at the model’s length limit' };
    case 'stopped':
      return { outcome, ...said, error: stoppedWords(finish) };
    case 'failed':
      return { outcome, ...said, error: error?.text ?? error?.name ?? 'the turn failed' };
  }
}

/** A refused call leaves the finish `tool-calls` (tricky case 6); an abort leaves an error, or nothing (7). */
function stoppedWords(finish: string | undefined): string {
  return finish === 'tool-calls' ? 'the turn ended at a refused tool call' : 'the turn was stopped';
}
