import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { seal, unseal } from '../../../src/runtime/store/sealed.ts';

test('what was sealed comes back', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(unseal<unknown>(seal(value))).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
});

test('a text in which anything was changed, added or lost is no seal', () => {
  const change = fc.record({ at: fc.nat(), lost: fc.nat({ max: 3 }), put: fc.string({ maxLength: 3 }) });
  fc.assert(
    fc.property(fc.jsonValue(), change, (value, { at, lost, put }) => {
      const sealed = seal(value);
      const from = at % sealed.length;
      const other = sealed.slice(0, from) + put + sealed.slice(from + lost);
      fc.pre(other !== sealed);
      expect(unseal(other)).toBeUndefined();
    }),
  );
});
