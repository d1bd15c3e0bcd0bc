import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { createTee } from '../../../../src/adapters/claude-code/wrap/tee.ts';
import { WRAP } from '../../../../src/runtime/limits.ts';

function hear(chunks: readonly Uint8Array[], soon: (run: () => void) => void = (run) => run()) {
  const lines: string[] = [];
  const tee = createTee({ line: (_side, text) => lines.push(text), soon });
  for (const chunk of chunks) {
    const copy = Uint8Array.from(chunk);
    tee.push('claude', copy);
    // A stream may use its buffer again.
    copy.fill(0x78);
  }
  tee.close();
  return { lines, counts: tee.counts };
}

describe('what the wrapper hears', () => {
  test('S-704: the same lines for any chunks, CR LF and split UTF-8 included', () => {
    const line = fc.string({ unit: 'grapheme', maxLength: 30 }).map((text) => text.replaceAll('\n', ' '));
    fc.assert(
      fc.property(fc.array(line), fc.constantFrom('\n', '\r\n'), fc.array(fc.nat()), (texts, end, places) => {
        const whole = Buffer.from(texts.map((text) => text + end).join(''));
        const at = [...new Set(places.map((place) => place % (whole.length + 1)))].toSorted((a, b) => a - b);
        const chunks = [0, ...at].map((from, index) => whole.subarray(from, at[index] ?? whole.length));
        const expected = whole
          .toString()
          .split('\n')
          .slice(0, -1)
          .filter((text) => text !== '');
        expect(hear(chunks).lines).toEqual(expected);
      }),
    );
  });

  test('C-268: a line of 1 MiB and more, and one that is no UTF-8, are counted; the next is heard', () => {
    const huge = Buffer.alloc(WRAP.lineBytes + 1, 0x61);
    const { lines, counts } = hear([
      huge,
      Buffer.from('\n'),
      Buffer.from([0xff, 0xfe, 0x0a]),
      Buffer.from('good\n'),
    ]);
    expect([lines, counts]).toEqual([['good'], { full: 0, oversize: 1, nonUtf8: 1, closed: 0 }]);
  });

  test('K-31: the limit is on the line, not on how it comes: one byte less is heard', () => {
    const most = Buffer.alloc(WRAP.lineBytes - 1, 0x61);
    expect(hear([most.subarray(0, 70_000), most.subarray(70_000), Buffer.from('\n')]).lines[0]).toHaveLength(
      most.length,
    );
    expect(hear([Buffer.alloc(WRAP.lineBytes, 0x61), Buffer.from('\n')]).counts.oversize).toBe(1);
  });

  test('S-704: a full queue drops lines and counts them; it never grows', () => {
    const lines: string[] = [];
    const tee = createTee({ line: (_side, text) => lines.push(text), soon: () => {} });
    tee.push('claude', Buffer.from('x\n'.repeat(WRAP.teeLines + 7)));
    expect(tee.counts.full).toBe(7);
    tee.close();
    expect(lines).toHaveLength(WRAP.teeLines);
    tee.push('claude', Buffer.from('late\n'));
    expect([tee.counts.closed, lines.length]).toEqual([1, WRAP.teeLines]);
  });

  test('S-704: nothing is handed on while bytes are being taken', () => {
    const lines: string[] = [];
    const waiting: (() => void)[] = [];
    const tee = createTee({ line: (_side, text) => lines.push(text), soon: (run) => waiting.push(run) });
    tee.push('editor', Buffer.from('a\nb\n'));
    expect(lines).toEqual([]);
    for (const run of waiting.splice(0)) run();
    expect(lines).toEqual(['a', 'b']);
  });
});
