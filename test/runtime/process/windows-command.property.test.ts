import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import {
  cmdLine,
  needsCmd,
  quoteWindowsArgument,
  splitWindowsCommandLine,
} from '../../../src/runtime/process/windows-command.ts';

const argument = fc.string({
  unit: fc.constantFrom('a', 'ü', ' ', '\t', '"', '\\', '%', '&', '^', '-', '/'),
  maxLength: 12,
});

describe('splitWindowsCommandLine', () => {
  test.each([
    ['a b c', ['a', 'b', 'c']],
    ['"C:\\Program Files\\x.exe" --a', ['C:\\Program Files\\x.exe', '--a']],
    ['x "a b" ""', ['x', 'a b', '']],
    ['x a\\b \\\\server\\share', ['x', 'a\\b', '\\\\server\\share']],
    ['x "a\\\\" b', ['x', 'a\\', 'b']],
    ['x a\\"b', ['x', 'a"b']],
    ['x "a""b"', ['x', 'a"b']],
    ['x "never closed', ['x', 'never closed']],
    ['  x   ', ['x']],
    ['', []],
  ] as [string, string[]][])('%p', (line, argv) => {
    expect(splitWindowsCommandLine(line)).toEqual(argv);
  });

  test('any quoted arguments come back as they were', () => {
    fc.assert(
      fc.property(fc.array(argument, { maxLength: 6 }), (args) => {
        const line = ['C:\\x.exe', ...args.map(quoteWindowsArgument)].join(' ');
        expect(splitWindowsCommandLine(line)).toEqual(['C:\\x.exe', ...args]);
      }),
    );
  });
});

describe('cmdLine', () => {
  /** What cmd.exe makes of carets, twice: once for its own line, once for the script's `%*`. */
  const unescapeOnce = (text: string): string => text.replace(/\^(.)/g, '$1');

  test('after both passes of cmd the arguments come back as they were', () => {
    fc.assert(
      fc.property(fc.array(argument, { maxLength: 6 }), (args) => {
        const line = cmdLine(['C:\\x.cmd', ...args]) ?? '';
        const seen = unescapeOnce(unescapeOnce(line));
        expect(splitWindowsCommandLine(seen)).toEqual(['C:\\x.cmd', ...args]);
      }),
    );
  });

  test('nothing that is syntax for cmd stands without a caret', () => {
    fc.assert(
      fc.property(fc.array(argument, { maxLength: 6 }), (args) => {
        const line = cmdLine(['C:\\x.cmd', ...args]) ?? '';
        expect(line.replace(/\^./g, '').replaceAll(' ', '')).not.toMatch(/[()%!^"<>&|]/);
      }),
    );
  });

  test('line breaks and NUL can not be carried', () => {
    for (const bad of ['a\nb', 'a\rb', 'a\0b']) expect(cmdLine(['x.cmd', bad])).toBeNull();
  });

  test('only script files need cmd', () => {
    expect(['a.cmd', 'B.BAT', 'a.exe', 'a', 'cmd'].map(needsCmd)).toEqual([true, true, false, false, false]);
  });
});
