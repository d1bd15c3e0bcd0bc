import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import fc from 'fast-check';
import { type Data, isArray, isObject, type Path, sameData } from '../../../src/install/edit/data.ts';
import type { FormatId } from '../../../src/install/edit/document.ts';
import {
  appendToArray,
  ensureObject,
  type Operation,
  removeFromArray,
  removeKey,
  replaceInArray,
  setValue,
} from '../../../src/install/edit/operation.ts';
import { plan, readData } from '../../../src/install/edit/plan.ts';
import { applyEdits, invertEdits } from '../../../src/install/edit/text-edit.ts';
import { envFile, jsonFile, tomlFile, yamlFile } from './generators.ts';

const strict = { comments: false, trailingCommas: false, json5: false };
const commented = { comments: true, trailingCommas: true, json5: false };

const files: readonly { format: FormatId; file: fc.Arbitrary<string> }[] = [
  { format: 'json', file: jsonFile(strict) },
  { format: 'jsonc', file: jsonFile(commented) },
  { format: 'json5', file: jsonFile({ ...commented, json5: true }) },
  { format: 'toml', file: tomlFile },
  { format: 'yaml', file: yamlFile },
  { format: 'env', file: envFile },
];

const text = fc.oneof(
  fc.string({ maxLength: 8 }),
  fc.string({ unit: 'grapheme', maxLength: 6 }),
  fc.constantFrom(
    'yes',
    '1e3',
    '# no',
    "it's",
    'two\nlines',
    'a: b',
    '- x',
    '"quoted"',
    ' lead',
    '~',
    '\u2028',
    '\u0085',
  ),
);
const value: fc.Arbitrary<Data> = fc.letrec<{ value: Data }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 2 },
    text,
    fc.boolean(),
    fc.integer(),
    fc.constantFrom(0.5, 9007199254740993n),
    fc.array(tie('value'), { maxLength: 2 }),
    fc.dictionary(fc.oneof(fc.constantFrom('a', 'b c', '__proto__', '1', 'é'), text), tie('value'), {
      maxKeys: 2,
    }),
  ),
})).value;

function pathsOf(data: Data, path: Path = []): readonly Path[] {
  if (isArray(data)) return [path, ...data.flatMap((item, index) => pathsOf(item, [...path, index]))];
  if (!isObject(data)) return [path];
  return [path, ...Object.entries(data).flatMap(([key, item]) => pathsOf(item, [...path, key]))];
}

/** An operation at, above or beside something that is there. */
const operationOn = (data: Data): fc.Arbitrary<Operation> =>
  fc
    .tuple(
      fc.constantFrom(...pathsOf(data)),
      fc.constantFrom('new', 'b.c', 'clé'),
      fc.nat(3),
      value,
      fc.nat(7),
    )
    .map(([path, key, index, set, kind]): Operation => {
      if (kind === 0) return setValue([...path, key], set);
      if (kind === 1) return setValue(path, set);
      if (kind === 2) return removeKey(path);
      if (kind === 3) return ensureObject([...path, key, 'inner']);
      if (kind === 4) return appendToArray(path, set);
      if (kind === 5) return appendToArray([...path, key], set);
      return kind === 6 ? replaceInArray(path, index, set) : removeFromArray(path, index);
    });

const fileWithOperations = (format: FormatId, file: fc.Arbitrary<string>) =>
  file.chain((content) => {
    const read = readData(content, format);
    const data = read.kind === 'data' ? read.data : {};
    return fc.tuple(fc.constant(content), fc.array(operationOn(data), { minLength: 1, maxLength: 3 }));
  });

// Many runs on a slow machine with other work on it take longer than the default.
setDefaultTimeout(60_000);

describe.each([...files])('$format: any operation on any file', ({ format, file }) => {
  test('is planned or refused for a reason of the file, and never for a defect of ours', () => {
    fc.assert(
      fc.property(fileWithOperations(format, file), ([content, operations]) => {
        const planned = plan(content, format, operations);
        if (planned.kind === 'refused') {
          // Only a text that keeps the empty lines behind it (`|+`) makes neighbours depend on each other.
          const codes = content.includes('|+') ? /^(misfit|cannot|unsafe)$/ : /^(misfit|cannot)$/;
          expect(planned.code).toMatch(codes);
          return;
        }
        expect(planned.before).toBe(content);
        expect(planned.after).toBe(applyEdits(content, planned.edits));
        expect(applyEdits(planned.after ?? '', invertEdits(content, planned.edits))).toBe(content);
        const read = readData(planned.after, format);
        expect(read.kind === 'data' && sameData(read.data, planned.data)).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  test('none at all changes nothing', () => {
    fc.assert(
      fc.property(file, (content) => {
        expect(plan(content, format, [])).toMatchObject({ kind: 'plan', after: content, edits: [] });
      }),
    );
  });
});
