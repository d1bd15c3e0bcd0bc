import { redact } from '../../runtime/session/redact.ts';
import type { Outcome, ToolCall, WaitSubject } from '../../runtime/session/state.ts';
import { clip, oneLine } from '../../runtime/session/text.ts';
import { objectOf, textOf } from './values.ts';

/** What went wrong in a turn, as OpenCode names it. */
export interface TurnError {
  readonly name: string;
  /** One line, masked; absent when there is no message. */
  readonly text?: string;
}

/** What decides how a turn ended: the newest assistant message, reduced. */
export interface Answer {
  readonly finish?: string;
  readonly error?: TurnError;
  readonly hasParts: boolean;
}

const ERROR_LIMIT = 200;

/** Reads `{name, data:{message}}` (v1) and `{type, message}` (v2). */
export function readTurnError(value: unknown): TurnError | undefined {
  const error = objectOf(value);
  const name = textOf(error?.['name']) ?? textOf(error?.['type']);
  if (!error || name === undefined) return undefined;
  const text = errorLine(objectOf(error['data'])?.['message'] ?? error['message']);
  return { name, ...(text ? { text } : {}) };
}

/** An error's message as one masked line of at most 200 graphemes. */
export function errorLine(message: unknown): string | undefined {
  const raw = textOf(message);
  return raw === undefined ? undefined : clip(redact(oneLine(raw.slice(0, 4_096))), ERROR_LIMIT) || undefined;
}

/**
 * How a turn ended whose program rests (OpenCode 1.18.33, seen in its stream and its rows):
 * aborted → stopped; cut at the length limit → limited; refused, which leaves `tool-calls` as the last
 * finish → stopped; aborted while it waited for a retry, which leaves nothing at all → stopped.
 */
export function outcomeOf(answer: Answer): Outcome {
  if (answer.error) return outcomeOfError(answer.error);
  switch (answer.finish) {
    case 'length':
      return 'limited';
    case 'tool-calls':
      return 'stopped';
    case 'error':
    case 'content-filter':
      return 'failed';
    case undefined:
      return answer.hasParts ? 'completed' : 'stopped';
    default:
      return 'completed';
  }
}

/** The same for an error alone. The v2 sessions call every error `unknown`; an interrupt is known by its words. */
export function outcomeOfError(error: TurnError): Outcome {
  if (error.name === 'MessageAbortedError') return 'stopped';
  if (error.name === 'MessageOutputLengthError') return 'limited';
  return error.name === 'unknown' && /\binterrupted\b/i.test(error.text ?? '') ? 'stopped' : 'failed';
}

/** What a pending or running tool call means for its user. */
export function subjectOfTool(name: string): WaitSubject | undefined {
  if (name === 'question') return 'question';
  // Not recorded; the name is that of 1.18's tool that asks whether to leave plan mode (R-06).
  return name === 'plan_exit' ? 'plan' : undefined;
}

/** A tool call from its name and its arguments; values are raw and get masked where they are shown. */
export function toolCall(name: string, input: unknown): ToolCall {
  const args = objectOf(input) ?? {};
  const command = textOf(args['command']);
  const path = textOf(args['filePath']) ?? textOf(args['filepath']) ?? textOf(args['path']);
  const pattern = textOf(args['pattern']) ?? textOf(args['query']) ?? textOf(args['url']);
  return {
    name,
    ...(command ? { command: command.slice(0, 2_048) } : {}),
    ...(path ? { path: path.slice(0, 1_024) } : {}),
    ...(pattern ? { pattern: pattern.slice(0, 256) } : {}),
  };
}
