/**
 * Adding to and taking from a list between brackets: JSON objects and arrays, TOML arrays and inline tables,
 * YAML flow collections. They differ in their comments and in how values are printed, not in this. Pure.
 *
 * Comments stay, wherever they stand. A list that has each item on its own line keeps doing so, and one that
 * ends in a comma as well.
 */
import {
  indentOf,
  isBlank,
  lineBreakNear,
  lineEnd,
  lineStart,
  previousLineEnd,
  restOfLine,
  skipBlanks,
  startsLine,
  wholeLines,
} from './layout.ts';
import { deleteSpan, insertAt, type TextEdit } from './text-edit.ts';
import type { Span } from './tree.ts';

export interface BracketItem extends Span {
  /** The offset of the comma behind it. */
  readonly comma: number | undefined;
}

export interface Brackets {
  /** The offset of the opening bracket. */
  readonly open: number;
  /** The offset of the closing bracket. */
  readonly close: number;
  readonly items: readonly BracketItem[];
}

export interface BracketStyle {
  readonly text: string;
  readonly comments: readonly Span[];
  /** One step of indentation. */
  readonly unit: string;
  /** Between two items on one line: `, ` or `,`. */
  readonly separator: string;
  /** Whether an empty list is opened up over several lines to take an item. */
  readonly opensUp: boolean;
}

/** How an item is to be printed: on one line, or over several with this indentation. */
export type ItemLayout =
  | { readonly kind: 'inline' }
  | { readonly kind: 'lines'; readonly indent: string; readonly lineBreak: string };

/** The edits that add an item behind all others. `print` gives the item without indentation of its first line. */
export function addItem(
  list: Brackets,
  style: BracketStyle,
  print: (layout: ItemLayout) => string,
): readonly TextEdit[] {
  const last = list.items.at(-1);
  return last === undefined ? addFirst(list, style, print) : addBehind(list, last, style, print);
}

function addFirst(
  list: Brackets,
  style: BracketStyle,
  print: (layout: ItemLayout) => string,
): readonly TextEdit[] {
  const { text } = style;
  const inner = text.slice(list.open + 1, list.close);
  const outer = indentOf(text, list.open);
  const indent = outer + style.unit;
  const lineBreak = lineBreakNear(text, list.open);
  if (inner.trim() !== '') {
    // Comments live here. On a line of its own the bracket leaves room before it; else the item stands beside it.
    if (!startsLine(text, list.close)) return [insertAt(list.close, ` ${print({ kind: 'inline' })} `)];
    const item = print({ kind: 'lines', indent, lineBreak });
    return [insertAt(lineStart(text, list.close), indent + item + lineBreak)];
  }
  const room = deleteSpan(list.open + 1, list.close);
  if (!style.opensUp && !inner.includes('\n')) {
    const pad = inner === '' ? '' : ' ';
    return [{ ...room, text: pad + print({ kind: 'inline' }) + pad }];
  }
  const item = print({ kind: 'lines', indent, lineBreak });
  return [{ ...room, text: lineBreak + indent + item + lineBreak + outer }];
}

function addBehind(
  list: Brackets,
  last: BracketItem,
  style: BracketStyle,
  print: (layout: ItemLayout) => string,
): readonly TextEdit[] {
  const { text } = style;
  const onOwnLine = startsLine(text, last.start) && lineStart(text, last.start) > list.open;
  const end = last.comma === undefined ? last.end : last.comma + 1;
  const tail = last.comma === undefined ? '' : ',';
  if (!onOwnLine) {
    const lead = last.comma === undefined ? style.separator : style.separator.slice(1);
    return [insertAt(end, lead + print({ kind: 'inline' }) + tail)];
  }
  const indent = indentOf(text, last.start);
  const lineBreak = lineBreakNear(text, last.start);
  const item = lineBreak + indent + print({ kind: 'lines', indent, lineBreak }) + tail;
  const rest = restOfLine(text, end, style.comments);
  const at = rest.closed ? rest.end : end;
  if (last.comma !== undefined) return [insertAt(at, item)];
  return at === last.end ? [insertAt(at, `,${item}`)] : [insertAt(last.end, ','), insertAt(at, item)];
}

/** The edits that take out the item at `index`, with a comma that it no longer needs. */
export function removeItem(list: Brackets, index: number, style: BracketStyle): readonly TextEdit[] {
  const item = list.items[index];
  if (item === undefined) return [];
  const { text, comments } = style;
  if (list.items.length === 1) {
    const inner = { start: list.open + 1, end: list.close };
    const foreign = comments.some(
      (span) => isInside(span, inner) && !isInside(span, { start: item.start, end: item.end }),
    );
    if (!foreign) return [deleteSpan(inner.start, inner.end)];
  }
  const before = list.items[index - 1];
  const freesComma = item.comma === undefined && before?.comma !== undefined;
  return [
    ...(freesComma && before?.comma !== undefined ? dropComma(text, before.comma, item.start) : []),
    ...dropItem(item, style, freesComma),
  ];
}

/** The comma before the last item, and with it the blanks up to that item if it stands on the same line. */
function dropComma(text: string, comma: number, next: number): readonly TextEdit[] {
  const gap = text.slice(comma + 1, next);
  return [deleteSpan(comma, isBlank(gap) ? next : comma + 1)];
}

function dropItem(item: BracketItem, style: BracketStyle, isLast: boolean): readonly TextEdit[] {
  const { text, comments } = style;
  const end = item.comma === undefined ? item.end : item.comma + 1;
  const gap = item.comma === undefined ? '' : text.slice(item.end, item.comma);
  if (gap.trim() !== '') return [deleteSpan(item.start, item.end), deleteSpan(end - 1, end)];
  const lines = wholeLines(text, { start: item.start, end }, comments);
  // The last line goes with the line end before it: the one behind it belongs to the closing bracket.
  if (lines !== undefined && lines.end > end) {
    if (!isLast) return [deleteSpan(lines.start, lines.end)];
    return [deleteSpan(previousLineEnd(text, lines.start), lineEnd(text, end))];
  }
  const stop = item.comma === undefined ? end : skipBlanks(text, end);
  const atLineEnd = stop === lineEnd(text, stop);
  return [deleteSpan(item.start, atLineEnd ? end : stop)];
}

const isInside = (inner: Span, outer: Span): boolean => inner.start >= outer.start && inner.end <= outer.end;
