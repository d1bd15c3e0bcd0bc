import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import fc from 'fast-check';
import type { FormatId } from '../../../src/install/edit/document.ts';
import { readData } from '../../../src/install/edit/plan.ts';
import type { Wiring } from '../../../src/install/edit/wiring.ts';
import { envFile, jsonFile, tomlFile, yamlFile } from './generators.ts';
import { hooksWiring, keysWiring, PaperFile, pluginWiring } from './helpers.ts';

interface Case {
  readonly format: FormatId;
  readonly file: fc.Arbitrary<string>;
  /** The same wiring from two places: the second is an upgrade. */
  readonly from: readonly [Wiring, Wiring];
}

const strict = { comments: false, trailingCommas: false, json5: false };
const both = (make: (place: string) => Wiring): readonly [Wiring, Wiring] => [make('/a/bin'), make('/opt/b')];
const env = (place: string) =>
  keysWiring('env', { SHADOWOB_TOKEN: place, SHADOWOB_SERVER_URL: 'https://x.test/a b' });

const cases: readonly Case[] = [
  { format: 'json', file: jsonFile(strict), from: both((place) => hooksWiring('json', place)) },
  {
    format: 'jsonc',
    file: jsonFile({ comments: true, trailingCommas: true, json5: false }),
    from: both((place) => hooksWiring('jsonc', place)),
  },
  {
    format: 'json5',
    file: jsonFile({ comments: true, trailingCommas: true, json5: true }),
    from: both((place) => hooksWiring('json5', place)),
  },
  { format: 'toml', file: tomlFile, from: both((place) => hooksWiring('toml', place)) },
  { format: 'yaml', file: yamlFile, from: both((place) => pluginWiring('yaml', place)) },
  { format: 'env', file: envFile, from: both(env) },
];

const deeds = fc.array(fc.constantFrom('install', 'upgrade', 'remove', 'undo'), { maxLength: 7 });

function perform(file: PaperFile, deed: string, [first, second]: Case['from']): void {
  if (deed === 'install') file.install(first);
  if (deed === 'upgrade') file.install(second);
  if (deed === 'remove') file.remove(second);
  if (deed === 'undo') file.undo();
}

// Many runs on a slow machine with other work on it take longer than the default.
setDefaultTimeout(60_000);

describe.each(cases)('$format', ({ format, file, from }) => {
  const [wiring, elsewhere] = from;

  test('the generated files are valid', () => {
    fc.assert(fc.property(file, (text) => expect(readData(text, format)).toMatchObject({ kind: 'data' })));
  });

  test('H3 H4 H18: any installs, upgrades, removals and undos, then a removal: the first bytes', () => {
    fc.assert(
      fc.property(file, deeds, (text, sequence) => {
        const paper = new PaperFile(text);
        for (const deed of sequence) perform(paper, deed, from);
        paper.remove(wiring);
        expect(paper.refusals).toEqual([]);
        expect(paper.text).toBe(text);
      }),
      { numRuns: 200 },
    );
  });

  test('any installs, upgrades and removals, all undone: the first bytes', () => {
    fc.assert(
      fc.property(file, deeds, (text, sequence) => {
        const paper = new PaperFile(text);
        for (const deed of sequence) perform(paper, deed, from);
        while (paper.steps.length > 0) expect(paper.undo()).toBe('undo');
        expect(paper.text).toBe(text);
      }),
      { numRuns: 200 },
    );
  });

  test('a file that was not there is not there again', () => {
    fc.assert(
      fc.property(deeds, (sequence) => {
        const paper = new PaperFile(null);
        for (const deed of sequence) perform(paper, deed, from);
        paper.remove(wiring);
        expect(paper.refusals).toEqual([]);
        expect(paper.text).toBeNull();
      }),
    );
  });

  test('H5 T5: a second run has nothing to do', () => {
    fc.assert(
      fc.property(file, (text) => {
        const paper = new PaperFile(text);
        paper.install(wiring);
        const once = paper.text;
        expect(paper.install(wiring)).toBe('nothing');
        expect(paper.text).toBe(once);
      }),
      { numRuns: 200 },
    );
  });

  test('H6 C-302: an upgrade differs from a fresh install by the new path alone', () => {
    fc.assert(
      fc.property(file, (text) => {
        const upgraded = new PaperFile(text);
        upgraded.install(wiring);
        upgraded.install(elsewhere);
        const fresh = new PaperFile(text);
        fresh.install(elsewhere);
        expect(upgraded.text).toBe(fresh.text);
      }),
      { numRuns: 200 },
    );
  });

  test('what the user changes meanwhile stays, and nothing else', () => {
    fc.assert(
      fc.property(
        file.filter((text) => text.includes('MARK1')),
        deeds,
        deeds,
        (text, before, after) => {
          const paper = new PaperFile(text);
          for (const deed of before) perform(paper, deed, from);
          paper.text = paper.text?.replace('MARK1', 'MARK2 and more') ?? null;
          for (const deed of after.filter((deed) => deed !== 'undo')) perform(paper, deed, from);
          paper.remove(wiring);
          expect(paper.refusals).toEqual([]);
          expect(paper.text).toBe(text.replace('MARK1', 'MARK2 and more'));
        },
      ),
      { numRuns: 200 },
    );
  });
});
