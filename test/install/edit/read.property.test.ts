import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import fc from 'fast-check';
import { type Data, isArray, isObject, Verbatim } from '../../../src/install/edit/data.ts';
import { readData } from '../../../src/install/edit/plan.ts';
import { jsonFile, tomlFile } from './generators.ts';

/** As a reader without whole numbers beyond 2^53 and without words of its own sees it. */
function plain(data: Data): unknown {
  if (typeof data === 'bigint') return Number(data);
  if (data instanceof Verbatim) return words(data.source);
  if (isArray(data)) return data.map(plain);
  if (!isObject(data)) return data === 0 ? 0 : data;
  return Object.fromEntries(Object.entries(data).map(([key, item]) => [key, plain(item)]));
}

function words(source: string): unknown {
  const word = source.replace(/^[+-]/, '').toLowerCase();
  if (word === 'nan') return Number.NaN;
  if (word === 'inf' || word === 'infinity') return source.startsWith('-') ? -Infinity : Infinity;
  return 'a time';
}

const isTime = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && /Date|Time|Instant/.test(value.constructor?.name ?? '');

const dropTimes = (value: unknown): unknown =>
  isTime(value) || (typeof value === 'string' && /^(?:\d{4}-\d\d-\d\d|\d\d:\d\d)/.test(value))
    ? 'a time'
    : value;

const deep = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(deep);
  if (typeof value === 'bigint') return Number(value);
  // `-0` is 0 as a whole number.
  if (value === 0) return 0;
  if (typeof value !== 'object' || value === null || isTime(value)) return dropTimes(value);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, deep(item)]));
};

const dataOf = (text: string, format: 'json' | 'jsonc' | 'json5' | 'toml'): unknown => {
  const read = readData(text, format);
  if (read.kind === 'unreadable') throw new Error(`${read.message} (line ${read.line})`);
  return plain(read.data);
};

const withoutMark = (text: string) => text.replace(/^\ufeff/, '');
const options = { comments: true, trailingCommas: true };

// Many runs on a slow machine with other work on it take longer than the default.
setDefaultTimeout(60_000);

describe('what we read is what an independent reader reads', () => {
  test('json: JSON.parse', () => {
    fc.assert(
      fc.property(jsonFile({ comments: false, trailingCommas: false, json5: false }), (text) => {
        const blank = text.trim() === '';
        expect(dataOf(text, 'json')).toEqual(blank ? {} : deep(JSON.parse(withoutMark(text))));
      }),
      { numRuns: 300 },
    );
  });

  test('jsonc: the JSON reader of TypeScript and VS Code configurations in Bun', () => {
    fc.assert(
      fc.property(jsonFile({ ...options, json5: false }), (text) => {
        fc.pre(/[{]/.test(text));
        expect(dataOf(text, 'jsonc')).toEqual(deep(Bun.JSONC.parse(withoutMark(text))));
      }),
      { numRuns: 300 },
    );
  });

  test('json5: the JSON5 reader in Bun', () => {
    fc.assert(
      fc.property(jsonFile({ ...options, json5: true }), (text) => {
        fc.pre(/[{]/.test(text));
        expect(dataOf(text, 'json5')).toEqual(deep(Bun.JSON5.parse(withoutMark(text))));
      }),
      { numRuns: 300 },
    );
  });

  test('toml: the TOML reader in Bun', () => {
    fc.assert(
      fc.property(tomlFile, (text) => {
        // Bun refuses whole numbers beyond 2^53, which we keep.
        const small = text.replaceAll('9007199254740993', '9007199254740991');
        expect(dataOf(small, 'toml')).toEqual(deep(Bun.TOML.parse(withoutMark(small))));
      }),
      { numRuns: 300 },
    );
  });

  test('strict json is exactly what JSON.parse takes', () => {
    const piece = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"a"',
      '1',
      '01',
      '.5',
      'null',
      'nul',
      '\t',
      '//',
      '/**/',
      "'",
      '"\t"',
    );
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 7 }).map((pieces) => `{"k":${pieces.join('')}}`),
        (text) => {
          const parses = (() => {
            try {
              JSON.parse(text);
              return true;
            } catch {
              return false;
            }
          })();
          expect(readData(text, 'json').kind).toBe(parses ? 'data' : 'unreadable');
        },
      ),
      { numRuns: 2000 },
    );
  });
});
