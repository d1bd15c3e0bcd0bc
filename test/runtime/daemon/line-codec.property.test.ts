import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { createLineDecoder, encodeLine, type Frame } from '../../../src/runtime/daemon/line-codec.ts';

/** Cuts bytes at the given places, whatever they are. */
function chunks(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...at].map((start, index) => bytes.subarray(start, at[index] ?? bytes.length));
}

function feed(bytes: Buffer, cuts: readonly number[], ceiling?: number): { frames: Frame[]; peak: number } {
  const decoder = createLineDecoder(ceiling);
  const seen = { frames: [] as Frame[], peak: 0 };
  for (const chunk of chunks(bytes, cuts)) {
    // The same buffer is overwritten afterwards, as a socket's read buffer would be.
    const reused = Buffer.from(chunk);
    seen.frames.push(...decoder.push(reused));
    reused.fill(0x7b);
    seen.peak = Math.max(seen.peak, decoder.pending);
  }
  return seen;
}

const cuts = fc.array(fc.nat({ max: 5_000 }), { maxLength: 40 });

describe('line codec, any chunking of any frames (S-301, S-304)', () => {
  test('what was encoded is decoded, whole and in order', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue(), { maxLength: 12 }), cuts, fc.boolean(), (values, where, crlf) => {
        const lines = values.map((value) => encodeLine(value)?.toString() ?? '');
        const bytes = Buffer.from(lines.map((line) => (crlf ? line.replace(/\n$/, '\r\n') : line)).join(''));
        const { frames } = feed(bytes, where);
        expect(frames.map((frame) => (frame.kind === 'line' ? JSON.parse(frame.text) : frame))).toEqual(
          values.map((value) => JSON.parse(JSON.stringify(value))),
        );
      }),
    );
  });

  test('any bytes: the chunking never changes the frames, and little is kept', () => {
    const ceiling = 64;
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), cuts, (raw, where) => {
        const bytes = Buffer.from(raw);
        const whole = feed(bytes, [], ceiling);
        const cut = feed(bytes, where, ceiling);
        expect(cut.frames).toEqual(whole.frames);
        expect(cut.peak).toBeLessThanOrEqual(ceiling + 1);
      }),
      { numRuns: 500 },
    );
  });

  test('lines around the ceiling: exactly those over it are refused', () => {
    const ceiling = 32;
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 24, max: 40 }), { minLength: 1, maxLength: 6 }),
        cuts,
        (sizes, where) => {
          const bytes = Buffer.from(sizes.map((size) => `${'x'.repeat(size)}\n`).join(''));
          const over = sizes.findIndex((size) => size > ceiling);
          const { frames } = feed(bytes, where, ceiling);
          const good = over < 0 ? sizes : sizes.slice(0, over);
          expect(frames).toEqual([
            ...good.map((size) => ({ kind: 'line' as const, text: 'x'.repeat(size) })),
            ...(over < 0 ? [] : [{ kind: 'tooLong' as const }]),
          ]);
        },
      ),
    );
  });
});
