import { oneLine } from '../../runtime/session/text.ts';

/** Longest version that is kept and sent, in UTF-16 units as the server counts (`cli-surface.md` §4). */
export const VERSION_LIMIT = 120;

/** Lines of a version output that are looked at; a program that prints more before its version is no help. */
const LINES_READ = 20;

/**
 * The line of a program's output that names its version, clean and at most 120 characters long; null when no line
 * has a number in it ("lying binaries"). A line with `1.2` is believed before one with any digit, and stdout before
 * stderr, because warnings go there.
 */
export function versionFrom(stdout: string, stderr: string): string | null {
  const lines = [...cleanLines(stdout), ...cleanLines(stderr)];
  return lines.find((line) => /\d+\.\d+/.test(line)) ?? lines.find((line) => /\d/.test(line)) ?? null;
}

/** The first line that says anything, for an error text; null for silence. */
export function firstLine(text: string): string | null {
  return cleanLines(text)[0] ?? null;
}

function cleanLines(text: string): string[] {
  return text.split(/\r\n|\r|\n/, LINES_READ).flatMap((line) => {
    // Bytes that were no UTF-8 have become U+FFFD by now; they say nothing.
    const clean = cut(oneLine(Bun.stripANSI(line.slice(0, 4_096)).replace(/[\0\uFFFD]/g, '')));
    return clean === '' ? [] : [clean];
  });
}

/** Cuts between whole characters, so that no half of a pair is left. */
function cut(line: string): string {
  if (line.length <= VERSION_LIMIT) return line;
  const last = line.codePointAt(VERSION_LIMIT - 1) ?? 0;
  return line.slice(0, last > 0xffff ? VERSION_LIMIT - 1 : VERSION_LIMIT).trimEnd();
}

/**
 * Text of a program's output. Windows' own programs (`wsl.exe`, and what it runs) write UTF-16LE, which shows
 * as a NUL after every other letter.
 */
export function decodeOutput(bytes: Uint8Array, platform: NodeJS.Platform): string {
  const hasMark = bytes[0] === 0xff && bytes[1] === 0xfe;
  const looksWide = bytes.length >= 4 && bytes[1] === 0 && bytes[3] === 0;
  const encoding = platform === 'win32' && (hasMark || looksWide) ? 'utf-16le' : 'utf-8';
  return new TextDecoder(encoding).decode(bytes);
}
