import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import {
  createLineStream,
  type Line,
  type LineCounts,
  noCounts,
  splitLines,
} from '../../../src/runtime/files/jsonl.ts';

const CAP = 40;

/** Contents in which every special thing is likely: line ends, NUL, BOM, broken UTF-8, long lines. */
const content = fc
  .array(
    fc.oneof(
      fc.json({ maxDepth: 1 }).map((text) => Buffer.from(text)),
      fc
        .constantFrom('\n', '\r\n', '\r', '\0', '\0\0\0', '\u2028', '\ufeff', '"', '{')
        .map((text) => Buffer.from(text)),
      fc.uint8Array({ maxLength: 4 }).map((part) => Buffer.from(part)),
      fc.integer({ min: 30, max: 60 }).map((size) => Buffer.alloc(size, 'x')),
    ),
    { maxLength: 30 },
  )
  .map((parts) => Buffer.concat(parts));

const cuts = fc.array(fc.nat(), { maxLength: 20 });

function pieces(bytes: Buffer, at: readonly number[]): Buffer[] {
  const borders = [0, ...at.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return borders.slice(1).map((to, index) => bytes.subarray(borders[index], to));
}

const shape = (lines: readonly Line[]) => lines.map((line) => [line.start, line.end, line.text, line.record]);

describe('lines do not depend on how the bytes arrive', () => {
  test('any cutting of any content gives the same lines, offsets, torn line and counts as one read', () => {
    fc.assert(
      fc.property(content, cuts, (bytes, at) => {
        const once: LineCounts = noCounts();
        const whole = splitLines(bytes, { maxLineBytes: CAP, counts: once });
        const expected = shape(whole.lines);
        const counts = noCounts();
        const stream = createLineStream({ maxLineBytes: CAP, counts });
        const got = shape(pieces(bytes, at).flatMap((piece) => [...stream.push(piece)]));
        expect(got).toEqual(expected);
        expect(stream.committed).toBe(whole.committed);
        expect(counts).toEqual(once);
        const torn = stream.torn();
        if (torn !== undefined) expect(shapeTorn(torn)).toEqual(shapeTorn(whole.torn));
      }),
      { numRuns: 2000 },
    );
  });

  test('the committed offset is 0 or just past an LF, and reading on from it loses and repeats nothing', () => {
    fc.assert(
      fc.property(content, fc.nat(), (bytes, cut) => {
        const to = cut % (bytes.length + 1);
        const whole = shape(splitLines(bytes).lines);
        const first = splitLines(bytes.subarray(0, to));
        if (first.committed > 0) expect(bytes[first.committed - 1]).toBe(10);
        const second = splitLines(bytes.subarray(first.committed), { start: first.committed });
        expect([...shape(first.lines), ...shape(second.lines)]).toEqual(whole);
      }),
      { numRuns: 1000 },
    );
  });

  test('each line begins and ends where it says, in the bytes of the file', () => {
    fc.assert(
      fc.property(content, (bytes) => {
        for (const line of splitLines(bytes).lines) {
          expect(bytes.subarray(line.start, line.start + line.size).toString('utf8')).toBe(line.text);
          const ending = bytes.subarray(line.start + line.size, line.end).toString('latin1');
          expect(['', '\n', '\r\n']).toContain(ending.replaceAll('\0', ''));
        }
      }),
      { numRuns: 500 },
    );
  });
});

function shapeTorn(line: Line | undefined): unknown[] {
  return line === undefined ? [] : [line.start, line.end, line.text];
}
