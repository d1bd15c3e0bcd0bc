import type { ApprovalAnswer, Decision, PendingRequest, Question } from '../../../runtime/control.ts';
import type { SessionRef } from '../../../runtime/session/session.ts';
import { listOf, objectOf, textOf } from '../values.ts';
import type { ToolQuestion } from './stream.ts';

/** The tool that asks the user something; it is never a permission. */
const ASK = 'AskUserQuestion';
/** The tool whose permission is the approval of a plan. */
const PLAN = 'ExitPlanMode';

/** A request as the user sees it: the exact command, path or plan, and what may be answered. */
export function pendingOf(question: ToolQuestion, session: SessionRef, askedAt: number): PendingRequest {
  const common = { requestId: question.requestId, session, askedAt, subject: question.tool };
  if (question.tool === ASK) {
    const questions = questionsOf(question);
    const detail = questions.map((one) => one.text).join('\n');
    return { ...common, kind: 'question', detail, questions, allows: ['answer', 'deny'] };
  }
  const scope = scopeOf(question);
  const allows: readonly Decision[] = ['allow-once', ...(scope ? (['allow-session'] as const) : []), 'deny'];
  return {
    ...common,
    kind: question.tool === PLAN ? 'plan' : 'permission',
    detail: detailOf(question),
    allows,
    ...(scope ? { sessionScope: scope } : {}),
  };
}

function questionsOf({ input }: ToolQuestion): readonly Question[] {
  return listOf(input['questions']).flatMap((value, index): Question[] => {
    const one = objectOf(value);
    const text = textOf(one?.['question']);
    if (!one || !text) return [];
    const options = listOf(one['options']).flatMap((option) => {
      const label = textOf(objectOf(option)?.['label']);
      const description = textOf(objectOf(option)?.['description']);
      return label ? [{ label, ...(description ? { description } : {}) }] : [];
    });
    return [{ id: String(index + 1), text, options, multiple: one['multiSelect'] === true }];
  });
}

/** What would be done, whole and exact (A2): the command, the plan, or the tool's input as it is. */
function detailOf({ tool, input }: ToolQuestion): string {
  const command = textOf(input['command']);
  if (command !== undefined) return command;
  const plan = tool === PLAN ? textOf(input['plan']) : undefined;
  return plan ?? JSON.stringify(input, null, 2);
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * The suggestions that make up "for this session". Of several kinds the rules are the narrowest, so the wider ones (a
 * mode, a folder) stand in only where there is no rule.
 */
function sessionSuggestions({ suggestions }: ToolQuestion): readonly Fields[] {
  const rules = suggestions.filter((one) => one['type'] === 'addRules');
  const chosen = rules.length > 0 ? rules : suggestions;
  return chosen.map((one) => ({ ...one, destination: 'session' }));
}

function scopeOf(question: ToolQuestion): string | undefined {
  const words = sessionSuggestions(question).flatMap((one): string[] => {
    if (one['type'] === 'setMode') return [`mode ${textOf(one['mode']) ?? ''}`];
    if (one['type'] === 'addDirectories') {
      return listOf(one['directories']).flatMap((folder) => textOf(folder) ?? []);
    }
    return listOf(one['rules']).flatMap((rule) => {
      const name = textOf(objectOf(rule)?.['toolName']);
      const content = textOf(objectOf(rule)?.['ruleContent']);
      return name ? [content ? `${name}(${content})` : name] : [];
    });
  });
  return words.length > 0 ? words.join(', ') : undefined;
}

/** What is told to the model with a denial that has no word of its own. */
const DENIED = 'The user does not want this. Do not try it in another way; ask how to go on.';

/** The line that answers a question, in the program's control protocol. */
export function answerLine(question: ToolQuestion, answer: ApprovalAnswer): unknown {
  return controlResponse(question.requestId, decisionOf(question, answer));
}

function decisionOf(question: ToolQuestion, answer: ApprovalAnswer): Fields {
  switch (answer.decision) {
    case 'deny':
      return { behavior: 'deny', message: answer.note ?? DENIED };
    case 'allow-once':
      return { behavior: 'allow', updatedInput: question.input };
    case 'allow-session':
      return {
        behavior: 'allow',
        updatedInput: question.input,
        updatedPermissions: sessionSuggestions(question),
      };
    case 'answer':
      return {
        behavior: 'allow',
        updatedInput: { ...question.input, answers: answersOf(question, answer.answers ?? {}) },
      };
  }
}

/** By the question's text, as the program wants it; several choices are one text with commas between them. */
function answersOf(
  question: ToolQuestion,
  answers: Readonly<Record<string, readonly string[]>>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    questionsOf(question).map((one) => [one.text, (answers[one.id] ?? []).join(', ')]),
  );
}

/** A good reply to a request of the program's. */
export function controlResponse(requestId: string, response: Fields): unknown {
  return { type: 'control_response', response: { subtype: 'success', request_id: requestId, response } };
}

/** A bad one: for requests that we know nothing about. */
export function controlError(requestId: string, error: string): unknown {
  return { type: 'control_response', response: { subtype: 'error', request_id: requestId, error } };
}
