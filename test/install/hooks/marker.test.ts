import { afterAll, describe, expect, test } from 'bun:test';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { claudeShell } from '../../../src/install/hooks/claude-shell.ts';
import { isOurProgram, isRelated, whose } from '../../../src/install/hooks/marker.ts';
import { commandLine, type HookShell } from '../../../src/install/hooks/shell.ts';

describe('whose a command is (R-31, S-805, H6)', () => {
  test.each([
    ['/a/bin/shadowob-connector hook --agent claude', 'claude'],
    ['shadowob-connector hook --agent codex', 'codex'],
    ['/a/shadowob-connector-linux-x64 hook --agent claude', 'claude'],
    ["'/a b/shadowob-connector' hook --agent claude", 'claude'],
    ["'/it'\\''s/shadowob-connector' hook --agent claude", 'claude'],
    ['"C:/Users/First Last/shadowob-connector.exe" hook --agent claude', 'claude'],
    ['C:\\Users\\me\\shadowob-connector.exe hook --agent codex', 'codex'],
    ['C:\\First^ Last\\shadowob-connector.exe hook --agent codex', 'codex'],
    ["& 'C:\\First Last\\SHADOWOB-CONNECTOR.EXE' hook --agent claude", 'claude'],
    ['  /a/shadowob-connector   hook  --agent claude ', 'claude'],
  ])('ours, wherever it lies and however it is quoted: %s', (command, agent) => {
    expect(whose(command)).toEqual({ kind: 'ours', agent, bare: true });
  });

  test('S-812: without a tag it is ours too', () => {
    expect(whose('/a/shadowob-connector hook')).toEqual({ kind: 'ours', agent: undefined, bare: true });
  });

  test.each([
    '/a/shadowob-connector hook --socket /s',
    '/a/shadowob-connector hook --agent claude --socket /s',
    '/a/shadowob-connector hook --agent claude || true',
  ])('S-813 C-304: with any other word it is ours, and not as we write it: %s', (command) => {
    expect(whose(command)).toMatchObject({ kind: 'ours', bare: false });
  });

  test.each([
    'FOO=1 /a/shadowob-connector hook --agent claude',
    'nice /a/shadowob-connector hook --agent claude',
    'cd /x && /a/shadowob-connector hook --agent claude',
    'bash -c "shadowob-connector hook --agent claude"',
  ])('S-805 C-304: with something before it, it is its user’s: %s', (command) => {
    expect(whose(command)).toEqual({ kind: 'customised' });
  });

  test.each([
    '',
    'hook --agent claude',
    '/a/shadowob hook --agent claude',
    '/shadowob-connector/other hook --agent claude',
    '/a/shadowob-connector status',
    '/a/shadowob-connector hooks-status',
    'omni-dev sessions hook',
    'echo shadowob-connector',
  ])('foreign: %s', (command) => {
    expect(whose(command)).toEqual({ kind: 'foreign' });
  });

  test('S-806 C-309: the sink of omni-dev is known, and is not ours', () => {
    expect(isRelated('/usr/bin/omni-dev sessions hook')).toBe(true);
    expect(isRelated('omni-dev sessions list')).toBe(false);
  });

  test('any text is read without an error', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => void whose(text)));
  });
});

describe('commands for each shell (S-804, W1, W2)', () => {
  const words = ['hook', '--agent', 'claude'];
  test.each<[HookShell, NodeJS.Platform, string, string]>([
    ['bash', 'linux', '/usr/bin/shadowob-connector', '/usr/bin/shadowob-connector'],
    ['bash', 'linux', '/a b/shadowob-connector', "'/a b/shadowob-connector'"],
    ['bash', 'linux', "/it's/shadowob-connector", "'/it'\\''s/shadowob-connector'"],
    ['bash', 'linux', '/$HOME/`x`/shadowob-connector', "'/$HOME/`x`/shadowob-connector'"],
    ['bash', 'win32', 'C:\\Tools\\shadowob-connector.exe', 'C:/Tools/shadowob-connector.exe'],
    [
      'bash',
      'win32',
      'C:\\Users\\First Last\\shadowob-connector.exe',
      "'C:/Users/First Last/shadowob-connector.exe'",
    ],
    ['cmd', 'win32', 'C:\\Tools\\shadowob-connector.exe', 'C:\\Tools\\shadowob-connector.exe'],
    [
      'cmd',
      'win32',
      "C:\\A & B's (x)\\shadowob-connector.exe",
      "C:\\A^ ^&^ B^'s^ ^(x^)\\shadowob-connector.exe",
    ],
    ['cmd', 'win32', 'C:\\Übung\\shadowob-connector.exe', 'C:\\Übung\\shadowob-connector.exe'],
    ['powershell', 'win32', 'C:\\Tools\\shadowob-connector.exe', 'C:\\Tools\\shadowob-connector.exe'],
    [
      'powershell',
      'win32',
      "C:\\First Last's\\shadowob-connector.exe",
      "& 'C:\\First Last''s\\shadowob-connector.exe'",
    ],
  ])('%s on %s: %s', (shell, platform, program, quoted) => {
    const command = commandLine(shell, platform, program, words);
    expect(command).toBe(`${quoted} hook --agent claude`);
    expect(whose(command)).toEqual({ kind: 'ours', agent: 'claude', bare: true });
  });

  test.each([
    [{}, [], 'powershell', 'powershell.exe'],
    [
      { ProgramFiles: 'C:\\Program Files' },
      ['C:\\Program Files\\Git\\bin\\bash.exe'],
      'bash',
      'C:\\Program Files\\Git\\bin\\bash.exe',
    ],
    [{ Path: 'C:\\x;D:\\Git\\cmd' }, ['D:\\Git\\bin\\bash.exe'], 'bash', 'D:\\Git\\bin\\bash.exe'],
    [{ CLAUDE_CODE_GIT_BASH_PATH: 'E:\\bash.exe' }, ['E:\\bash.exe'], 'bash', 'E:\\bash.exe'],
    [{ CLAUDE_CODE_GIT_BASH_PATH: 'E:\\gone.exe' }, [], 'powershell', 'powershell.exe'],
  ])(
    'R-46 W1: the shell of Claude Code on Windows, with %j',
    (env, files: readonly string[], shell, program) => {
      const found = claudeShell({ env, platform: 'win32' }, (path) => files.includes(path));
      expect([found.shell, found.argv[0]] as unknown[]).toEqual([shell, program]);
    },
  );

  const folder = mkdtempSync(join(tmpdir(), 'hook-shells-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test.skipIf(process.platform === 'win32')(
    'C-308 real: a shell starts the program, whatever its path',
    () => {
      const names = [
        'plain',
        'a b',
        "it's",
        'say "x"',
        '$HOME `id` $(id)',
        'ü – 日本',
        '*?[a]',
        '!x',
        '\\n',
        '~a',
        '#',
      ];
      const shells = ['sh', 'bash', 'dash', 'zsh', 'fish'].filter((shell) => Bun.which(shell));
      for (const name of names) {
        mkdirSync(join(folder, name), { recursive: true });
        const program = join(folder, name, 'shadowob-connector');
        writeFileSync(program, '#!/bin/sh\nprintf "%s|" "$0" "$@"\n');
        chmodSync(program, 0o755);
        const command = commandLine('bash', 'linux', program, words);
        expect(whose(command)).toMatchObject({ kind: 'ours', bare: true });
        for (const shell of shells) {
          const ran = Bun.spawnSync([shell, '-c', command], { cwd: folder });
          expect(ran.stdout.toString()).toBe(`${program}|hook|--agent|claude|`);
        }
      }
    },
  );

  test('every path that may be written is known again', () => {
    const path = fc
      .array(fc.string({ minLength: 1, maxLength: 8 }), { maxLength: 4 })
      .map((parts) => `/${parts.map((part) => part.replaceAll('\0', 'x')).join('/')}/shadowob-connector`);
    fc.assert(
      fc.property(path, (program) => {
        const command = commandLine('bash', 'linux', program, words);
        expect(isOurProgram(program)).toBe(true);
        expect(whose(command)).toEqual({ kind: 'ours', agent: 'claude', bare: true });
      }),
    );
  });
});
