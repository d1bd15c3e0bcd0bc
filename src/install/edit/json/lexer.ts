/**
 * Splits JSON, JSONC and JSON5 into tokens with their places. Pure.
 *
 * Our own, and not `jsonc-parser`, since that one has no words for JSON5 (OpenClaw's unquoted keys, single
 * quotes, hexadecimal numbers): see `docs/decisions/0012-editing-core.md`.
 */
import type { Span } from '../tree.ts';

/** What a text uses beyond strict JSON, narrowest first. */
export type Dialect = 'json' | 'jsonc' | 'json5';

export interface Token extends Span {
  readonly kind: 'sign' | 'string' | 'number' | 'word';
  readonly source: string;
  /** The narrowest dialect that has this token. */
  readonly dialect: Dialect;
}

export interface Lexed {
  readonly tokens: readonly Token[];
  readonly comments: readonly Span[];
  /** The first offset that no token begins at; `undefined` if all was read. */
  readonly stuckAt: number | undefined;
  /** The first white space that only JSON5 has. */
  readonly oddSpaceAt: number | undefined;
}

// A string may hold any character but a bare line end; JSON5 also lets a backslash continue it on the next line.
const RULES = [
  ['space', /[\t\n\r ]+/uy],
  ['oddSpace', /[\v\f\u00a0\ufeff\u2028\u2029\p{Zs}]+/uy],
  ['comment', /\/\/[^\n\r\u2028\u2029]*|\/\*[\s\S]*?\*\//uy],
  ['sign', /[{}[\]:,]/uy],
  [
    'string',
    /"[^"\\\n\r]*(?:\\(?:\r\n|[\s\S])[^"\\\n\r]*)*"|'[^'\\\n\r]*(?:\\(?:\r\n|[\s\S])[^'\\\n\r]*)*'/uy,
  ],
  [
    'number',
    /[+-]?(?:0[xX][0-9a-fA-F]+|(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|Infinity\b|NaN\b)/uy,
  ],
  ['word', /[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*/uy],
] as const;

const STRICT_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const STRICT_WORD = /^(?:true|false|null)$/;

export function lex(text: string): Lexed {
  const tokens: Token[] = [];
  const comments: Span[] = [];
  const odd: number[] = [];
  const begin = text.startsWith('\ufeff') ? 1 : 0;
  for (let at = begin; at < text.length; ) {
    const found = match(text, at);
    if (found === undefined) return { tokens, comments, stuckAt: at, oddSpaceAt: odd[0] };
    const end = at + found.source.length;
    if (found.rule === 'comment') comments.push({ start: at, end });
    if (found.rule === 'oddSpace') odd.push(at);
    if (found.rule !== 'comment' && found.rule !== 'oddSpace' && found.rule !== 'space') {
      const { rule: kind, source } = found;
      tokens.push({ kind, source, start: at, end, dialect: dialectOf(kind, source) });
    }
    at = end;
  }
  return { tokens, comments, stuckAt: undefined, oddSpaceAt: odd[0] };
}

function match(text: string, at: number) {
  for (const [rule, pattern] of RULES) {
    pattern.lastIndex = at;
    const source = pattern.exec(text)?.[0];
    if (source) return { rule, source };
  }
  return undefined;
}

function dialectOf(kind: Token['kind'], source: string): Dialect {
  if (kind === 'sign') return 'json';
  if (kind === 'number') return STRICT_NUMBER.test(source) ? 'json' : 'json5';
  if (kind === 'word') return STRICT_WORD.test(source) ? 'json' : 'json5';
  try {
    JSON.parse(source);
    return 'json';
  } catch {
    // A string that strict JSON refuses: single quotes, an escape or a control character of JSON5.
    return 'json5';
  }
}

const ESCAPES: Readonly<Record<string, string>> = {
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '0': '\0',
  '\r\n': '',
  '\n': '',
  '\r': '',
  '\u2028': '',
  '\u2029': '',
};

/** The text of a string token; `undefined` for an escape that no dialect has. */
export function stringValue(token: Token): string | undefined {
  if (token.dialect === 'json') return String(JSON.parse(token.source));
  const inner = token.source.slice(1, -1);
  if (/\\(?:x(?![0-9a-fA-F]{2})|u(?![0-9a-fA-F]{4})|[1-9]|0\d)/.test(inner.replaceAll('\\\\', '')))
    return undefined;
  return inner.replace(
    /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(\r\n|[\s\S]))/gu,
    (_, hex2, hex4, other) => {
      const hex: string | undefined = hex2 ?? hex4;
      return hex === undefined ? (ESCAPES[other] ?? other) : String.fromCharCode(Number.parseInt(hex, 16));
    },
  );
}
