import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { createLineSplitter } from '../../../src/runtime/control/stream-lines.ts';

function split(bytes: Uint8Array, cuts: readonly number[], limit?: number) {
  const splitter = createLineSplitter(limit);
  const edges = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  const lines = edges.slice(1).flatMap((end, i) => [...splitter.push(bytes.subarray(edges[i] ?? 0, end))]);
  const rest = splitter.rest();
  return { lines: rest === undefined ? lines : [...lines, rest], skipped: splitter.skipped };
}

const line = fc
  .string({ unit: 'binary', maxLength: 40 })
  .filter((text) => !/[\n\r]/.test(text) && text.isWellFormed());

describe('lines of a program of ours', () => {
  test('however they are cut, they come whole and in order', () => {
    fc.assert(
      fc.property(fc.array(line, { maxLength: 8 }), fc.array(fc.nat(), { maxLength: 12 }), (lines, cuts) => {
        const bytes = Buffer.from(lines.map((text) => `${text}\n`).join(''));
        expect(split(bytes, cuts)).toEqual({ lines, skipped: 0 });
      }),
    );
  });

  test('a line over the limit is skipped and counted, and the next one is read', () => {
    fc.assert(
      fc.property(fc.nat({ max: 300 }), fc.array(fc.nat(), { maxLength: 6 }), (length, cuts) => {
        const bytes = Buffer.from(`${'x'.repeat(length)}\nnext\n`);
        const expected =
          length > 100
            ? { lines: ['next'], skipped: 1 }
            : { lines: ['x'.repeat(length), 'next'], skipped: 0 };
        expect(split(bytes, cuts, 100)).toEqual(expected);
      }),
    );
  });

  test('U+2028 and a lone CR end no line; CRLF does; a last line needs no end', () => {
    expect(split(Buffer.from('a\u2028b\rc\r\nrest'), [])).toEqual({
      lines: ['a\u2028b\rc', 'rest'],
      skipped: 0,
    });
  });

  test('broken UTF-8 costs a character, not the line', () => {
    const bytes = Buffer.concat([Buffer.from('a'), Buffer.from([0xff]), Buffer.from('b\n')]);
    expect(split(bytes, []).lines).toEqual(['a\ufffdb']);
  });
});
