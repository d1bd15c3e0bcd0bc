import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { createSseParser } from '../../../src/adapters/opencode/sse.ts';

const line = fc.string({ unit: 'grapheme', maxLength: 20 }).map((text) => text.replace(/[\r\n]/g, ' '));

describe('an event stream', () => {
  test('gives the same events however its bytes are cut into pieces', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(line, { minLength: 1, maxLength: 3 }), { maxLength: 5 }),
        fc.constantFrom('\n', '\r\n', '\r'),
        fc.array(fc.nat({ max: 400 }), { maxLength: 12 }),
        (events, end, cuts) => {
          const text = events
            .map((data) => `${data.map((one) => `data: ${one}${end}`).join('')}${end}`)
            .join('');
          const all = new TextEncoder().encode(text);
          const parser = createSseParser();
          const places = [...new Set([0, ...cuts.map((cut) => Math.min(cut, all.length)), all.length])].sort(
            (a, b) => a - b,
          );
          const out = places.flatMap((from, index) =>
            parser.push(all.subarray(from, places[index + 1] ?? all.length)),
          );
          expect(out).toEqual(events.map((data) => data.join('\n')));
        },
      ),
    );
  });
});
