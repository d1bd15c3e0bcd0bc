import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { readEntry } from '../../../src/adapters/pi/entries.ts';
import { decodeSummary, encodeSummary } from '../../../src/adapters/pi/scan.ts';
import { summaryOf } from '../../../src/adapters/pi/transcript.ts';

const ids = fc.constantFrom('a', 'b', 'c', 'd');
const record = fc.oneof(
  fc.json().map((text): unknown => JSON.parse(text)),
  fc.record({
    type: fc.constantFrom('session', 'message', 'context_edit', 'session_info', 'model_change', 'later'),
    id: fc.oneof(ids, fc.anything()),
    parentId: fc.oneof(ids, fc.constant(null)),
    targetId: ids,
    timestamp: fc.oneof(fc.constant('2026-11-30T20:33:22.115Z'), fc.anything()),
    name: fc.oneof(fc.string(), fc.anything()),
    message: fc.oneof(
      fc.record({
        role: fc.constantFrom('user', 'assistant', 'toolResult', 'system', 'x'),
        content: fc.anything(),
        stopReason: fc.constantFrom('stop', 'length', 'toolUse', 'error', 'aborted', 'new word', 4),
      }),
      fc.anything(),
    ),
  }),
);

describe('pi: any lines at all', () => {
  test('give a summary without throwing, and the index gives back its state', () => {
    fc.assert(
      fc.property(fc.array(record, { maxLength: 12 }), (records) => {
        const entries = records.flatMap((one) => readEntry(one) ?? []);
        const summary = summaryOf(entries, entries, 'a');
        const stored = decodeSummary(encodeSummary(summary));
        expect(stored?.turn.state.kind).toBe(summary.turn.state.kind);
        expect(stored?.turn.facts.end).toBe(summary.turn.facts.end);
        expect(stored?.turn.facts.openedAt).toBe(summary.turn.facts.openedAt);
        expect(stored?.title).toBe(summary.title);
      }),
    );
  });
});
