/**
 * How a text is laid out: line ends, indentation, and where a line's content stops. Pure.
 */
import { deleteSpan, normalise, type TextEdit } from './text-edit.ts';
import type { Span } from './tree.ts';

export const BOM = '\ufeff';

/** The start of the line that `offset` is on; a byte order mark is not part of the first line. */
export function lineStart(text: string, offset: number): number {
  const start = text.lastIndexOf('\n', offset - 1) + 1;
  return start === 0 && text.startsWith(BOM) ? Math.min(1, text.length) : start;
}

/** The offset of the line end (`\r\n` or `\n`) behind `offset`, or the end of the text. */
export function lineEnd(text: string, offset: number): number {
  const newline = text.indexOf('\n', offset);
  if (newline === -1) return text.length;
  return newline > offset && text[newline - 1] === '\r' ? newline - 1 : newline;
}

/** The offset of the line end in front of the line that starts at `start`; `start` itself for the first line. */
export function previousLineEnd(text: string, start: number): number {
  if (text[start - 1] !== '\n') return start;
  return text[start - 2] === '\r' ? start - 2 : start - 1;
}

/** The start of the line behind the one that `offset` is on, or the end of the text. */
export function nextLine(text: string, offset: number): number {
  const newline = text.indexOf('\n', offset);
  return newline === -1 ? text.length : newline + 1;
}

/** The line end in use around `offset`: that of the line before it, else of the line behind it, else `\n`. */
export function lineBreakNear(text: string, offset: number): string {
  const before = offset === 0 ? -1 : text.lastIndexOf('\n', offset - 1);
  const newline = before === -1 ? text.indexOf('\n') : before;
  return newline > 0 && text[newline - 1] === '\r' ? '\r\n' : '\n';
}

function blanksAt(text: string, offset: number): string {
  const blanks = /[ \t]*/y;
  blanks.lastIndex = offset;
  return blanks.exec(text)?.[0] ?? '';
}

/** The blanks at the start of the line that `offset` is on. */
export const indentOf = (text: string, offset: number): string => blanksAt(text, lineStart(text, offset));

/** Whether only blanks stand before `offset` on its line. */
export function startsLine(text: string, offset: number): boolean {
  return isBlank(text.slice(lineStart(text, offset), offset));
}

export const isBlank = (text: string): boolean => /^[ \t]*$/.test(text);

/** The offset behind blanks (no line ends). */
export const skipBlanks = (text: string, offset: number): number => offset + blanksAt(text, offset).length;

/** What follows `offset` on its line. */
export interface RestOfLine {
  /** Where the content of the line stops: its line end, the end of the text, or the next value or sign. */
  readonly end: number;
  /** Nothing but blanks and comments up to the line end. */
  readonly closed: boolean;
  readonly hasComment: boolean;
}

export function restOfLine(text: string, offset: number, comments: readonly Span[]): RestOfLine {
  return scanRest(text, offset, comments, false);
}

function scanRest(text: string, offset: number, comments: readonly Span[], hasComment: boolean): RestOfLine {
  const at = skipBlanks(text, offset);
  if (at === lineEnd(text, at)) return { end: at, closed: true, hasComment };
  const comment = comments.find((span) => span.start === at);
  if (comment === undefined) return { end: at, closed: false, hasComment };
  // A comment over several lines does not belong to the line that it begins on.
  if (text.slice(comment.start, comment.end).includes('\n')) return { end: at, closed: false, hasComment };
  return scanRest(text, comment.end, comments, true);
}

/** The whole line or lines of a span, with the last line end, if nothing else stands on them. */
export function wholeLines(text: string, span: Span, comments: readonly Span[]): Span | undefined {
  if (!startsLine(text, span.start)) return undefined;
  const rest = restOfLine(text, span.end, comments);
  if (!rest.closed || rest.hasComment) return undefined;
  return { start: lineStart(text, span.start), end: nextLine(text, rest.end) };
}

/**
 * Deletions of whole lines for a text that does not end in a line end: where they reach its end, the line end
 * before them goes, so that there is again none.
 */
export function keepOpenEnd(text: string, deletions: readonly TextEdit[]): readonly TextEdit[] {
  const sorted = normalise(deletions);
  const last = sorted.at(-1);
  if (last === undefined || text.endsWith('\n') || last.offset + last.length < text.length) return sorted;
  return normalise([...sorted, deleteSpan(previousLineEnd(text, last.offset), last.offset)]);
}

/** 1 for the first line. */
export const lineNumber = (text: string, offset: number): number => text.slice(0, offset).split('\n').length;
