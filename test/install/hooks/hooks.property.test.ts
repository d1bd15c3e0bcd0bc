import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import fc from 'fast-check';
import { type Data, isArray, lookup } from '../../../src/install/edit/data.ts';
import { readData } from '../../../src/install/edit/plan.ts';
import type { Wiring } from '../../../src/install/edit/wiring.ts';
import { claudeEvents } from '../../../src/install/hooks/claude-events.ts';
import { claudeWiring } from '../../../src/install/hooks/claude-wiring.ts';
import { codexWiring } from '../../../src/install/hooks/codex-wiring.ts';
import { allPlaces } from '../../../src/install/hooks/groups.ts';
import { whose } from '../../../src/install/hooks/marker.ts';
import { commandLine } from '../../../src/install/hooks/shell.ts';
import { jsonFile, tomlFile } from '../edit/generators.ts';
import { PaperFile } from '../edit/helpers.ts';

interface Case {
  readonly runtime: string;
  readonly file: fc.Arbitrary<string>;
  readonly format: 'json' | 'toml';
  wiring(program: string): Wiring;
}

const PROGRAMS = ['/a/bin/shadowob-connector', "/opt/it's here/shadowob-connector-linux-x64"] as const;
const strict = { comments: false, trailingCommas: false, json5: false };
const line = (program: string, agent: string) =>
  commandLine('bash', 'linux', program, ['hook', '--agent', agent]);

const cases: readonly Case[] = [
  {
    runtime: 'Claude Code',
    file: jsonFile(strict),
    format: 'json',
    wiring: (program) => claudeWiring(line(program, 'claude'), claudeEvents(['2.1.332'])),
  },
  {
    runtime: 'Codex, hooks.json',
    file: jsonFile(strict),
    format: 'json',
    wiring: (program) => codexWiring(line(program, 'codex'), 'json'),
  },
  {
    runtime: 'Codex, config.toml',
    file: tomlFile,
    format: 'toml',
    wiring: (program) => codexWiring(line(program, 'codex'), 'toml'),
  },
];

const deeds = fc.array(fc.constantFrom('install', 'upgrade', 'uninstall', 'undo'), { maxLength: 7 });

// Many runs on a slow machine with other work on it take longer than the default.
setDefaultTimeout(120_000);

describe.each(cases)('$runtime', ({ file, format, wiring }) => {
  const [first, second] = [wiring(PROGRAMS[0]), wiring(PROGRAMS[1])];
  const perform = (paper: PaperFile, deed: string) => {
    if (deed === 'install') paper.install(first);
    if (deed === 'upgrade') paper.install(second);
    if (deed === 'uninstall') paper.remove(second);
    if (deed === 'undo') paper.undo();
  };
  const dataOf = (text: string | null): Data => {
    const read = readData(text, format);
    return read.kind === 'data' ? read.data : {};
  };
  /** Every foreign hook with its place: what Codex trusts (S-822, T1). */
  const foreign = (text: string | null) =>
    allPlaces(dataOf(text)).filter(({ command }) => whose(command).kind === 'foreign');

  test('S-801 H18: any installs, upgrades, removals and undos, then a removal: the first bytes', () => {
    fc.assert(
      fc.property(file, deeds, (text, sequence) => {
        const paper = new PaperFile(text);
        for (const deed of [...sequence, 'uninstall']) perform(paper, deed);
        expect(paper.refusals).toEqual([]);
        expect(paper.text).toBe(text);
      }),
      { numRuns: 60 },
    );
  });

  test('any installs, upgrades and removals, each undone: the first bytes', () => {
    fc.assert(
      fc.property(file, deeds, (text, sequence) => {
        const paper = new PaperFile(text);
        for (const deed of sequence) perform(paper, deed);
        while (paper.steps.length > 0) expect(paper.undo()).not.toBe('nothing');
        expect(paper.text).toBe(text);
      }),
      { numRuns: 60 },
    );
  });

  test('H3 H4 T1 S-822: no foreign hook is changed or moved, whatever is done', () => {
    fc.assert(
      fc.property(file, deeds, (text, sequence) => {
        const paper = new PaperFile(text);
        const before = foreign(text);
        for (const deed of sequence) {
          perform(paper, deed);
          expect(foreign(paper.text)).toEqual(before);
        }
      }),
      { numRuns: 60 },
    );
  });

  test('H5 S-801 C-302: after an install, one of ours an event, and installing again changes nothing', () => {
    fc.assert(
      fc.property(file, deeds, (text, sequence) => {
        const paper = new PaperFile(text);
        for (const deed of [...sequence, 'upgrade']) perform(paper, deed);
        const ours = allPlaces(dataOf(paper.text)).filter(({ command }) => whose(command).kind === 'ours');
        expect(new Set(ours.map((place) => place.event)).size).toBe(ours.length);
        expect(new Set(ours.map((place) => place.command)).size).toBeLessThanOrEqual(1);
        expect(paper.install(second)).toBe('nothing');
      }),
      { numRuns: 60 },
    );
  });

  test('S-823 H4: hooks that others add behind ours keep their content, and in Codex their place', () => {
    fc.assert(
      fc.property(file, fc.boolean(), (text, upgraded) => {
        const paper = new PaperFile(text);
        paper.install(first);
        const added = addBehind(paper.text, format);
        if (added === undefined) return;
        paper.text = added;
        const before = foreign(paper.text);
        if (upgraded) paper.install(second);
        expect(foreign(paper.text)).toEqual(before);
        paper.remove(second);
        const after = foreign(paper.text);
        expect(after.map((place) => place.command)).toEqual(before.map((place) => place.command));
        if (wiring(PROGRAMS[0]).id === 'codex-hooks') expect(after).toEqual(before);
        expect(allPlaces(dataOf(paper.text)).some(({ command }) => whose(command).kind === 'ours')).toBe(
          false,
        );
      }),
      { numRuns: 60 },
    );
  });
});

/** What a user does who puts a hook of his own behind ours at `Stop`. */
function addBehind(text: string | null, format: 'json' | 'toml'): string | undefined {
  const read = readData(text, format);
  if (text === null || read.kind !== 'data' || !isArray(lookup(read.data, ['hooks', 'Stop'])))
    return undefined;
  const adder: Wiring = {
    id: 'user',
    format,
    install: () => [
      {
        kind: 'appendToArray',
        path: ['hooks', 'Stop'],
        value: { hooks: [{ type: 'command', command: 'later' }] },
      },
    ],
    remove: () => [],
  };
  const paper = new PaperFile(text);
  paper.install(adder);
  return paper.text ?? undefined;
}
