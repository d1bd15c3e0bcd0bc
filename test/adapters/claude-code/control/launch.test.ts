import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import {
  claudeArguments,
  claudeEnvironment,
  configHomeOf,
  resumeCommand,
} from '../../../../src/adapters/claude-code/control/launch.ts';

const ID = '7697b899-723a-44d8-a649-062ddc653853';

describe('the arguments of a process that takes lines', () => {
  const fixed = [
    '-p',
    ...['--input-format', 'stream-json', '--output-format', 'stream-json', '--verbose'],
    '--replay-user-messages',
  ];

  test.each([
    ['ask', ['--permission-prompt-tool', 'stdio']],
    ['allow-edits', ['--permission-prompt-tool', 'stdio', '--permission-mode', 'acceptEdits']],
    ['deny', []],
    ['runtime-default', []],
  ] as const)('approvals %s', (policy, expected) => {
    expect(claudeArguments({ kind: 'resume' }, ID, policy, undefined)).toEqual([
      ...fixed,
      ...expected,
      ...['--resume', ID],
    ]);
  });

  test('a new session has its id from us; a fork resumes the old one under it', () => {
    const tail = (words: readonly string[]) => words.slice(fixed.length);
    expect(tail(claudeArguments({ kind: 'new' }, ID, 'deny', 'opus'))).toEqual([
      ...['--model', 'opus'],
      ...['--session-id', ID],
    ]);
    expect(tail(claudeArguments({ kind: 'fork', of: 'old' }, ID, 'deny', undefined))).toEqual([
      ...['--resume', 'old', '--fork-session'],
      ...['--session-id', ID],
    ]);
  });

  test('no policy ever skips all permissions', () => {
    for (const policy of ['ask', 'deny', 'allow-edits', 'runtime-default'] as const) {
      const words = claudeArguments({ kind: 'resume' }, ID, policy, undefined).join(' ');
      expect(words).not.toMatch(/dangerously|bypass/);
    }
  });
});

describe('its environment', () => {
  test('marks of a session around us are gone (V2), settings and secrets of the user stay, PATH is ours', () => {
    const env = { CLAUDECODE: '1', CLAUDE_PID: '7', ANTHROPIC_API_KEY: 'k', Path: 'x', HOME: '/h' };
    expect(claudeEnvironment(env, '/bin', undefined)).toEqual({
      ANTHROPIC_API_KEY: 'k',
      HOME: '/h',
      PATH: '/bin',
    });
  });

  test('the home is the one that the session lies in, whatever ours says', () => {
    const env = { CLAUDE_CONFIG_DIR: '/other' };
    expect(claudeEnvironment(env, '/bin', undefined)['CLAUDE_CONFIG_DIR']).toBeUndefined();
    expect(claudeEnvironment(env, '/bin', '/mine')['CLAUDE_CONFIG_DIR']).toBe('/mine');
    expect(configHomeOf({ path: '/home/a/.claude/projects/-x/s.jsonl' }, '/home/a')).toBeUndefined();
    expect(configHomeOf({ path: '/data/cc/projects/-x/s.jsonl' }, '/home/a')).toBe('/data/cc');
  });
});

describe('the command with which the user goes on (M4)', () => {
  test('plain folders stay plain', () => {
    expect(resumeCommand(ID, '/home/a/app', undefined, 'linux')).toBe(
      `cd /home/a/app && claude --resume ${ID}`,
    );
    expect(resumeCommand(ID, '/home/a/app', '/data/cc', 'darwin')).toBe(
      `cd /home/a/app && CLAUDE_CONFIG_DIR=/data/cc claude --resume ${ID}`,
    );
  });

  test('Windows changes the drive, too', () => {
    expect(resumeCommand(ID, 'D:\\My App', 'C:\\cc', 'win32')).toBe(
      `set "CLAUDE_CONFIG_DIR=C:\\cc" && cd /d "D:\\My App" && claude --resume ${ID}`,
    );
  });

  test.skipIf(process.platform === 'win32')('a shell reads any folder as it is', () => {
    const folder = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
      .filter((text) => !/\0/.test(text));
    fc.assert(
      fc.property(folder, (name) => {
        const command = resumeCommand(ID, `/${name}`, undefined, 'linux');
        const words = command.slice('cd '.length, -` && claude --resume ${ID}`.length);
        const shown = Bun.spawnSync(['sh', '-c', `printf %s ${words}`]);
        expect(shown.stdout.toString()).toBe(`/${name}`);
      }),
      { numRuns: 60 },
    );
  });
});
