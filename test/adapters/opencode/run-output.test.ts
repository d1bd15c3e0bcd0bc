import { describe, expect, test } from 'bun:test';
import { readRunOutput } from '../../../src/adapters/opencode/run-output.ts';
import { lines, text } from './recordings.ts';

describe('`opencode run --format json`, as recorded', () => {
  const cases = [
    ['cli-run-json', { outcome: 'completed' }],
    ['cli-run-resume', { outcome: 'completed' }],
    // M6: the program refused by itself what it would have had to ask, and leaves with code 0.
    ['cli-run-permission', { outcome: 'stopped' }],
    ['cli-run-auth-error', { outcome: 'failed', error: 'Incorrect API key provided' }],
    ['cli-run-bad-session', { outcome: 'failed' }],
  ] as const;

  for (const [scenario, expected] of cases) {
    test(`${scenario}: ${expected.outcome}`, () => {
      const exit = Number(/-?\d+/.exec(text(scenario, 'exit.txt'))?.[0]);
      const { sessionId, ...rest } = readRunOutput(lines(scenario, 'stdout.jsonl'), exit);
      expect(rest).toEqual(expected);
      expect(sessionId?.startsWith('ses_') ?? scenario === 'cli-run-bad-session').toBe(true);
    });
  }

  test('lines that are no objects are left out, and nothing at all is no success', () => {
    expect(readRunOutput([null, 'x', 3, { type: 'text' }], 0)).toEqual({ outcome: 'stopped' });
  });
});
