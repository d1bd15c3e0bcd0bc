import type { TurnEnd } from '../../../runtime/control.ts';
import { outcomeOf, readTurnError } from '../outcome.ts';
import { type ServerApi, splitMessage } from '../server-api.ts';
import { listOf, numberOf, objectOf, textOf } from '../values.ts';
import { endWith } from './turn-end.ts';

/** Messages that are asked for: a prompt and its answer, and some that were queued behind it. */
const TAIL = 4;

/**
 * How the turn of a prompt ended, from the session's newest messages; undefined while its last answer is open, or
 * where nothing answers it. For when the events were missed.
 */
export async function readEnd(
  api: ServerApi,
  sessionId: string,
  promptId: string | undefined,
): Promise<TurnEnd | undefined> {
  if (promptId === undefined) return undefined;
  const answer = await api.messages(sessionId, TAIL);
  if (answer.kind !== 'ok') return undefined;
  const newest = answer.value
    .flatMap((entry) => splitMessage(entry) ?? [])
    .findLast(({ info }) => info['role'] === 'assistant');
  const id = textOf(newest?.info['id']);
  if (!newest || id === undefined || id <= promptId) return undefined;
  const error = readTurnError(newest.info['error']);
  const completed = numberOf(objectOf(newest.info['time'])?.['completed']);
  if (completed === undefined && !error) return undefined;
  const finish = textOf(newest.info['finish']);
  const outcome = outcomeOf({
    hasParts: newest.parts.length > 0,
    ...(finish ? { finish } : {}),
    ...(error ? { error } : {}),
  });
  return endWith(outcome, error, textsOf(newest.parts).join('\n'), finish);
}

/** The id of the message with exactly this text that is newer than `after`; undefined: it isn't there. */
export async function readPrompt(
  api: ServerApi,
  sessionId: string,
  text: string,
  after: string | undefined,
): Promise<string | undefined> {
  const answer = await api.messages(sessionId, TAIL);
  if (answer.kind !== 'ok') return undefined;
  const found = answer.value
    .flatMap((entry) => splitMessage(entry) ?? [])
    .filter(({ info }) => info['role'] === 'user')
    .find(({ info, parts }) => {
      const id = textOf(info['id']);
      return id !== undefined && (after === undefined || id > after) && textsOf(parts).includes(text);
    });
  return textOf(found?.info['id']);
}

function textsOf(parts: readonly unknown[]): readonly string[] {
  return listOf(parts).flatMap((part) => {
    const raw = objectOf(part);
    return raw?.['type'] === 'text' ? (textOf(raw['text']) ?? []) : [];
  });
}
