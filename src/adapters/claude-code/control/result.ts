import type { TurnEnd } from '../../../runtime/control.ts';
import { listOf, objectOf, textOf } from '../values.ts';

/** The `result` line: how a turn ended (2.1.197 and 2.1.332). */
export interface TurnResultLine {
  readonly outcome: TurnEnd['outcome'];
  /** The final text of the model, or the program's own. */
  readonly text?: string;
  readonly error?: string;
  /** Names of the tools that were refused in this turn. */
  readonly denied: readonly string[];
  /** The messages of ours that this turn answered (2.1.332). */
  readonly uuids: readonly string[];
  /** True for a turn that work in the background has started, not a message (2.1.332). */
  readonly ownDoing: boolean;
  /** The session is not where it was looked for. */
  readonly unknownSession: boolean;
}

type Fields = Readonly<Record<string, unknown>>;

/** Words that are the program's own diagnosis and say nothing to a person. */
const DIAGNOSTIC = /^\[ede_diagnostic\]/;

/**
 * Reads a result line. An API failure has subtype `success` with `is_error`; 2.1.197 even says that it completed, so
 * `is_error` decides (M6: an exit code of 0, or the word success, is not success).
 */
export function readResult(value: Fields): TurnResultLine {
  const errors = listOf(value['errors']).flatMap((one) => textOf(one) ?? []);
  const said = textOf(value['result']);
  const failed = value['is_error'] === true || value['subtype'] !== 'success';
  const words = errors.filter((one) => !DIAGNOSTIC.test(one));
  const outcome = failed ? failureOf(value) : 'completed';
  const error = outcome === 'failed' || outcome === 'limited' ? (said ?? words.join('; ')) : undefined;
  const text = failed ? undefined : said;
  return {
    outcome,
    ...(text ? { text } : {}),
    ...(error ? { error } : {}),
    denied: listOf(value['permission_denials']).flatMap((one) => textOf(objectOf(one)?.['tool_name']) ?? []),
    uuids: uuidsOf(value),
    ownDoing: textOf(objectOf(value['origin'])?.['kind']) === 'task-notification',
    unknownSession: errors.some((one) => one.startsWith('No conversation found')),
  };
}

function failureOf(value: Fields): TurnEnd['outcome'] {
  const reason = textOf(value['terminal_reason']) ?? '';
  if (reason.startsWith('aborted_')) return 'stopped';
  const subtype = textOf(value['subtype']) ?? '';
  if (subtype.startsWith('error_max_') || value['api_error'] === 'max_output_tokens') return 'limited';
  return 'failed';
}

function uuidsOf(value: Fields): readonly string[] {
  const one = textOf(value['user_message_uuid']);
  const many = listOf(value['user_message_uuids']).flatMap((uuid) => textOf(uuid) ?? []);
  return [...new Set([...(one ? [one] : []), ...many])];
}
