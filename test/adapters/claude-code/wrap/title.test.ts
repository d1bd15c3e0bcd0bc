import { describe, expect, test } from 'bun:test';
import {
  createTitleRewriter,
  HOLD_BYTES,
  titlePrefix,
} from '../../../../src/adapters/claude-code/wrap/title.ts';

const ESC = '\u001b';
const BEL = '\u0007';
const ST = `${ESC}\\`;

/** Everything that comes out for these chunks, with the model known from the start unless it is to be `undefined`. */
function rewrite(chunks: readonly (string | Uint8Array)[], model?: string): Buffer {
  const title = createTitleRewriter();
  const out = [model === undefined ? new Uint8Array() : title.setModel(model)];
  for (const chunk of chunks) out.push(title.push(Buffer.from(chunk as string)));
  out.push(title.flush());
  return Buffer.concat(out);
}

const rewritten = (chunks: readonly (string | Uint8Array)[], model?: string) =>
  rewrite(chunks, model).toString();

describe('titles (S-720 … S-723)', () => {
  test.each([
    ['claude-fable-5', '🟠 Fable · '],
    ['claude-OPUS-5-5', '🟡 Opus · '],
    ['us.anthropic.claude-sonnet-4', '🟢 Sonnet · '],
    ['haiku', '🔵 Haiku · '],
    ['something-else', '⚪ Claude · '],
  ])('S-720: the family of %s stands as "%s"', (model, prefix) => {
    expect(titlePrefix(model)).toBe(prefix);
  });

  for (const code of ['0', '2']) {
    for (const end of [BEL, ST]) {
      const head = `before${ESC}]${code};`;
      const whole = Buffer.from(`${head}acme – ünïcode 日本${end}after\n`);

      test(`C-273: OSC ${code} ended by ${JSON.stringify(end)} is rewritten, split at every byte`, () => {
        const expected = `${head}🟡 Opus · acme – ünïcode 日本${end}after\n`;
        for (let at = 0; at <= whole.length; at += 1) {
          expect(rewritten([whole.subarray(0, at), whole.subarray(at)], 'opus')).toBe(expected);
        }
        expect(
          rewritten(
            [...whole].map((byte) => Uint8Array.of(byte)),
            'opus',
          ),
        ).toBe(expected);
      });
    }
  }

  test.each([
    ['another code', `${ESC}]1;icon${BEL}\n`],
    ['a longer code', `${ESC}]10;?${BEL}\n`],
    ['a hyperlink', `${ESC}]8;;http://x${ST}text${ESC}]8;;${ST}\n`],
    ['a bare ESC', `a${ESC}`],
    ['ESC and a letter', `a${ESC}xb`],
    ['a colour', `${ESC}[31mred${ESC}[0m`],
    ['a bad end', `${ESC}]0;text${ESC}xmore\n`],
    ['an end that never comes', `${ESC}]0;text`],
    ['no end for 8,193 bytes', `${ESC}]2;${'t'.repeat(HOLD_BYTES + 1)}${BEL}\n`],
    ['an end in the middle of a stream', `${ESC}]2;text${ESC}`],
  ])('C-273 S-721: %s passes byte for byte', (_name, text) => {
    const bytes = Buffer.from(text);
    expect(rewrite([bytes], 'opus')).toEqual(bytes);
    expect(
      rewrite(
        [...bytes].map((byte) => Uint8Array.of(byte)),
        'opus',
      ),
    ).toEqual(bytes);
  });

  test('C-273: a title that is not UTF-8 passes byte for byte', () => {
    const bytes = Buffer.concat([Buffer.from(`${ESC}]0;`), Buffer.from([0xff, 0xfe]), Buffer.from(BEL)]);
    expect(rewrite([bytes], 'opus')).toEqual(bytes);
  });

  test('S-721: a title of exactly 8 KiB is rewritten', () => {
    const text = 't'.repeat(HOLD_BYTES);
    expect(rewritten([`${ESC}]2;${text}${BEL}`], 'opus')).toBe(`${ESC}]2;🟡 Opus · ${text}${BEL}`);
  });

  test('S-721: a title behind a broken one is still rewritten', () => {
    expect(rewritten([`${ESC}]0;broken${ESC}]2;good${BEL}`], 'opus')).toBe(
      `${ESC}]0;broken${ESC}]2;🟡 Opus · good${BEL}`,
    );
  });

  test('C-272 S-722: a title of a time without a model passes, and comes again with it, same code and end', () => {
    const title = createTitleRewriter();
    const first = `${ESC}]2;acme${ST}`;
    expect(Buffer.from(title.push(Buffer.from(first))).toString()).toBe(first);
    expect(Buffer.from(title.push(Buffer.from('{"a":1}\n'))).toString()).toBe('{"a":1}\n');
    expect(Buffer.from(title.setModel('opus')).toString()).toBe(`${ESC}]2;🟡 Opus · acme${ST}`);
    expect(title.setModel('claude-opus-5')).toHaveLength(0);
    expect(Buffer.from(title.setModel('haiku')).toString()).toBe(`${ESC}]2;🔵 Haiku · acme${ST}`);
  });

  test('S-722: it never comes within a line, where it would break the JSON of the editor', () => {
    const title = createTitleRewriter();
    title.push(Buffer.from(`${ESC}]0;acme${BEL}{"half":`));
    expect(title.setModel('opus')).toHaveLength(0);
    expect(Buffer.from(title.push(Buffer.from('"still'))).toString()).toBe('"still');
    expect(Buffer.from(title.push(Buffer.from('"}\n{"next":1}\n'))).toString()).toBe(
      `"}\n${ESC}]0;🟡 Opus · acme${BEL}{"next":1}\n`,
    );
  });
});
