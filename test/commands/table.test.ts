import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { detectStyle, paint, type Style } from '../../src/commands/output/style.ts';
import { fit, table, width } from '../../src/commands/output/table.ts';

const PLAIN: Style = { colour: false, columns: undefined, rows: undefined, canRedraw: false, unicode: true };
const line = fc
  .string({ unit: 'grapheme', maxLength: 60 })
  .filter((text) => !/\p{C}|\u2028|\u2029/u.test(text));

describe('tables (O4)', () => {
  test('CJK, emoji and combining titles stay aligned', () => {
    const rows = ['abc', '日本語', '👩‍👩‍👧‍👦', 'e\u0301tude'].map((text) => [{ text }, { text: 'x' }]);
    const lines = table(PLAIN, [{ head: 'TITLE' }, { head: 'N' }], rows).split('\n');
    expect(new Set(lines.map((text) => width(text))).size).toBe(1);
  });
  test('no line is wider than the terminal', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(line, line), { maxLength: 6 }),
        fc.integer({ min: 30, max: 90 }),
        (cells, columns) => {
          const text = table(
            { ...PLAIN, columns },
            [
              { head: 'A', shrinkTo: 10 },
              { head: 'B', shrinkTo: 10 },
            ],
            cells.map((pair) => pair.map((text) => ({ text }))),
          );
          for (const row of text.split('\n')) expect(width(row)).toBeLessThanOrEqual(columns);
        },
      ),
    );
  });
  test('fitting never cuts a glyph in two and never overflows', () => {
    fc.assert(
      fc.property(line, fc.integer({ min: 1, max: 30 }), (text, limit) => {
        const cut = fit(text, limit);
        expect(width(cut)).toBeLessThanOrEqual(limit);
        expect(cut.isWellFormed()).toBe(true);
      }),
    );
  });
});

describe('colour (O5)', () => {
  const terminal = { isTTY: true, columns: 100, rows: 30 };
  const cases: [string, object, Record<string, string>, boolean, boolean][] = [
    ['a terminal', terminal, { TERM: 'xterm-256color' }, true, true],
    ['NO_COLOR', terminal, { TERM: 'xterm', NO_COLOR: '1' }, false, true],
    ['NO_COLOR beats FORCE_COLOR', terminal, { TERM: 'xterm', NO_COLOR: '1', FORCE_COLOR: '1' }, false, true],
    ['an empty NO_COLOR counts as unset', terminal, { TERM: 'xterm', NO_COLOR: '' }, true, true],
    ['a dumb terminal', terminal, { TERM: 'dumb' }, false, false],
    ['a pipe', {}, { TERM: 'xterm' }, false, false],
    ['a pipe with FORCE_COLOR', {}, { TERM: 'xterm', FORCE_COLOR: '1' }, true, false],
  ];
  for (const [name, stream, env, colour, redraw] of cases) {
    test(name, () => {
      const style = detectStyle(stream, env, 'linux');
      expect([style.colour, style.canRedraw]).toEqual([colour, redraw]);
      expect(paint(style, 'red', 'x') !== 'x').toBe(colour);
    });
  }
});
