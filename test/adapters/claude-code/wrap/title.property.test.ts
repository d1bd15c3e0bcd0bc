import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { createTitleRewriter } from '../../../../src/adapters/claude-code/wrap/title.ts';

/** Bytes with everything that makes trouble: escapes, half titles, CR LF, parts of UTF-8 characters. */
const piece = fc.oneof(
  fc.uint8Array({ maxLength: 40 }),
  fc
    .constantFrom(
      '\u001b',
      '\u001b]',
      '\u001b]0',
      '\u001b]2;',
      '\u0007',
      '\u001b\\',
      '\r\n',
      '\n',
      '日本',
      '{"a":1}\n',
    )
    .map((text) => new Uint8Array(Buffer.from(text))),
);
const bytes = fc.array(piece, { maxLength: 30 }).map((pieces) => Buffer.concat(pieces));

/** Cuts bytes at arbitrary places. */
function cut(whole: Buffer, places: readonly number[]): Buffer[] {
  const at = [...new Set(places.map((place) => place % (whole.length + 1)))].toSorted((a, b) => a - b);
  return [0, ...at].map((from, index) => whole.subarray(from, at[index] ?? whole.length));
}

function through(chunks: readonly Buffer[], model?: string): Buffer {
  const title = createTitleRewriter();
  if (model !== undefined) title.setModel(model);
  return Buffer.concat([...chunks.map((chunk) => title.push(chunk)), title.flush()]);
}

/** What S-720 means, in one expression, for a stream in one piece. */
function expected(whole: Buffer): Buffer {
  const text = whole.toString('latin1');
  const changed = text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what titles are made of
    /(\u001b\][02];)([^\u0007\u001b]{0,8192})(\u0007|\u001b\\)/g,
    (all, head: string, title: string, end: string) => {
      const isText = Buffer.from(title, 'latin1').equals(
        Buffer.from(Buffer.from(title, 'latin1').toString()),
      );
      return isText ? head + Buffer.from('🟡 Opus · ').toString('latin1') + title + end : all;
    },
  );
  return Buffer.from(changed, 'latin1');
}

describe('titles, for any bytes in any chunks', () => {
  test('S-721: without a model every byte passes as it is', () => {
    fc.assert(
      fc.property(bytes, fc.array(fc.nat()), (whole, places) => {
        expect(through(cut(whole, places)).equals(whole)).toBe(true);
      }),
    );
  });

  test('S-720 S-721: with a model whole titles change and nothing else does, wherever the chunks are cut', () => {
    fc.assert(
      fc.property(bytes, fc.array(fc.nat()), (whole, places) => {
        expect(through(cut(whole, places), 'opus').equals(expected(whole))).toBe(true);
      }),
    );
  });

  test('S-722: a model that comes in between brings the last title again, at the next start of a line', () => {
    const pieces = fc.array(fc.constantFrom('{"a":1}\n', '{"half":', '"\r\n', TITLE), { maxLength: 8 });
    fc.assert(
      fc.property(pieces, pieces, (first, second) => {
        const title = createTitleRewriter();
        const parts = [title.push(Buffer.from(first.join(''))), title.setModel('opus')];
        parts.push(...second.map((piece) => title.push(Buffer.from(piece))), title.flush());
        expect(Buffer.concat(parts).toString()).toBe(first.join('') + withTitleAgain(first, second));
      }),
    );
  });
});

const TITLE = '\u001b]2;acme\u0007';
const SHOWN = '\u001b]2;🟡 Opus · acme\u0007';

/** What the second half becomes: its own titles with the prefix, and one more where a line begins before them. */
function withTitleAgain(first: readonly string[], second: readonly string[]): string {
  const before = first.filter((piece) => piece !== TITLE).join('');
  const shown = second.map((piece) => (piece === TITLE ? SHOWN : piece));
  if (!first.includes(TITLE)) return shown.join('');
  if (before === '' || before.endsWith('\n')) return SHOWN + shown.join('');
  const at = second.findIndex((piece) => piece.endsWith('\n') || piece === TITLE);
  if (at < 0 || second[at] === TITLE) return shown.join('');
  return shown.toSpliced(at + 1, 0, SHOWN).join('');
}
