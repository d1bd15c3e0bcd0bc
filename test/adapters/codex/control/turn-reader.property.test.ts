import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { createTurnReader } from '../../../../src/adapters/codex/control/turn-reader.ts';
import type { Fields } from '../../../../src/adapters/codex/fields.ts';
import { RECORDED_THREAD, recordedTurns } from './recorded.ts';
import { read, toldOf } from './told.ts';

describe('the reader of a turn', () => {
  test('it does not matter when the server names the turn: the same steps come', () => {
    fc.assert(
      fc.property(fc.constantFrom(...recordedTurns), fc.nat(60), (turn, after) => {
        expect(read(turn, Math.min(after, toldOf(turn).length))).toEqual([...read(turn)]);
      }),
    );
  });

  test('whatever a server says, a turn has at most one end, and nothing after it', () => {
    const anything = fc.tuple(
      fc.constantFrom('turn/completed', 'turn/started', 'item/started', 'item/completed', 'error', 'x'),
      fc.record(
        {
          threadId: fc.constantFrom(RECORDED_THREAD, 'other'),
          turnId: fc.constantFrom('T', 'U'),
          turn: fc.oneof(
            fc.record({ id: fc.constant('T'), status: fc.string(), items: fc.array(fc.anything()) }),
            fc.anything(),
          ),
          item: fc.anything(),
          error: fc.anything(),
          willRetry: fc.boolean(),
        },
        { requiredKeys: [] },
      ),
    );
    fc.assert(
      fc.property(fc.array(anything, { maxLength: 30 }), (told) => {
        const reader = createTurnReader(RECORDED_THREAD);
        reader.began('T');
        const steps = told.flatMap(([method, params]) => reader.read(method, params as Fields));
        const first = steps.findIndex(({ kind }) => kind === 'end');
        expect(first < 0 || first === steps.length - 1).toBe(true);
      }),
    );
  });
});
