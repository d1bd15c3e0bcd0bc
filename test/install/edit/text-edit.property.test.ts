import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import {
  alignTexts,
  applyEdits,
  composeEdits,
  invertEdits,
  normalise,
  rebaseEdits,
  type TextEdit,
} from '../../../src/install/edit/text-edit.ts';

const text = fc.string({
  unit: fc.constantFrom('a', 'b', ' ', '\n', '\r\n', '{', '}', '"', 'é', '😀'),
  maxLength: 30,
});

/** Edits of a text, apart from one another. */
const editsOf = (of: string): fc.Arbitrary<readonly TextEdit[]> =>
  fc
    .array(
      fc.tuple(
        fc.nat(of.length),
        fc.nat(4),
        fc.string({ unit: fc.constantFrom('x', 'y', '\n'), maxLength: 4 }),
      ),
      {
        maxLength: 4,
      },
    )
    .map((raw) => {
      const taken: TextEdit[] = [];
      for (const [offset, length, insert] of raw.sort((a, b) => a[0] - b[0])) {
        const last = taken.at(-1);
        if (last !== undefined && offset <= last.offset + last.length) continue;
        taken.push({ offset, length: Math.min(length, of.length - offset), text: insert });
      }
      return normalise(taken);
    });

const edited = text.chain((of) => fc.tuple(fc.constant(of), editsOf(of)));
const editedTwice = edited.chain(([of, first]) =>
  fc.tuple(fc.constant(of), fc.constant(first), editsOf(applyEdits(of, first))),
);

describe('the arithmetic of edits', () => {
  test('an inverse gives the text back', () => {
    fc.assert(
      fc.property(edited, ([of, edits]) => {
        expect(applyEdits(applyEdits(of, edits), invertEdits(of, edits))).toBe(of);
      }),
      { numRuns: 1000 },
    );
  });

  test('composed edits do in one go what both do one after the other', () => {
    fc.assert(
      fc.property(editedTwice, ([of, first, second]) => {
        const both = composeEdits(first, second);
        expect(applyEdits(of, both)).toBe(applyEdits(applyEdits(of, first), second));
        expect(normalise(both)).toEqual([...both]);
      }),
      { numRuns: 3000 },
    );
  });

  test('edits of apart places can be made in either order', () => {
    fc.assert(
      fc.property(
        text.chain((of) => fc.tuple(fc.constant(of), editsOf(of), editsOf(of))),
        ([of, mine, theirs]) => {
          const touches = (a: TextEdit, b: TextEdit) =>
            a.offset <= b.offset + b.length && b.offset <= a.offset + a.length;
          fc.pre(!mine.some((a) => theirs.some((b) => touches(a, b))));
          const over = rebaseEdits(mine, theirs) ?? [];
          const under = rebaseEdits(theirs, mine) ?? [];
          expect(applyEdits(applyEdits(of, theirs), over)).toBe(applyEdits(applyEdits(of, mine), under));
        },
      ),
      { numRuns: 1000 },
    );
  });

  test('edits of one place are not carried over', () => {
    const mine = [{ offset: 2, length: 3, text: '' }];
    expect(rebaseEdits(mine, [{ offset: 3, length: 0, text: 'x' }])).toBeUndefined();
    expect(rebaseEdits(mine, [{ offset: 0, length: 3, text: '' }])).toBeUndefined();
    expect(rebaseEdits(mine, [{ offset: 2, length: 3, text: 'y' }])).toBeUndefined();
    expect(rebaseEdits(mine, [{ offset: 5, length: 2, text: 'y' }])).toEqual(mine);
  });

  test('aligning two texts gives edits from one to the other', () => {
    fc.assert(
      fc.property(text, text, (from, to) => {
        expect(applyEdits(from, alignTexts(from, to) ?? [])).toBe(to);
      }),
      { numRuns: 1000 },
    );
  });

  test('two texts without anything in common are not aligned for ever', () => {
    const words = (letter: string) =>
      Array.from({ length: 6000 }, (_, index) => `${letter}${index}`).join(' ');
    expect(alignTexts(words('a'), words('b').replaceAll(' ', '\n'))).toBeUndefined();
  });
});
