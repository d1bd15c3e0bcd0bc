import { describe, expect, test } from 'bun:test';
import { readAnswers } from '../../src/commands/answers.ts';
import type { PendingRequest, Question } from '../../src/runtime/control.ts';

const question = (id: string, labels: readonly string[], multiple = false): Question => ({
  id,
  text: `Question ${id}?`,
  options: labels.map((label) => ({ label })),
  multiple,
});

const request = (...questions: Question[]): PendingRequest => ({
  requestId: 'r',
  session: { runtimeId: 'x', instanceId: 'y', sessionId: 'z' },
  kind: 'question',
  subject: 'AskUserQuestion',
  detail: '',
  questions,
  allows: ['answer', 'deny'],
});

describe('answers to questions', () => {
  test.each([
    ['a label', question('1', ['A', 'B']), 'B', ['B']],
    ['own words', question('1', ['A', 'B']), 'neither, ask me later', ['neither, ask me later']],
    ['a comma in a label is no list', question('1', ['A, B', 'C'], true), 'A, B', ['A, B']],
    ['several labels', question('1', ['A', 'B', 'C'], true), 'A, C', ['A', 'C']],
    ['several words that are no labels', question('1', ['A', 'B'], true), 'A, and tea', ['A, and tea']],
    ['a list where one is wanted is own words', question('1', ['A', 'B']), 'A, B', ['A, B']],
  ])('%s', (_name, one, text, expected) => {
    expect(readAnswers(request(one), text, undefined)).toEqual({ '1': expected });
  });

  test('several questions are answered by number', () => {
    const two = request(question('1', ['A']), question('2', ['B', 'C'], true));
    expect(readAnswers(two, undefined, '{"1":"A","2":["B","C"]}')).toEqual({ '1': ['A'], '2': ['B', 'C'] });
    expect(() => readAnswers(two, 'A', undefined)).toThrow('this request has 2 questions');
    expect(() => readAnswers(two, undefined, '{"3":"A"}')).toThrow('there is no question "3"');
    expect(() => readAnswers(two, undefined, '["A"]')).toThrow('no JSON object of answers');
    expect(() => readAnswers(two, undefined, 'A')).toThrow('no JSON object of answers');
  });

  test('a permission takes yes or no, and no words', () => {
    const permission: PendingRequest = { ...request(), kind: 'permission', allows: ['allow-once', 'deny'] };
    for (const [single, json] of [
      ['B', undefined],
      [undefined, '{"1":"B"}'],
    ]) {
      expect(() => readAnswers(permission, single, json)).toThrow('takes allow-once, deny, not answer');
    }
  });
});
