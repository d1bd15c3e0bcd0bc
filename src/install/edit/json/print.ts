/** Prints values as JSON, in the layout of the file that they go into. Pure. */
import type { ItemLayout } from '../brackets.ts';
import { type Data, isArray, isObject, Verbatim } from '../data.ts';

export interface JsonSpacing {
  /** One step of indentation. */
  readonly unit: string;
  /** Between a key and its value. */
  readonly colon: string;
  /** Between two items on one line. */
  readonly separator: string;
}

/** Prints a value; the first line without indentation. `undefined` for what JSON has no word for. */
export function printJson(value: Data, layout: ItemLayout, spacing: JsonSpacing): string | undefined {
  if (isArray(value)) {
    return list(
      '[',
      ']',
      value.map((item) => printJson(item, deeper(layout, spacing), spacing)),
      layout,
      spacing,
    );
  }
  if (isObject(value)) {
    const entries = Object.entries(value).map(([key, item]) =>
      printEntry(key, item, deeper(layout, spacing), spacing),
    );
    return list('{', '}', entries, layout, spacing);
  }
  if (value instanceof Verbatim) return undefined;
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'number' && !Number.isFinite(value)) return undefined;
  return JSON.stringify(value);
}

export function printEntry(
  key: string,
  value: Data,
  layout: ItemLayout,
  spacing: JsonSpacing,
): string | undefined {
  const printed = printJson(value, layout, spacing);
  return printed === undefined ? undefined : JSON.stringify(key) + spacing.colon + printed;
}

function list(
  open: string,
  close: string,
  items: readonly (string | undefined)[],
  layout: ItemLayout,
  spacing: JsonSpacing,
): string | undefined {
  if (items.includes(undefined)) return undefined;
  if (items.length === 0) return open + close;
  if (layout.kind === 'inline') return open + items.join(spacing.separator) + close;
  const { indent, lineBreak } = layout;
  const lead = lineBreak + indent + spacing.unit;
  return open + lead + items.join(`,${lead}`) + lineBreak + indent + close;
}

const deeper = (layout: ItemLayout, spacing: JsonSpacing): ItemLayout =>
  layout.kind === 'inline' ? layout : { ...layout, indent: layout.indent + spacing.unit };
