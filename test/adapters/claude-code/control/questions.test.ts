import { describe, expect, test } from 'bun:test';
import { answerLine, pendingOf } from '../../../../src/adapters/claude-code/control/questions.ts';
import { readStreamLine, type ToolQuestion } from '../../../../src/adapters/claude-code/control/stream.ts';
import type { Decision } from '../../../../src/runtime/control.ts';
import { recordedEvents } from './replay.ts';

const session = { runtimeId: 'claude-code', instanceId: 'transcripts', sessionId: 's' };

function recorded(scenario: string): ToolQuestion[] {
  return recordedEvents(scenario).flatMap((event) => (event.kind === 'question' ? [event.question] : []));
}

function asked(tool_name: string, input: object, permission_suggestions: object[] = []): ToolQuestion {
  const request = { subtype: 'can_use_tool', tool_name, input, permission_suggestions, tool_use_id: 't' };
  const [event] = readStreamLine(JSON.stringify({ type: 'control_request', request_id: 'r', request })) ?? [];
  if (event?.kind !== 'question') throw new Error('no question');
  return event.question;
}

function answered(question: ToolQuestion, decision: Decision, more: object = {}): unknown {
  const line = answerLine(question, { session, requestId: question.requestId, decision, ...more });
  return (line as { response: { response: unknown } }).response.response;
}

describe('requests as the user sees them', () => {
  for (const scenario of ['s-can-use-tool', 's-can-use-tool@2.1.197']) {
    test(`${scenario}: the exact command, and what "for this session" would allow (A2)`, () => {
      const [make, remove] = recorded(scenario).map((question) => pendingOf(question, session, 5));
      expect(make).toEqual({
        requestId: expect.stringMatching(/^[0-9a-f-]{36}$/) as never,
        session,
        askedAt: 5,
        subject: 'Bash',
        kind: 'permission',
        detail: 'mkdir built',
        allows: ['allow-once', 'allow-session', 'deny'],
        sessionScope: 'Bash(mkdir built *)',
      });
      expect(remove?.detail).toBe('rm -rf src');
      expect(remove?.requestId).not.toBe(make?.requestId);
    });
  }

  test('s-ask-user: a question is none of the permissions (R-06), with its options', () => {
    const [question] = recorded('s-ask-user').map((one) => pendingOf(one, session, 5));
    expect(question).toMatchObject({
      kind: 'question',
      detail: 'Which?',
      allows: ['answer', 'deny'],
      questions: [
        {
          id: '1',
          text: 'Which?',
          multiple: false,
          options: [
            { label: 'A', description: 'a' },
            { label: 'B', description: 'b' },
          ],
        },
      ],
    });
  });

  test('a plan is an approval and shows the plan', () => {
    const plan = pendingOf(asked('ExitPlanMode', { plan: '1. Look\n2. Change' }), session, 5);
    expect(plan).toMatchObject({
      kind: 'plan',
      detail: '1. Look\n2. Change',
      allows: ['allow-once', 'deny'],
    });
  });

  test('any other tool shows its whole input', () => {
    const write = pendingOf(asked('Write', { file_path: '/a', content: 'x\ny' }), session, 5);
    expect(JSON.parse(write.detail)).toEqual({ file_path: '/a', content: 'x\ny' });
  });

  test('without a suggestion there is no "for this session"', () => {
    expect(pendingOf(asked('Bash', { command: 'ls' }), session, 5).allows).toEqual(['allow-once', 'deny']);
  });

  test('a mode is what "for this session" means only where there is no rule', () => {
    const mode = { type: 'setMode', mode: 'acceptEdits', destination: 'session' };
    expect(pendingOf(asked('Edit', {}, [mode]), session, 5).sessionScope).toBe('mode acceptEdits');
  });

  test('a request of another kind is known as one that needs an answer', () => {
    const request = { subtype: 'hook_callback', callback_id: 'x' };
    const line = JSON.stringify({ type: 'control_request', request_id: 'r', request });
    expect(readStreamLine(line)).toEqual([
      { kind: 'unknown-question', requestId: 'r', subtype: 'hook_callback' },
    ]);
  });
});

describe('answers in the program’s own protocol', () => {
  const [make] = recorded('s-can-use-tool');
  if (!make) throw new Error('the recording has no request');

  test('allow once: the very input that was asked for', () => {
    expect(answered(make, 'allow-once')).toEqual({
      behavior: 'allow',
      updatedInput: { command: 'mkdir built', description: 'Make dir' },
    });
  });

  test('allow for the session: the narrowest suggestion, for the session and nowhere else', () => {
    expect(answered(make, 'allow-session')).toEqual({
      behavior: 'allow',
      updatedInput: { command: 'mkdir built', description: 'Make dir' },
      updatedPermissions: [
        {
          type: 'addRules',
          rules: [{ toolName: 'Bash', ruleContent: 'mkdir built *' }],
          behavior: 'allow',
          destination: 'session',
        },
      ],
    });
  });

  test('deny: with the user’s word, or with one of ours', () => {
    expect(answered(make, 'deny', { note: 'Not now please' })).toEqual({
      behavior: 'deny',
      message: 'Not now please',
    });
    expect(answered(make, 'deny')).toMatchObject({ behavior: 'deny', message: expect.any(String) });
  });

  test('s-ask-user: the answer stands beside the question’s text', () => {
    const [question] = recorded('s-ask-user');
    expect(question && answered(question, 'answer', { answers: { '1': ['B'] } })).toMatchObject({
      behavior: 'allow',
      updatedInput: { questions: expect.any(Array), answers: { 'Which?': 'B' } },
    });
  });

  test('several choices are one text, as the program itself joins them', () => {
    const options = ['A', 'B', 'C'].map((label) => ({ label }));
    const question = asked('AskUserQuestion', {
      questions: [{ question: 'Which ones?', multiSelect: true, options }],
    });
    expect(answered(question, 'answer', { answers: { '1': ['A', 'C'] } })).toMatchObject({
      updatedInput: { answers: { 'Which ones?': 'A, C' } },
    });
  });

  test('the reply carries the request’s own id', () => {
    expect(answerLine(make, { session, requestId: make.requestId, decision: 'deny' })).toMatchObject({
      type: 'control_response',
      response: { subtype: 'success', request_id: make.requestId },
    });
  });
});
