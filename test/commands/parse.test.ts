import { describe, expect, test } from 'bun:test';
import { defineCommand } from '../../src/commands/command.ts';
import { parseCommandArgs } from '../../src/commands/parse.ts';
import { nearest } from '../../src/commands/suggest.ts';
import { ConnectorError } from '../../src/runtime/errors.ts';

const command = defineCommand({
  name: 'session-send',
  summary: '',
  details: '',
  args: {
    id: { type: 'positional', required: true, description: '' },
    runtime: { type: 'string', description: '' },
    message: { type: 'string', description: '' },
    once: { type: 'boolean', description: '' },
  },
  examples: [],
  run: async () => ({ kind: 'verbatim', text: '' }),
});

const good: [string, string[], Record<string, unknown>][] = [
  ['a flag and its value in two words', ['x', '--runtime', 'codex'], { id: 'x', runtime: 'codex' }],
  ['a flag and its value in one', ['x', '--runtime=codex'], { id: 'x', runtime: 'codex' }],
  ['a value that begins with a dash', ['x', '--message', '-rf is a flag'], { message: '-rf is a flag' }],
  ['a dash alone is a value (stdin)', ['x', '--message', '-'], { message: '-' }],
  ['switches before the id', ['--once', '--json', 'x'], { id: 'x', once: true, json: true }],
  ['everything after -- is a word', ['--', '--weird-id'], { id: '--weird-id' }],
];
const bad: [string, string[], string][] = [
  ['a flag that swallows a flag', ['x', '--runtime', '--once'], '--runtime needs a value'],
  ['a flag at the end without its value', ['x', '--runtime'], '--runtime needs a value'],
  ['an empty value', ['x', '--runtime='], '--runtime needs a value'],
  [
    'an unknown flag, with the nearest',
    ['x', '--runtim', 'codex'],
    'there is no option --runtim; did you mean --runtime?',
  ],
  ['a word too many', ['x', 'y'], 'session-send does not take "y"'],
  ['a missing word', [], 'session-send needs ID'],
];

test('options before the command: the message names the program, and says where a command stands', () => {
  const nameless = defineCommand({
    name: '',
    summary: '',
    details: '',
    args: {},
    examples: [],
    run: async () => ({ kind: 'verbatim', text: '' }),
  });
  const refused = () => parseCommandArgs(nameless, ['--json', 'session-list']);
  expect(refused).toThrow('shadowob-connector does not take "session-list"');
  try {
    refused();
  } catch (thrown) {
    expect((thrown as ConnectorError).next).toBe(
      'A command comes before its options. See: shadowob-connector --help',
    );
  }
});

describe('command lines', () => {
  for (const [name, argv, want] of good) {
    test(name, () => expect(parseCommandArgs(command, argv)).toMatchObject(want));
  }
  for (const [name, argv, message] of bad) {
    test(`refused: ${name}`, () => {
      expect(() => parseCommandArgs(command, argv)).toThrow(new ConnectorError('usage', message));
    });
  }
});

describe('suggestions', () => {
  const known = ['session-list', 'session-show', 'runtime-scan', 'runtime-watch'];
  test('a slip of a finger is understood', () => {
    expect(
      ['sesion-list', 'session-lsit', 'runtime-wach', 'Session-Show'].map((word) => nearest(word, known)),
    ).toEqual(['session-list', 'session-list', 'runtime-watch', 'session-show']);
  });
  test('the beginning of a command is understood', () => expect(nearest('sess', known)).toBe('session-list'));
  test('something else altogether is not', () => expect(nearest('frobnicate', known)).toBeUndefined());
  test('a word of a megabyte costs nothing', () =>
    expect(nearest('x'.repeat(1_000_000), known)).toBeUndefined());
});
