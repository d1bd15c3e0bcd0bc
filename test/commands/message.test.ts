import { describe, expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readMessage, readWords } from '../../src/commands/message.ts';
import type { World } from '../../src/commands/world.ts';
import { ConnectorError } from '../../src/runtime/errors.ts';
import { TEXT } from '../../src/runtime/limits.ts';

function worldIn(cwd: string, stdin: string | Uint8Array = '', isTerminal = false): World {
  const read = async () => Buffer.from(stdin);
  return { cwd, stdin: { isTerminal, read } } as Partial<World> as World;
}

/** What `readMessage` says no with: its kind and its words. */
async function refusal(asked: Promise<string>): Promise<string> {
  try {
    return `taken: ${(await asked).slice(0, 20)}`;
  } catch (thrown) {
    if (thrown instanceof ConnectorError) return `${thrown.kind}: ${thrown.message}`;
    throw thrown;
  }
}

async function inFolder(run: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'message-'));
  try {
    await run(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const HALF_A_PAIR = '\ud800';
const SENT = [
  '-p',
  '--help',
  '/etc/hosts',
  '!ls',
  '# a',
  '@b',
  ' \r\n a \r\n',
  'nul\0',
  '\ufeffmark',
  '日本 👩‍👩‍👧',
];

describe('the text of a message (R-40)', () => {
  test.each(SENT)('%j is the same from an argument, a file and stdin', (text) =>
    inFolder(async (folder) => {
      writeFileSync(join(folder, 'text'), text);
      expect(await readMessage({ message: text }, worldIn(folder))).toBe(text);
      expect(await readMessage({ 'message-file': 'text' }, worldIn(folder))).toBe(text);
      expect(await readMessage({ message: '-' }, worldIn(folder, text))).toBe(text);
      expect(await readMessage({}, worldIn(folder, text))).toBe(text);
    }),
  );

  test('what is no UTF-8 is refused by name, and never changed', () =>
    inFolder(async (folder) => {
      const broken = [Buffer.from([0x61, 0xff]), Buffer.from([0xed, 0xa0, 0x80]), Buffer.from([0xe6, 0x97])];
      for (const bytes of broken) {
        writeFileSync(join(folder, 'text'), bytes);
        const world = worldIn(folder, bytes);
        expect(await refusal(readMessage({ 'message-file': 'text' }, world))).toBe(
          'badValue: the message is not UTF-8 (text)',
        );
        expect(await refusal(readMessage({ message: '-' }, world))).toBe(
          'badValue: the message is not UTF-8 (stdin)',
        );
      }
    }));

  test.each([HALF_A_PAIR, 'a\ufffdb'])(
    'an argument that did not arrive whole is refused: %j',
    async (message) => {
      expect(await refusal(readMessage({ message }, worldIn('/')))).toStartWith('badValue: --message holds');
      expect(() => readWords('--note', message)).toThrow('--note holds U+FFFD');
    },
  );

  test('U+FFFD itself goes by a file or stdin', async () => {
    expect(await readMessage({ message: '-' }, worldIn('/', 'a\ufffdb'))).toBe('a\ufffdb');
  });

  test('up to the limit, and not one byte more', () =>
    inFolder(async (folder) => {
      const most = 'é'.repeat(TEXT.messageBytes / 2);
      for (const [text, taken] of [
        [most, true],
        [`${most}a`, false],
      ] as const) {
        writeFileSync(join(folder, 'text'), text);
        const world = worldIn(folder, text);
        for (const args of [{ 'message-file': 'text' }, { message: '-' }, { message: text }]) {
          const said = await refusal(readMessage(args, world));
          expect(said).toStartWith(taken ? 'taken:' : 'badValue: the message has more than');
        }
      }
    }));

  test.each([
    ['a folder', 'folder', 'notFound: --message-file:'],
    ['a file that is not there', 'nothing', 'notFound: --message-file:'],
    ['an empty file', 'empty', 'badValue: the message is empty'],
    ['spaces alone', 'blank', 'badValue: the message is empty'],
  ])('%s is refused', (_name, file, said) =>
    inFolder(async (folder) => {
      mkdirSync(join(folder, 'folder'));
      writeFileSync(join(folder, 'empty'), '');
      writeFileSync(join(folder, 'blank'), ' \r\n\t');
      expect(await refusal(readMessage({ 'message-file': file }, worldIn(folder)))).toStartWith(said);
    }),
  );

  test.skipIf(process.platform === 'win32')('a pipe with a name is refused, and never waited for', () =>
    inFolder(async (folder) => {
      Bun.spawnSync(['mkfifo', join(folder, 'pipe')]);
      expect(await refusal(readMessage({ 'message-file': 'pipe' }, worldIn(folder)))).toStartWith(
        'notFound:',
      );
    }),
  );

  test('without any, and with two, it says what to give', async () => {
    expect(await refusal(readMessage({}, worldIn('/', '', true)))).toBe('usage: there is no message');
    expect(await refusal(readMessage({ message: '-' }, worldIn('/')))).toBe(
      'badValue: the message is empty (stdin)',
    );
    const both = readMessage({ message: 'a', 'message-file': 'b' }, worldIn('/'));
    expect(await refusal(both)).toStartWith('usage:');
  });
});

test('A word that goes with an answer has a limit', () => {
  const most = 'x'.repeat(TEXT.noteChars);
  expect(readWords('--note', most)).toBe(most);
  expect(() => readWords('--note', `${most}x`)).toThrow(`${TEXT.noteChars} is the limit`);
});
