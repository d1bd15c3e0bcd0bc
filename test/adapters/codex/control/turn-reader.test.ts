import { describe, expect, test } from 'bun:test';
import { createTurnReader, type TurnStep } from '../../../../src/adapters/codex/control/turn-reader.ts';
import { RECORDED_THREAD, recordedTurns, turnsWith } from './recorded.ts';
import { read, type Told, toldOf } from './told.ts';

const endsOf = (steps: readonly TurnStep[]) => steps.filter(({ kind }) => kind === 'end');

describe('the reader of a turn, on what the server was recorded to say', () => {
  const ENDS: readonly (readonly [prompt: string, nth: number, end: object])[] = [
    [
      'What does add do?',
      0,
      { outcome: 'completed', text: 'add(a, b) returns the sum of its two arguments.' },
    ],
    ['Install left-pad', 0, { outcome: 'completed', text: 'Done with the install step.' }],
    ['Install left-pad', 1, { outcome: 'completed', text: 'Done with the install step.' }],
    ['Install left-pad', 2, { outcome: 'stopped' }],
    ['Patch outside', 0, { outcome: 'completed', text: 'Patched outside.' }],
    ['Write a long answer', 0, { outcome: 'stopped' }],
    ['Write a long answer', 1, { outcome: 'completed', text: 'There is no subtract() yet.' }],
    ['Trigger 500', 0, { outcome: 'failed', error: expect.stringContaining('high demand') }],
  ];
  for (const [prompt, nth, end] of ENDS) {
    test(`M6: ${prompt} (${nth + 1}) ends once, as ${JSON.stringify(end)}`, () => {
      const turn = turnsWith(prompt)[nth];
      if (!turn) throw new Error('not recorded');
      expect(endsOf(read(turn))).toEqual([{ kind: 'end', end: end as never }]);
    });
  }

  test('a retry is progress, and no end', () => {
    const [turn] = turnsWith('Trigger 500');
    if (!turn) throw new Error('not recorded');
    const error: Told = [
      'error',
      {
        threadId: RECORDED_THREAD,
        turnId: turn.turnId,
        willRetry: true,
        error: { message: 'Reconnecting... 1/1' },
      },
    ];
    const steps = read(turn, 0, [error]);
    expect(steps).toEqual([{ kind: 'progress', doing: 'retrying', text: 'Reconnecting... 1/1' }]);
  });

  test('another thread, and another turn, say nothing of it', () => {
    const [turn, other] = recordedTurns;
    if (!turn || !other) throw new Error('not recorded');
    expect(read(turn, 0, toldOf(other))).toEqual([]);
    const elsewhere = createTurnReader('another thread');
    elsewhere.began(turn.turnId);
    expect(toldOf(turn).flatMap(([method, params]) => elsewhere.read(method, params))).toEqual([]);
  });
});
