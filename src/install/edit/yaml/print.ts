/** Prints values as YAML that 1.1 and 1.2 readers agree on. Pure. */
import { type Data, isArray, isEmpty, isObject, Verbatim } from '../data.ts';

export interface YamlSpacing {
  /** One step of indentation. */
  readonly unit: string;
  /** Whether the dashes of a list stand below the first letter of its key, or further in. */
  readonly dashesIn: boolean;
}

/** A value on one line; `undefined` for what cannot be written. */
export function printFlow(value: Data): string | undefined {
  if (typeof value === 'string') return printText(value);
  if (value instanceof Verbatim) return value.source;
  if (isArray(value)) return join(value.map(printFlow), '[', ']');
  if (isObject(value)) {
    const pairs = Object.entries(value).map(([key, item]) => {
      const printed = printFlow(item);
      return printed === undefined ? undefined : `${printText(key)}: ${printed}`;
    });
    return join(pairs, '{', '}');
  }
  if (typeof value === 'number' && !Number.isFinite(value)) return undefined;
  return String(value);
}

/** The lines of `key: value`, each with its indentation. The value must be one that {@link printFlow} prints. */
export function printPair(key: string, value: Data, indent: string, spacing: YamlSpacing): readonly string[] {
  const name = `${indent}${printText(key)}:`;
  if (isEmpty(value) || !(isArray(value) || isObject(value))) return [`${name} ${printFlow(value)}`];
  if (isObject(value)) return [name, ...printPairs(value, indent + spacing.unit, spacing)];
  const dashes = spacing.dashesIn ? indent + spacing.unit : indent;
  return [name, ...value.flatMap((item) => printItem(item, dashes, spacing))];
}

/** The lines of `- value`. */
export function printItem(value: Data, indent: string, spacing: YamlSpacing): readonly string[] {
  if (!isObject(value) || isEmpty(value)) return [`${indent}- ${printFlow(value)}`];
  const [first = '', ...rest] = printPairs(value, `${indent}  `, spacing);
  return [`${indent}- ${first.trimStart()}`, ...rest];
}

export function printPairs(value: Data, indent: string, spacing: YamlSpacing): readonly string[] {
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, item]) => printPair(key, item, indent, spacing));
}

// YAML 1.1 reads these words as true, false or nothing.
const WORDS = /^(?:y|n|yes|no|on|off|true|false|null)$/i;

function printText(text: string): string {
  if (/^[A-Za-z_][\w./-]*$/.test(text) && !WORDS.test(text)) return text;
  // JSON's text is YAML's double-quoted one, but for these, which YAML would fold, hide or refuse.
  return JSON.stringify(text).replace(
    /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function join(parts: readonly (string | undefined)[], open: string, close: string): string | undefined {
  return parts.includes(undefined) ? undefined : open + parts.join(', ') + close;
}
