import { describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, posix, resolve, sep } from 'node:path';
import { commandHelp, overviewHelp } from '../../src/commands/help.ts';
import { loadAll } from '../../src/commands/table.ts';

const ROOT = resolve(import.meta.dir, '..', '..');

/**
 * The words of R-44. Small letters are the plain description of what such programs are, and are allowed; as names they
 * are not, since a notice or a table must say which program it means.
 */
const FORBIDDEN = [/Coding Agent/, /Agent Runtime/, /\bwild\b/i];

const PLAIN = { colour: false, columns: undefined, rows: undefined, canRedraw: false, unicode: true };

function filesBelow(folder: string, ends: readonly string[]): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => posix.join(folder, name.split(sep).join(posix.sep)))
    .filter((name) => ends.some((end) => name.endsWith(end)) && statSync(join(ROOT, name)).isFile());
}

/** The texts of a source file that could reach a person: everything in quotes, comments left out. */
function textsOf(source: string): readonly string[] {
  const withoutComments = source.replace(/\/\*[\s\S]*?\*\/|(^|\s)\/\/[^\n]*/g, ' ');
  return withoutComments.match(/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g) ?? [];
}

const forbiddenIn = (text: string) => FORBIDDEN.filter((word) => word.test(text)).map(String);

describe('R-44: words that no user may read', () => {
  test('in the help of any command', async () => {
    const commands = await loadAll();
    expect(commands.length).toBeGreaterThan(10);
    const pages = [overviewHelp(commands, PLAIN), ...commands.map((command) => commandHelp(command, PLAIN))];
    expect(pages.flatMap(forbiddenIn)).toEqual([]);
  });

  test('in any text of the program', () => {
    const files = filesBelow('src', ['.ts']);
    expect(files.length).toBeGreaterThan(100);
    const wrong = files.flatMap((file) =>
      textsOf(readFileSync(join(ROOT, file), 'utf8'))
        .filter((text) => forbiddenIn(text).length > 0)
        .map((text) => `${file}: ${text.slice(0, 80)}`),
    );
    expect(wrong).toEqual([]);
  });

  test('in the pages that come with it, and in what its installers say', () => {
    const pages = [
      'README.md',
      'CHANGELOG.md',
      'CONTRIBUTING.md',
      ...filesBelow('docs', ['.md', '.txt', '.svg']),
    ];
    const scripts = ['scripts/install.sh', 'scripts/install.ps1', 'scripts/cli.js'];
    const wrong = [...pages, ...scripts].flatMap((file) =>
      forbiddenIn(readFileSync(join(ROOT, file), 'utf8')).map((word) => `${file}: ${word}`),
    );
    expect(wrong).toEqual([]);
  });

  test('the test itself sees them', () => {
    expect(textsOf("const a = 'Coding Agent is ready.'; // wild").flatMap(forbiddenIn)).toEqual([
      '/Coding Agent/',
    ]);
    expect(['Agent Runtime is online.', 'a Wild one'].map((text) => forbiddenIn(text).length)).toEqual([
      1, 1,
    ]);
  });
});
