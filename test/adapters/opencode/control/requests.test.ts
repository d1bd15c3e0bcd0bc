import { describe, expect, test } from 'bun:test';
import { pendingOf, readAsked, replyOf } from '../../../../src/adapters/opencode/control/requests.ts';
import { readModel } from '../../../../src/adapters/opencode/control/server-calls.ts';
import { type Exchange, type Json, lines } from '../recordings.ts';
import { refOf } from '../world.ts';

/** The newest non-empty list of a recording. */
function listed(scenario: string, kind: 'permission' | 'question'): Json {
  const lists = lines<Exchange>(scenario, 'http.jsonl')
    .filter(
      ({ req, res }) => req.method === 'GET' && req.path.startsWith(`/${kind}`) && Array.isArray(res.body),
    )
    .map(({ res }) => res.body as Json[]);
  const found = lists.findLast((list) => list.length > 0)?.at(-1);
  if (!found) throw new Error(`${scenario} lists no ${kind}`);
  return found;
}

const read = (kind: 'permission' | 'question', raw: unknown) => {
  const asked = readAsked(kind, raw, '/work/app');
  if (!asked) throw new Error('not read');
  return asked;
};

const NOW = 1_796_069_300_000;

describe('requests as their user sees them (1.18.33)', () => {
  test('A2: a permission for a command shows the command, its age, and what `always` would allow', () => {
    const asked = read('permission', listed('permission-once', 'permission'));
    expect(pendingOf(asked, refOf(asked.sessionId), NOW)).toEqual({
      requestId: 'per_22e11d535001XeaQuvqfqkvpah',
      session: refOf('ses_dd1ee2bb6ffep2BUPeg33CugPE'),
      askedAt: 1_796_069_250_357,
      kind: 'permission',
      subject: 'bash',
      detail: 'echo tests-pass',
      allows: ['allow-once', 'allow-session', 'deny'],
      sessionScope: 'bash: echo * (in every session of this folder, until that OpenCode ends)',
    });
  });

  test('one for an edit shows the file and the change', () => {
    const asked = read('permission', listed('permission-reject', 'permission'));
    const { detail, subject } = pendingOf(asked, refOf(asked.sessionId), NOW);
    expect(subject).toBe('edit');
    expect(detail.split('\n')[0]).toEndWith('src/sum.js');
    expect(detail).toContain('+');
  });

  test('one of another kind shows all that it names', () => {
    const asked = read('permission', {
      id: 'per_1',
      sessionID: 'ses_a',
      permission: 'external_directory',
      patterns: ['/etc/*'],
      metadata: { parentDir: '/etc' },
      always: [],
    });
    const request = pendingOf(asked, refOf('ses_a'), NOW);
    expect(request.detail).toBe('/etc/*\n{\n  "parentDir": "/etc"\n}');
    expect(request.allows).toEqual(['allow-once', 'deny']);
    expect(request.sessionScope).toBeUndefined();
  });

  test('R-06: leaving plan mode is a plan', () => {
    const asked = read('permission', { id: 'per_1', sessionID: 'ses_a', permission: 'plan_exit' });
    expect(pendingOf(asked, refOf('ses_a'), NOW).kind).toBe('plan');
  });

  test('a question has its options, in their order', () => {
    const asked = read('question', listed('question-reply', 'question'));
    expect(pendingOf(asked, refOf(asked.sessionId), NOW)).toMatchObject({
      kind: 'question',
      detail: 'Which database should I use?',
      allows: ['answer', 'deny'],
      questions: [
        {
          id: '1',
          options: [
            { label: 'Postgres', description: 'Relational' },
            { label: 'SQLite', description: 'Embedded' },
          ],
        },
      ],
    });
  });

  test.each([[undefined], [7], [{}], [{ id: 'per_1' }], [{ sessionID: 'ses_a' }], [[]]])(
    'what is no request is skipped: %p',
    (raw) => {
      expect(readAsked('permission', raw, undefined)).toBeUndefined();
    },
  );
});

describe('replies in OpenCode’s own words', () => {
  const permission = read('permission', { id: 'per_1', sessionID: 'ses_a', permission: 'bash' });
  const question = read('question', {
    id: 'que_1',
    sessionID: 'ses_a',
    questions: [{ question: 'A?' }, { question: 'B?', multiple: true }],
  });

  test.each([
    ['allow-once', { reply: 'once' }],
    ['allow-session', { reply: 'always' }],
  ] as const)('%s', (decision, body) => {
    expect(replyOf(permission, { decision })).toEqual({ path: '/permission/per_1/reply', body });
  });

  test('deny, with the user’s word', () => {
    expect(replyOf(permission, { decision: 'deny', note: 'not here' })).toEqual({
      path: '/permission/per_1/reply',
      body: { reply: 'reject', message: 'not here' },
    });
  });

  test('answers are lists in the order asked; one that is missing is empty', () => {
    expect(replyOf(question, { decision: 'answer', answers: { 2: ['x', 'y'] } })).toEqual({
      path: '/question/que_1/reply',
      body: { answers: [[], ['x', 'y']] },
    });
  });

  test('a dismissed question has a route of its own, without a body', () => {
    expect(replyOf(question, { decision: 'deny', note: 'no' })).toEqual({ path: '/question/que_1/reject' });
  });

  test('a hostile id stays in its place', () => {
    const hostile = read('permission', { id: '../session/x?a=1', sessionID: 'ses_a' });
    expect(replyOf(hostile, { decision: 'allow-once' }).path).toBe(
      '/permission/..%2Fsession%2Fx%3Fa%3D1/reply',
    );
  });
});

describe('names of models', () => {
  test.each([
    ['anthropic/claude-x', { providerID: 'anthropic', modelID: 'claude-x' }],
    ['openrouter/meta/llama-3', { providerID: 'openrouter', modelID: 'meta/llama-3' }],
    [' mock/mock-1 ', { providerID: 'mock', modelID: 'mock-1' }],
  ])('%s', (text, model) => {
    expect(readModel(text)).toEqual(model);
  });

  test.each([['claude-x'], ['/x'], ['x/'], ['a b/c'], ['']])('%p is none', (text) => {
    expect(readModel(text)).toBeUndefined();
  });
});
