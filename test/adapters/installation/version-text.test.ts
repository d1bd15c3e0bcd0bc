import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import {
  decodeOutput,
  firstLine,
  VERSION_LIMIT,
  versionFrom,
} from '../../../src/adapters/installation/version-text.ts';

describe('versionFrom', () => {
  test.each([
    ['codex-cli 0.171.0\n', '', 'codex-cli 0.171.0'],
    ['2.1.332 (Claude Code)\nmore\n', '', '2.1.332 (Claude Code)'],
    ['\n\n  1.18.33  \r\n', '', '1.18.33'],
    ['', '1.2.3\n', '1.2.3'],
    ['1.2.3\n', 'warning 9.9.9\n', '1.2.3'],
    ['A new version is out!\nHermes Agent v0.21.5 (2026.9.24)\n', '', 'Hermes Agent v0.21.5 (2026.9.24)'],
    ['build 77\n', '', 'build 77'],
    ['\u001b[1mopenclaw\u001b[0m \u001b[32m2026.9.6\u001b[39m\n', '', 'openclaw 2026.9.6'],
    ['\u001b]0;title\u00071.0.0\n', '', '1.0.0'],
    ['1\u00000.\u00002\u0000\n', '', '10.2'],
    ['v1.2\u202e.3\u200b\u0007\n', '', 'v1.2.3'],
    ['kimi \uFFFD\uFFFD2.1.0\n', '', 'kimi 2.1.0'],
    ['hello there\n', '', null],
    ['', '', null],
    ['\u0000\u001b[0m\n', '', null],
  ])('%j and %j -> %j', (stdout, stderr, expected) => {
    expect(versionFrom(stdout, stderr)).toBe(expected);
  });

  test('case 2: 5,000 characters become at most 120, with no half of a pair at the end', () => {
    expect(versionFrom(`1.0 ${'x'.repeat(5_000)}`, '')?.length).toBe(VERSION_LIMIT);
    const emoji = versionFrom(`1.0${'😀'.repeat(100)}`, '') ?? '';
    expect(emoji.length).toBeLessThanOrEqual(VERSION_LIMIT);
    expect(emoji.isWellFormed()).toBe(true);
  });

  test('case 2: whatever bytes come, the text is clean and short', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
        const version = versionFrom(decodeOutput(bytes, 'linux'), '');
        if (version === null) return;
        expect(version.length).toBeLessThanOrEqual(VERSION_LIMIT);
        // biome-ignore lint/suspicious/noControlCharactersInRegex: their absence is what is tested.
        expect(version).not.toMatch(/[\u0000-\u001f\u007f-\u009f\uFFFD]/);
        expect(version.isWellFormed()).toBe(true);
        expect(version).toMatch(/\d/);
      }),
    );
  });

  test('the first line that says anything, for an error text', () => {
    expect(firstLine('\n\u001b[31m\u001b[0m\nError: no\nmore')).toBe('Error: no');
    expect(firstLine(' \n')).toBeNull();
  });
});

describe('decodeOutput', () => {
  const wide = new Uint8Array(Buffer.from('1.2.3\r\n', 'utf16le'));
  test('Windows: UTF-16LE by its NULs or its mark; elsewhere a NUL is a NUL', () => {
    expect(decodeOutput(wide, 'win32')).toBe('1.2.3\r\n');
    expect(decodeOutput(new Uint8Array([0xff, 0xfe, ...wide]), 'win32')).toBe('1.2.3\r\n');
    expect(decodeOutput(wide, 'linux')).toContain('\0');
    expect(decodeOutput(new TextEncoder().encode('größe 1.2'), 'win32')).toBe('größe 1.2');
  });
});
