import { describe, expect, test } from 'bun:test';
import { sortByNeed } from '../../../src/runtime/session/order.ts';
import { createRegistry } from '../../../src/runtime/session/registry.ts';
import type { Sighting } from '../../../src/runtime/session/session.ts';
import { IDLE } from '../../../src/runtime/session/state.ts';

const AT = 1_796_000_000_000;
const rested = (runtimeId: string, sessionId: string, lastActivityAt = AT): Sighting => ({
  session: { runtimeId, instanceId: 'i', sessionId },
  facts: { lastActivityAt },
  claims: [{ feed: 'rows', confidence: 'inferred', at: AT, says: IDLE, detail: '' }],
});

describe('order', () => {
  test('sessions of one moment stand by runtime, then by id, in whatever order they came', () => {
    const all = [rested('b', '1'), rested('a', '2'), rested('a', '1'), rested('b', '0', AT + 1)];
    for (const sightings of [all, all.toReversed()]) {
      const registry = createRegistry();
      registry.replace('scan', sightings, AT);
      const order = sortByNeed(registry.sessions()).map(({ ref }) => `${ref.runtimeId}${ref.sessionId}`);
      expect(order).toEqual(['b0', 'a1', 'a2', 'b1']);
    }
  });
});
