import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import fc from 'fast-check';
import { isObject, sameData } from '../../../src/install/edit/data.ts';
import { readData } from '../../../src/install/edit/plan.ts';
import { jsonFile, tomlFile, yamlFile } from './generators.ts';
import { hooksWiring, PaperFile, pluginWiring } from './helpers.ts';

const strict = jsonFile({ comments: false, trailingCommas: false, json5: false });
const wiring = hooksWiring('json', '/a');

/** As a program does that keeps its settings in memory (H11): all spacing is its own, all values are kept. */
const rewrite = (text: string | null) => {
  const [mark] = text?.startsWith('\ufeff') ? ['\ufeff'] : [''];
  return text === null ? null : `${mark}${JSON.stringify(JSON.parse(text.replace(/^\ufeff/, '')), null, 3)}`;
};

const dataOf = (text: string | null) => {
  const read = readData(text, 'json');
  return read.kind === 'data' ? read.data : undefined;
};

// Many runs on a slow machine with other work on it take longer than the default.
setDefaultTimeout(60_000);

describe('H11: a program rewrites the file, and our bytes cannot be found any more', () => {
  test('removal still leaves what was there before us, empty containers of the user included', () => {
    fc.assert(
      fc.property(strict, (text) => {
        fc.pre(text.trim() !== '');
        const paper = new PaperFile(text);
        paper.install(wiring);
        paper.text = rewrite(paper.text);
        paper.remove(wiring);
        expect(paper.refusals).toEqual([]);
        expect(sameData(dataOf(paper.text), dataOf(rewrite(text)))).toBe(true);
      }),
      { numRuns: 100 },
    );
  });

  test('undoing as well', () => {
    fc.assert(
      fc.property(strict, (text) => {
        fc.pre(text.trim() !== '');
        const paper = new PaperFile(text);
        paper.install(wiring);
        // Where there was nothing to do there is nothing to take back.
        fc.pre(paper.steps.length > 0);
        paper.text = rewrite(paper.text);
        expect(paper.undo()).toBe('undo');
        expect(sameData(dataOf(paper.text), dataOf(rewrite(text)))).toBe(true);
      }),
      { numRuns: 100 },
    );
  });

  test('and a file of ours that has nothing of anyone else in it goes', () => {
    const paper = new PaperFile(null);
    paper.install(wiring);
    paper.text = rewrite(paper.text);
    paper.remove(wiring);
    expect(paper.text).toBeNull();
  });
});

describe.each([
  { format: 'json', file: strict, ours: wiring },
  { format: 'toml', file: tomlFile, ours: hooksWiring('toml', '/a') },
  { format: 'yaml', file: yamlFile, ours: pluginWiring('yaml', 't') },
] as const)('$format without a record (its folder was deleted)', ({ format, file, ours }) => {
  test('S-814: removal takes what is ours and nothing else', () => {
    fc.assert(
      fc.property(file, (text) => {
        const paper = new PaperFile(text);
        paper.install(ours);
        paper.steps = [];
        paper.remove(ours);
        const before = readData(text, format);
        const after = readData(paper.text, format);
        if (before.kind !== 'data' || after.kind !== 'data') throw new Error('not readable');
        expect(ours.remove(after.data)).toEqual([]);
        // Every top-level key of the user is as it was, but for emptied containers around ours.
        for (const key of isObject(before.data) ? Object.keys(before.data) : []) {
          if (['hooks', 'plugins', 'platforms'].includes(key)) continue;
          expect(
            isObject(after.data) && sameData(after.data[key], (before.data as typeof after.data)[key]),
          ).toBe(true);
        }
      }),
      { numRuns: 200 },
    );
  });
});
