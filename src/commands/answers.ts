import { z } from 'zod';
import type { PendingRequest, Question } from '../runtime/control.ts';
import { ConnectorError } from '../runtime/errors.ts';
import { readWords } from './message.ts';

const schema = z.record(z.string(), z.union([z.string(), z.array(z.string())]));

/**
 * Answers by question id: `--answer` for a request with one question, `--answers` as JSON for any.
 *
 * @throws ConnectorError `badValue` or `usage`, naming the questions, or what a request without any takes; `badValue` for words that are too long or not whole
 */
export function readAnswers(
  request: PendingRequest,
  single: string | undefined,
  json: string | undefined,
): Readonly<Record<string, readonly string[]>> {
  const questions = request.questions ?? [];
  if (questions.length === 0) {
    throw new ConnectorError(
      'usage',
      `this ${request.kind} takes ${request.allows.join(', ')}, not answer`,
      'Say yes or no: --allow, --deny',
    );
  }
  if (json !== undefined) return readJson(json, questions);
  const [only, second] = questions;
  if (!only || second) {
    throw new ConnectorError(
      'usage',
      `this request has ${questions.length} questions`,
      `Answer them by number: --answers '{"1":["…"],"2":["…"]}'`,
    );
  }
  return { [only.id]: labelsOf(only, readWords('--answer', single ?? '')) };
}

/** A label as it is; several with commas between them where several may be chosen; else the user's own words. */
function labelsOf(question: Question, text: string): readonly string[] {
  const labels = question.options.map(({ label }) => label);
  if (labels.includes(text) || !question.multiple) return [text];
  const parts = text.split(',').map((part) => part.trim());
  return parts.every((part) => labels.includes(part)) ? parts : [text];
}

function readJson(text: string, questions: readonly Question[]): Readonly<Record<string, readonly string[]>> {
  const parsed = schema.safeParse(parse(text));
  const ids = questions.map(({ id }) => id);
  if (!parsed.success) {
    throw new ConnectorError(
      'badValue',
      '--answers is no JSON object of answers',
      `Like this: --answers '{"${ids[0] ?? '1'}":["…"]}'`,
    );
  }
  const strange = Object.keys(parsed.data).find((id) => !ids.includes(id));
  if (strange !== undefined) {
    throw new ConnectorError(
      'badValue',
      `--answers: there is no question "${strange}"`,
      `The questions are ${ids.join(', ')}.`,
    );
  }
  return Object.fromEntries(
    Object.entries(parsed.data).map(([id, value]) => [
      id,
      [value].flat().map((one) => readWords('--answers', one)),
    ]),
  );
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The schema says no, and the message how it should look.
    return undefined;
  }
}
