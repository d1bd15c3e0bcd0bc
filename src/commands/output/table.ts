import { clip } from '../../runtime/session/text.ts';
import type { Paint, Style } from './style.ts';
import { paint } from './style.ts';

export interface Column {
  readonly head: string;
  /** Narrowest useful width; a column that may not shrink has none. */
  readonly shrinkTo?: number;
  readonly align?: 'right';
}

export interface Cell {
  readonly text: string;
  readonly look?: Paint;
}

const GAP = 2;

/** Columns a text takes on a terminal (wide characters count two, O4). */
export function width(text: string): number {
  return Bun.stringWidth(text);
}

/** Cuts to at most `limit` terminal columns, never inside a grapheme. */
export function fit(text: string, limit: number): string {
  if (width(text) <= limit) return text;
  // A grapheme is at most two columns wide, so fewer and fewer graphemes are tried until they fit.
  for (let count = limit; count > 0; count -= 1) {
    const candidate = clip(text, count);
    if (width(candidate) <= limit) return candidate;
  }
  return '';
}

/** An aligned table; on a terminal too narrow for it the columns that may shrink do, the last first. */
export function table(style: Style, columns: readonly Column[], rows: readonly (readonly Cell[])[]): string {
  const natural = columns.map((column, i) =>
    Math.max(width(column.head), ...rows.map((row) => width(row[i]?.text ?? ''))),
  );
  const widths = shrink(columns, natural, style.columns);
  const head = columns.map((column, i) =>
    paint(style, 'dim', pad(column.head, widths[i] ?? 0, column.align)),
  );
  const lines = rows.map((row) =>
    row.map((cell, i) => {
      const text = pad(fit(cell.text, widths[i] ?? 0), widths[i] ?? 0, columns[i]?.align);
      return cell.look ? paint(style, cell.look, text) : text;
    }),
  );
  return [head, ...lines].map((cells) => cells.join(' '.repeat(GAP)).trimEnd()).join('\n');
}

function pad(text: string, to: number, align: 'right' | undefined): string {
  const space = ' '.repeat(Math.max(0, to - width(text)));
  return align === 'right' ? space + text : text + space;
}

function shrink(
  columns: readonly Column[],
  natural: readonly number[],
  limit: number | undefined,
): readonly number[] {
  if (limit === undefined) return natural;
  const widths = [...natural];
  const total = () => widths.reduce((sum, w) => sum + w, 0) + GAP * (widths.length - 1);
  for (let i = columns.length - 1; i >= 0 && total() > limit; i -= 1) {
    const floor = columns[i]?.shrinkTo;
    if (floor === undefined) continue;
    widths[i] = Math.max(Math.min(floor, natural[i] ?? 0), (widths[i] ?? 0) - (total() - limit));
  }
  return widths;
}
