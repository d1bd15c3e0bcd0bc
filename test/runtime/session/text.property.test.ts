import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { redact } from '../../../src/runtime/session/redact.ts';
import { cleanTitle, clip, oneLine, TITLE_LIMIT } from '../../../src/runtime/session/text.ts';

const wild = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.string({ unit: 'grapheme', maxLength: 200 }),
  fc
    .array(
      fc.constantFrom(
        '\u001b[31m',
        '\u001b]0;x\u0007',
        '\u202e',
        '\ufeff',
        '\u0000',
        '\r\n',
        'a',
        ' ',
        '日本',
        '\ud800',
        '👩‍👩‍👧‍👦',
      ),
      { maxLength: 60 },
    )
    .map((parts) => parts.join('')),
);

// biome-ignore lint/suspicious/noControlCharactersInRegex: what must never come out.
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069\ufeff]/;
const graphemes = (text: string) => [...new Intl.Segmenter().segment(text)].length;

describe('hostile titles (O4)', () => {
  test('whatever comes in, one printable line comes out', () => {
    fc.assert(
      fc.property(wild, (text) => {
        const line = oneLine(text);
        expect(line).not.toMatch(UNPRINTABLE);
        expect(line.isWellFormed()).toBe(true);
        expect(line).toBe(line.trim());
      }),
    );
  });

  test('a title is at most its limit and cleaning it again changes nothing', () => {
    fc.assert(
      fc.property(wild, (text) => {
        const title = cleanTitle(text);
        if (title === undefined) return;
        expect(graphemes(title)).toBeLessThanOrEqual(TITLE_LIMIT);
        expect(oneLine(title)).toBe(title);
      }),
    );
  });

  test('clipping cuts between graphemes and never lengthens', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme', maxLength: 80 }),
        fc.integer({ min: 1, max: 40 }),
        (text, limit) => {
          const cut = clip(text, limit);
          expect(graphemes(cut)).toBeLessThanOrEqual(limit);
          expect(text.startsWith(cut.endsWith('…') ? cut.slice(0, -1) : cut)).toBe(true);
        },
      ),
    );
  });

  test('a 5 MB prompt gives a title without reading all of it', () => {
    expect(cleanTitle(`Fix ${'x'.repeat(5_000_000)}`)?.length).toBe(TITLE_LIMIT);
  });

  test('nothing but white space and controls is no title', () => {
    expect(cleanTitle(' \u001b[2J\r\n\u200b ')).toBeUndefined();
  });
});

const alnum = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'];
const token = (min: number, max: number) =>
  fc.array(fc.constantFrom(...alnum), { minLength: min, maxLength: max }).map((chars) => chars.join(''));

describe('secrets (C24, C25)', () => {
  const shapes: [string, (body: string) => string][] = [
    ['an Anthropic key', (body) => `sk-ant-api03-${body}`],
    ['an OpenAI key', (body) => `sk-proj-${body}`],
    ['a GitHub token', (body) => `ghp_${body}`],
    ['a GitHub fine-grained token', (body) => `github_pat_${body}`],
    ['a Slack token', (body) => `xoxb-${body}`],
    ['a bearer header', (body) => `Authorization: Bearer ${body}`],
    ['an assignment', (body) => `export MY_API_KEY=${body}`],
    ['a JSON member', (body) => `{"token": "${body}"}`],
    ['a flag', (body) => `deploy --password ${body}`],
    ['a URL', (body) => `git clone https://me:${body}@example.com/x.git`],
  ];
  for (const [name, make] of shapes) {
    test(`${name} never survives, wherever it stands`, () => {
      fc.assert(
        fc.property(
          token(32, 60),
          fc.string({ maxLength: 20 }),
          fc.string({ maxLength: 20 }),
          (body, before, after) => {
            expect(redact(`${before} ${make(body)} ${after}`)).not.toContain(body);
          },
        ),
      );
    });
  }

  test('masking twice changes nothing', () => {
    fc.assert(fc.property(wild, (text) => expect(redact(redact(text))).toBe(redact(text))));
  });

  test('ordinary work stays readable', () => {
    const plain = [
      'Fix the token parser in src/lexer.ts',
      'Why is the password field empty?',
      'git log --author me --oneline',
      'Bump sk-learn to 1.5',
    ];
    expect(plain.map(redact)).toEqual(plain);
  });
});
