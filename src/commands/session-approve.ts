import type { ControlContext } from '../adapters/adapter.ts';
import { whileAnswering } from '../runtime/control/push-lock.ts';
import type { ApprovalAnswer, ApprovalResult, Decision, PendingRequest } from '../runtime/control.ts';
import { ConnectorError } from '../runtime/errors.ts';
import { needsUser } from '../runtime/session/project.ts';
import { type SessionRef, sessionKey } from '../runtime/session/session.ts';
import { oneLine } from '../runtime/session/text.ts';
import { actingAdapters, controlContext, controlOf, refusalError, sweepLines } from './acting.ts';
import { readAnswers } from './answers.ts';
import { collect } from './collect.ts';
import { type Answer, defineCommand } from './command.ts';
import { readFilter } from './filter.ts';
import { readWords } from './message.ts';
import { refusalData, requestData } from './output/control-data.ts';
import { requestText } from './output/control-text.ts';
import type { World } from './world.ts';

export const sessionApprove = defineCommand({
  name: 'session-approve',
  summary: 'list what waits for your answer, and answer it',
  details:
    'Without an id, lists the permissions and questions that can be answered here, with exactly what would be allowed. With an id, answers that one request and no other: an id that is unknown, answered or withdrawn is refused. Applied means that the runtime has the answer.',
  args: {
    request: { type: 'positional', required: false, description: 'the request’s id, or its beginning' },
    runtime: { type: 'string', description: 'Only this runtime, by id', valueHint: 'id' },
    session: { type: 'string', description: 'Only this session, by id', valueHint: 'id' },
    allow: { type: 'boolean', description: 'Allow it this once' },
    'allow-session': { type: 'boolean', description: 'Allow it for the rest of the session' },
    deny: { type: 'boolean', description: 'Deny it; the turn goes on' },
    note: { type: 'string', description: 'With --deny: a word to the model', valueHint: 'text' },
    answer: {
      type: 'string',
      description: 'The answer to a question: a label, or own words',
      valueHint: 'text',
    },
    answers: {
      type: 'string',
      description: 'Answers to several questions: {"1":["A"],"2":["B","C"]}',
      valueHint: 'json',
    },
    'opencode-url': { type: 'string', description: 'An OpenCode server to ask', valueHint: 'url' },
  },
  examples: [
    { command: 'session-approve', says: 'what waits for you' },
    { command: 'session-approve d6a06e39 --allow', says: 'yes, this once' },
    { command: 'session-approve d6a06e39 --deny --note "Use the test database"', says: 'no, and why' },
    { command: 'session-approve c3fc224a --answer "Option B"', says: 'the answer to a question' },
  ],
  async run(args, world): Promise<Answer> {
    const warnings = await sweepLines(controlContext(world, args));
    const decision = readDecision(args);
    const waiting = await waitingRequests(world, args);
    if (args.request === undefined) {
      if (decision) {
        throw new ConnectorError(
          'usage',
          'an answer needs its request’s id',
          'See: shadowob-connector session-approve',
        );
      }
      return listing(world, waiting, args, warnings);
    }
    const request = chosenRequest(waiting, args.request);
    if (!decision) {
      return {
        kind: 'document',
        data: { requests: [requestData(request)] },
        text: (style) => requestText(style, request, world.now()),
        warnings,
      };
    }
    const answer = answerTo(request, decision, args);
    return answering(world, request, answer, { context: controlContext(world, args), warnings });
  },
});

interface ApproveArgs {
  readonly runtime?: string | undefined;
  readonly session?: string | undefined;
  readonly allow?: boolean | undefined;
  readonly 'allow-session'?: boolean | undefined;
  readonly deny?: boolean | undefined;
  readonly note?: string | undefined;
  readonly answer?: string | undefined;
  readonly answers?: string | undefined;
  readonly 'opencode-url'?: string | undefined;
}

function readDecision(args: ApproveArgs): Decision | undefined {
  const answers = args.answer !== undefined || args.answers !== undefined;
  const asked: readonly (Decision | false)[] = [
    args.allow === true && 'allow-once',
    args['allow-session'] === true && 'allow-session',
    args.deny === true && 'deny',
    answers && 'answer',
  ];
  const given = asked.filter((one) => one !== false);
  if (given.length > 1) {
    throw new ConnectorError('usage', `${given.join(' and ')} can’t both be meant`, 'Give one answer.');
  }
  if (args.note !== undefined && given[0] !== 'deny') {
    throw new ConnectorError('usage', '--note goes with --deny', 'A word to the model: session-send');
  }
  return given[0];
}

/** Asked of the runtimes each time: nothing that waits is remembered here (A6). */
export async function waitingRequests(world: World, args: ApproveArgs): Promise<readonly PendingRequest[]> {
  const context = controlContext(world, args);
  const able = await actingAdapters(world, args.runtime);
  const lists = await Promise.all(able.map(async ({ control }) => (await control.pending?.(context)) ?? []));
  return lists
    .flat()
    .filter(({ session }) => args.session === undefined || session.sessionId.startsWith(args.session));
}

/** Shorter beginnings could come to mean another request. */
const SHORTEST = 8;

/**
 * The request that an id, or its beginning, means.
 *
 * @throws ConnectorError `notFound` or `ambiguous`
 */
export function chosenRequest(waiting: readonly PendingRequest[], text: string): PendingRequest {
  const exact = waiting.filter(({ requestId }) => requestId === text);
  const found =
    exact.length > 0 || text.length < SHORTEST
      ? exact
      : waiting.filter(({ requestId }) => requestId.startsWith(text));
  const [only, second] = found;
  if (only && !second) return only;
  if (only) {
    throw new ConnectorError(
      'ambiguous',
      `"${oneLine(text)}" could be several requests`,
      'Give the whole id.',
    );
  }
  throw new ConnectorError(
    'notFound',
    `no request "${oneLine(text)}" waits for an answer: it was answered, withdrawn, or never there`,
    'See what waits: shadowob-connector session-approve',
  );
}

function answerTo(request: PendingRequest, decision: Decision, args: ApproveArgs): ApprovalAnswer {
  const answers = decision === 'answer' ? readAnswers(request, args.answer, args.answers) : undefined;
  return {
    session: request.session,
    requestId: request.requestId,
    decision,
    ...(args.note === undefined ? {} : { note: readWords('--note', args.note) }),
    ...(answers ? { answers } : {}),
  };
}

/** Gives the runtime the answer; one at a time for each session, so that of two for one request the later is refused. */
export async function applyAnswer(
  world: World,
  answer: ApprovalAnswer,
  context: ControlContext,
): Promise<ApprovalResult> {
  const control = await controlOf(world, answer.session.runtimeId);
  const result = await whileAnswering(context, answer.session, async () =>
    control.approve?.(context, answer),
  );
  const next = 'Answer it there.';
  const reason = 'this can’t be answered from outside';
  return result ?? { kind: 'refused', refusal: { reason, kind: 'unsupported', next } };
}

/** What came of an answer, as JSON. */
export function answerDocument(
  { session, requestId }: PendingRequest,
  { decision }: ApprovalAnswer,
  result: ApprovalResult,
): Record<string, unknown> {
  const came = result.kind === 'refused' ? refusalData(result.refusal) : { detail: result.detail };
  return { ...session, requestId, decision, result: result.kind, ...came };
}

async function answering(
  world: World,
  request: PendingRequest,
  answer: ApprovalAnswer,
  { context, warnings }: { readonly context: ControlContext; readonly warnings: readonly string[] },
): Promise<Answer> {
  const result = await applyAnswer(world, answer, context);
  const failure = failureOf(result);
  return {
    kind: 'document',
    data: answerDocument(request, answer, result),
    text: () => `${answer.decision}: applied`,
    warnings,
    ...(failure ? { failure } : {}),
  };
}

/** A1: "sent" is not "applied", and a script must be able to tell. */
function failureOf(result: ApprovalResult): ConnectorError | undefined {
  if (result.kind === 'applied') return undefined;
  if (result.kind === 'refused') return refusalError(result.refusal);
  return new ConnectorError(
    'timedOut',
    `sent, but not confirmed: ${result.detail}`,
    'See whether it still waits: shadowob-connector session-approve',
  );
}

async function listing(
  world: World,
  waiting: readonly PendingRequest[],
  args: ApproveArgs,
  warnings: readonly string[],
): Promise<Answer> {
  const elsewhere = await waitingElsewhere(world, waiting, args);
  return {
    kind: 'document',
    data: { requests: waiting.map(requestData), elsewhere },
    text(style) {
      const blocks = waiting.map((request) => requestText(style, request, world.now()));
      const count = elsewhere.length;
      const rest = `${count} session${count === 1 ? ' waits' : 's wait'} for you where ${count === 1 ? 'it runs' : 'they run'}: shadowob-connector session-list --state waiting`;
      const all = [...(blocks.length > 0 ? blocks : ['Nothing waits for an answer here.'])];
      return [...all, ...(count > 0 ? [rest] : [])].join('\n\n');
    },
    warnings,
  };
}

/** Sessions that wait for their user and that only their own terminal can answer. */
async function waitingElsewhere(
  world: World,
  waiting: readonly PendingRequest[],
  args: ApproveArgs,
): Promise<readonly SessionRef[]> {
  const filter = readFilter(
    { runtime: args.runtime, 'opencode-url': args['opencode-url'] },
    world.cwd,
    world.now(),
  );
  const here = new Set(waiting.map(({ session }) => sessionKey(session)));
  const { sessions } = await collect(world, filter);
  return sessions
    .filter((session) => needsUser(session.shown) && !here.has(sessionKey(session.ref)))
    .map((session) => session.ref);
}
