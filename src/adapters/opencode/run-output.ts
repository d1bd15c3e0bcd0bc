import type { Outcome } from '../../runtime/session/state.ts';
import { outcomeOf, readTurnError, type TurnError } from './outcome.ts';
import { objectOf, textOf } from './values.ts';

/** How a turn of `opencode run --format json` went. */
export interface RunOutput {
  readonly sessionId?: string;
  readonly outcome: Outcome;
  /** One line, masked. */
  readonly error?: string;
}

/**
 * The outcome of a finished `opencode run --format json` from its lines and its exit code (1.18.33). The code alone
 * lies: it is 0 also when a permission was refused by the program itself, so that the turn was cut short (M6).
 */
export function readRunOutput(lines: readonly unknown[], exitCode: number): RunOutput {
  const rows = lines.map(objectOf).filter((row) => row !== undefined);
  const sessionId = rows.map((row) => textOf(row['sessionID'])).find((id) => id !== undefined);
  const about = sessionId ? { sessionId } : {};
  const error = rows
    .map((row) => (row['type'] === 'error' ? readTurnError(row['error']) : undefined))
    .find(Boolean);
  const finish = rows
    .filter((row) => row['type'] === 'step_finish')
    .map((row) => textOf(objectOf(row['part'])?.['reason']))
    .at(-1);
  if (finish === undefined && !error)
    return { ...about, ...(exitCode === 0 ? { outcome: 'stopped' } : failed(undefined)) };
  const outcome = outcomeOf({ hasParts: true, ...(finish ? { finish } : {}), ...(error ? { error } : {}) });
  return outcome === 'failed' || exitCode !== 0 ? { ...about, ...failed(error) } : { ...about, outcome };
}

function failed(error: TurnError | undefined): Pick<RunOutput, 'outcome' | 'error'> {
  const text = error && (error.text ?? error.name);
  return { outcome: 'failed', ...(text ? { error: text } : {}) };
}
