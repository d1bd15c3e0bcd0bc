/** Prints values as TOML 1.0. Pure. */
import { type Data, type DataObject, isArray, isObject, Verbatim } from '../data.ts';

/** A value on one line; `undefined` for what TOML has no word for (`null`, text with half a character). */
export function printInline(value: Data): string | undefined {
  if (value === null) return undefined;
  if (typeof value === 'string') return printText(value);
  if (value instanceof Verbatim) return value.source;
  if (isArray(value)) return join(value.map(printInline), '[', ']', '');
  if (isObject(value)) {
    return join(
      Object.entries(value).map(([key, item]) => printLine([key], item)),
      '{',
      '}',
      ' ',
    );
  }
  if (typeof value === 'number' && !Number.isFinite(value)) return undefined;
  return String(value);
}

/** `key = value`, with a dotted key for several. */
export function printLine(keys: readonly string[], value: Data): string | undefined {
  const name = printKeys(keys);
  const printed = printInline(value);
  return name === undefined || printed === undefined ? undefined : `${name} = ${printed}`;
}

/** Whether a value gets headers of its own where headers can stand. */
export function hasSections(value: Data): boolean {
  return isObject(value) || (isArray(value) && value.length > 0 && value.every(isObject));
}

/** The lines of a value under headers: `[path]`, or one `[[path]]` for each object of an array. */
export function printSections(path: readonly string[], value: Data): readonly string[] | undefined {
  if (isArray(value))
    return spaced(value.map((item) => (isObject(item) ? printTable(path, item, true) : undefined)));
  return isObject(value) ? printTable(path, value, false) : undefined;
}

/** The lines of one table, and of those below it. */
export function printTable(
  path: readonly string[],
  table: DataObject,
  isItem: boolean,
): readonly string[] | undefined {
  const entries = Object.entries(table);
  const lines = entries
    .filter(([, value]) => !hasSections(value))
    .map(([key, value]) => printLine([key], value));
  const below = entries.filter(([, value]) => hasSections(value));
  const name = printKeys(path);
  if (name === undefined || !allPrinted(lines)) return undefined;
  const needsHeader = isItem || lines.length > 0 || below.length === 0;
  const own = needsHeader ? [[isItem ? `[[${name}]]` : `[${name}]`, ...lines]] : [];
  return spaced([...own, ...below.map(([key, value]) => printSections([...path, key], value))]);
}

function spaced(parts: readonly (readonly string[] | undefined)[]): readonly string[] | undefined {
  if (!allPrinted(parts)) return undefined;
  return parts.flatMap((part, index) => (index === 0 ? part : ['', ...part]));
}

function printKeys(keys: readonly string[]): string | undefined {
  const printed = keys.map((key) => (/^[A-Za-z0-9_-]+$/.test(key) ? key : printText(key)));
  return allPrinted(printed) ? printed.join('.') : undefined;
}

function printText(text: string): string | undefined {
  return text.isWellFormed() ? JSON.stringify(text).replaceAll('\u007f', '\\u007f') : undefined;
}

function join(
  parts: readonly (string | undefined)[],
  open: string,
  close: string,
  pad: string,
): string | undefined {
  if (!allPrinted(parts)) return undefined;
  return parts.length === 0 ? open + close : open + pad + parts.join(', ') + pad + close;
}

const allPrinted = <T>(parts: readonly (T | undefined)[]): parts is readonly T[] =>
  !parts.includes(undefined);
