/** Reads JSON, JSONC and JSON5 into a tree with places. Pure. */
import type { BracketItem, Brackets } from '../brackets.ts';
import { type Data, Verbatim, wholeNumber } from '../data.ts';
import { DEPTH_READ, TOO_DEEP, type Unreadable } from '../document.ts';
import { lineNumber } from '../layout.ts';
import type { Slot, Span, TreeArray, TreeEntry, TreeObject, TreeScalar } from '../tree.ts';
import { type Dialect, lex, stringValue, type Token } from './lexer.ts';

export type JsonNode = JsonObject | JsonArray | JsonScalar;

export interface JsonScalar extends TreeScalar, Span {}

export interface JsonSlot extends Slot {
  readonly value: JsonNode;
}

export interface JsonArray extends TreeArray, Span {
  readonly items: readonly JsonSlot[];
  readonly list: Brackets;
}

export interface JsonEntry extends TreeEntry {
  readonly value: JsonNode;
  readonly keySpan: Span;
  readonly colon: number;
}

export interface JsonObject extends TreeObject, Span {
  readonly entries: readonly JsonEntry[];
  readonly list: Brackets;
}

export interface JsonReading {
  readonly kind: 'read';
  /** `undefined` for a text of blanks and comments only. */
  readonly root: JsonObject | undefined;
  readonly comments: readonly Span[];
}

const RANK: Readonly<Record<Dialect, number>> = { json: 0, jsonc: 1, json5: 2 };

/** Reads a text that may use at most `dialect`. */
export function readJson(text: string, dialect: Dialect): JsonReading | Unreadable {
  const { tokens, comments, stuckAt, oddSpaceAt } = lex(text);
  try {
    if (stuckAt !== undefined) throw new Problem('invalid', 'has a character that does not belong', stuckAt);
    const parser = new Parser(tokens, text.length);
    const root = tokens.length === 0 ? undefined : parser.whole();
    const beyond = [
      ...parser.beyond,
      ...comments.slice(0, 1).map((span) => wider('jsonc', 'a comment', span.start)),
    ];
    if (oddSpaceAt !== undefined) beyond.push(wider('json5', 'an unusual space', oddSpaceAt));
    const first = beyond.filter((use) => RANK[use.dialect] > RANK[dialect]).sort((a, b) => a.at - b.at)[0];
    if (first !== undefined)
      throw new Problem('dialect', `has ${first.what}, which is not strict JSON`, first.at);
    if (root !== undefined && root.kind !== 'object') throw new Problem('shape', 'is not an object', 0);
    return { kind: 'read', root, comments };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return { kind: 'unreadable', code: error.code, message: error.message, line: lineNumber(text, error.at) };
  }
}

/** Something that strict JSON does not have. */
interface Use {
  readonly dialect: Dialect;
  readonly what: string;
  readonly at: number;
}

const wider = (dialect: Dialect, what: string, at: number): Use => ({ dialect, what, at });

class Problem extends Error {
  readonly code: Unreadable['code'];
  readonly at: number;

  constructor(code: Unreadable['code'], message: string, at: number) {
    super(message);
    this.code = code;
    this.at = at;
  }
}

class Parser {
  readonly beyond: Use[] = [];
  private readonly tokens: readonly Token[];
  private readonly end: number;
  private position = 0;

  constructor(tokens: readonly Token[], end: number) {
    this.tokens = tokens;
    this.end = end;
  }

  whole(): JsonNode {
    const node = this.value(0);
    const extra = this.tokens[this.position];
    if (extra !== undefined) throw new Problem('invalid', 'has something behind its end', extra.start);
    return node;
  }

  private value(depth: number): JsonNode {
    const token = this.next();
    if (depth > DEPTH_READ) throw new Problem(TOO_DEEP.code, TOO_DEEP.message, token.start);
    if (token.source === '{') return this.object(token, depth);
    if (token.source === '[') return this.array(token, depth);
    if (token.kind === 'sign') throw new Problem('invalid', 'lacks a value', token.start);
    return {
      kind: 'scalar',
      start: token.start,
      end: token.end,
      source: token.source,
      value: this.scalar(token),
    };
  }

  private object(open: Token, depth: number): JsonObject {
    const entries: JsonEntry[] = [];
    const { list, end } = this.items(open, '}', () => {
      const keyToken = this.next();
      const key = this.key(keyToken);
      const colon = this.next();
      if (colon.source !== ':') throw new Problem('invalid', 'lacks a colon behind a key', colon.start);
      const value = this.value(depth + 1);
      const span = { start: keyToken.start, end: value.end };
      entries.push({
        key,
        keySource: keyToken.source,
        keySpan: { start: keyToken.start, end: keyToken.end },
        colon: colon.start,
        value,
        spans: [span],
      });
      return span;
    });
    return { kind: 'object', start: open.start, end, entries, list };
  }

  private array(open: Token, depth: number): JsonArray {
    const items: JsonSlot[] = [];
    const { list, end } = this.items(open, ']', () => {
      const value = this.value(depth + 1);
      const span = { start: value.start, end: value.end };
      items.push({ value, spans: [span] });
      return span;
    });
    return { kind: 'array', start: open.start, end, items, list };
  }

  private items(open: Token, closing: string, read: () => Span): { list: Brackets; end: number } {
    const items: BracketItem[] = [];
    while (this.peek()?.source !== closing) {
      const span = read();
      const separator = this.peek();
      const comma = separator?.source === ',' ? this.next().start : undefined;
      items.push({ ...span, comma });
      if (comma !== undefined) {
        if (this.peek()?.source === closing)
          this.beyond.push(wider('jsonc', 'a comma behind the last item', comma));
      } else if (separator?.source !== closing) {
        throw new Problem('invalid', 'lacks a comma or a closing bracket', separator?.start ?? this.end);
      }
    }
    const close = this.next();
    return { list: { open: open.start, close: close.start, items }, end: close.end };
  }

  private key(token: Token): string {
    if (token.kind === 'string') return this.string(token);
    if (token.kind === 'word') {
      this.beyond.push(wider('json5', 'a key without quotes', token.start));
      return token.source;
    }
    // JSON5 reads `Infinity` and `NaN` as names where a key stands.
    if (token.kind === 'number' && /^(?:Infinity|NaN)$/.test(token.source)) {
      this.beyond.push(wider('json5', 'a key without quotes', token.start));
      return token.source;
    }
    throw new Problem('invalid', 'lacks a key', token.start);
  }

  private string(token: Token): string {
    const value = stringValue(token);
    if (value === undefined) throw new Problem('invalid', 'has a text with an unknown escape', token.start);
    if (token.dialect !== 'json') this.beyond.push(wider('json5', 'a text in another notation', token.start));
    return value;
  }

  private scalar(token: Token): Data {
    if (token.kind === 'string') return this.string(token);
    if (token.kind === 'number') {
      if (token.dialect !== 'json')
        this.beyond.push(wider('json5', 'a number in another notation', token.start));
      return numberOf(token.source);
    }
    if (token.source === 'null') return null;
    if (token.source === 'true' || token.source === 'false') return token.source === 'true';
    throw new Problem('invalid', 'has a word where a value is due', token.start);
  }

  private peek(): Token | undefined {
    return this.tokens[this.position];
  }

  private next(): Token {
    const token = this.tokens[this.position];
    if (token === undefined) throw new Problem('invalid', 'ends too early', this.end);
    this.position += 1;
    return token;
  }
}

function numberOf(source: string): Data {
  if (/^-?\d+$/.test(source)) return wholeNumber(BigInt(source));
  if (/Infinity|NaN/.test(source)) return new Verbatim(source);
  if (!/0[xX]/.test(source)) return Number(source);
  const size = BigInt(source.replace(/^[+-]/, ''));
  return wholeNumber(source.startsWith('-') ? -size : size);
}
