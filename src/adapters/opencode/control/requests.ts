import type { ApprovalAnswer, Decision, PendingRequest, Question } from '../../../runtime/control.ts';
import type { SessionRef } from '../../../runtime/session/session.ts';
import { timeOfId } from '../ids.ts';
import { listOf, objectOf, textOf } from '../values.ts';

/** A permission or a question as the server told it (1.18.33). */
export interface AskedRequest {
  readonly id: string;
  /** The session that asks; a sub-agent's is its own. */
  readonly sessionId: string;
  readonly kind: 'permission' | 'question';
  /** Of the instance that asks: a reply without it is 404. */
  readonly directory?: string;
  /** The assistant message whose tool call asks. */
  readonly messageId?: string;
  readonly raw: Fields;
}

type Fields = Readonly<Record<string, unknown>>;

/** Reads an entry of `GET /permission` or `GET /question`, or the properties of their events. */
export function readAsked(
  kind: AskedRequest['kind'],
  value: unknown,
  directory: string | undefined,
): AskedRequest | undefined {
  const raw = objectOf(value);
  const id = textOf(raw?.['id']);
  const sessionId = textOf(raw?.['sessionID']);
  if (!raw || id === undefined || sessionId === undefined) return undefined;
  const messageId = textOf(objectOf(raw['tool'])?.['messageID']);
  return {
    id,
    sessionId,
    kind,
    raw,
    ...(directory ? { directory } : {}),
    ...(messageId ? { messageId } : {}),
  };
}

/** The tool that asks whether to leave plan mode; its name as 1.18 has it. */
const PLAN = 'plan_exit';

/**
 * A request as the user sees it: the exact command or change, and what may be answered.
 *
 * @param session whose row it is shown under: the session itself, or the one that its sub-agent works for
 * @param now epoch milliseconds
 */
export function pendingOf(asked: AskedRequest, session: SessionRef, now: number): PendingRequest {
  const made = timeOfId(asked.id, now);
  const common = {
    requestId: asked.id,
    session,
    ...(made === undefined || made > now ? {} : { askedAt: made }),
  };
  const byChild = asked.sessionId === session.sessionId ? '' : ' (a sub-agent)';
  if (asked.kind === 'question') {
    const questions = questionsOf(asked);
    const detail = questions.map(({ text }) => text).join('\n');
    const subject = `question${byChild}`;
    return { ...common, kind: 'question', subject, detail, questions, allows: ['answer', 'deny'] };
  }
  const permission = textOf(asked.raw['permission']) ?? 'permission';
  const always = textsOf(asked.raw['always']);
  const allows: readonly Decision[] =
    always.length > 0 ? ['allow-once', 'allow-session', 'deny'] : ['allow-once', 'deny'];
  return {
    ...common,
    kind: permission === PLAN ? 'plan' : 'permission',
    subject: `${permission}${byChild}`,
    detail: detailOf(asked.raw),
    allows,
    ...(always.length > 0 ? { sessionScope: scopeOf(permission, always) } : {}),
  };
}

/** OpenCode keeps such a grant in memory, for the whole folder and not for one session. */
function scopeOf(permission: string, always: readonly string[]): string {
  return `${permission}: ${always.join(', ')} (in every session of this folder, until that OpenCode ends)`;
}

/** What would be done, whole and exact (A2): the command, the change, or all that the request names. */
function detailOf(raw: Fields): string {
  const metadata = objectOf(raw['metadata']) ?? {};
  const command = textOf(metadata['command']);
  if (command !== undefined) return command;
  const path = textOf(metadata['filepath']);
  const diff = textOf(metadata['diff']);
  if (diff !== undefined) return path === undefined ? diff : `${path}\n${diff}`;
  const patterns = textsOf(raw['patterns']);
  const rest = Object.keys(metadata).length > 0 ? [JSON.stringify(metadata, null, 2)] : [];
  return [...patterns, ...rest].join('\n');
}

function questionsOf({ raw }: AskedRequest): readonly Question[] {
  return listOf(raw['questions']).flatMap((value, index): Question[] => {
    const one = objectOf(value);
    const text = textOf(one?.['question']);
    if (!one || text === undefined) return [];
    const options = listOf(one['options']).flatMap((option) => {
      const label = textOf(objectOf(option)?.['label']);
      const description = textOf(objectOf(option)?.['description']);
      return label ? [{ label, ...(description ? { description } : {}) }] : [];
    });
    return [{ id: String(index + 1), text, options, multiple: one['multiple'] === true }];
  });
}

function textsOf(value: unknown): readonly string[] {
  return listOf(value).flatMap((one) => textOf(one) ?? []);
}

/** A reply that the server takes. */
export interface Reply {
  readonly path: string;
  readonly body?: unknown;
}

/**
 * What is told to the model with a denial that has no word of its own. Without any word OpenCode ends the turn
 * instead of going on (tricky case 6).
 */
export const DENIED = 'The user does not want this. Do not try it in another way; ask how to go on.';

/** The reply that says what the user decided. */
export function replyOf(
  asked: AskedRequest,
  { decision, note, answers }: Pick<ApprovalAnswer, 'decision' | 'note' | 'answers'>,
): Reply {
  const path = `/${asked.kind}/${encodeURIComponent(asked.id)}`;
  if (asked.kind === 'question') {
    if (decision !== 'answer') return { path: `${path}/reject` };
    const given = questionsOf(asked).map(({ id }) => answers?.[id] ?? []);
    return { path: `${path}/reply`, body: { answers: given } };
  }
  switch (decision) {
    case 'allow-once':
      return { path: `${path}/reply`, body: { reply: 'once' } };
    case 'allow-session':
      return { path: `${path}/reply`, body: { reply: 'always' } };
    case 'deny':
    case 'answer':
      return { path: `${path}/reply`, body: { reply: 'reject', message: note ?? DENIED } };
  }
}

/** A question is dismissed without a word: the API has no place for one. */
export function noteWords({ kind }: AskedRequest, { note }: Pick<ApprovalAnswer, 'note'>): string {
  return kind === 'question' && note !== undefined ? '; the word beside it could not be given' : '';
}
