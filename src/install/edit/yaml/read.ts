/**
 * Reads YAML into a tree with places. Pure.
 *
 * The parser is `yaml`: it knows anchors, block scalars, tags and comments. Keys are not checked for being
 * unique (PyYAML, which Hermes uses, takes the last), and `<<` is a key like any other.
 */
import {
  type Alias,
  type CST,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  parseAllDocuments,
  type Scalar,
  visit,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';
import type { BracketItem, Brackets } from '../brackets.ts';
import { type Data, Verbatim, wholeNumber } from '../data.ts';
import { DEPTH_READ, TOO_DEEP, type Unreadable } from '../document.ts';
import { lineNumber, previousLineEnd } from '../layout.ts';
import {
  dataOf,
  depthOf,
  type Slot,
  type Span,
  type TreeArray,
  type TreeEntry,
  type TreeObject,
  type TreeScalar,
} from '../tree.ts';
import { commentsOf } from './comments.ts';

export type YamlNode = YamlMap | YamlSeq | YamlScalar;

/** What each node also has. */
interface Marked extends Span {
  /** Why the node, and what is in it, is not changed: it has a tag, or an alias repeats it elsewhere. */
  readonly fixed: string | undefined;
}

export interface YamlScalar extends TreeScalar, Marked {
  readonly style: 'plain' | 'block' | 'alias' | 'empty';
}

/** `column` is where the keys or dashes of a block collection stand. */
export type YamlShape =
  | { readonly kind: 'block'; readonly column: number }
  | { readonly kind: 'flow'; readonly list: Brackets };

export interface YamlSlot extends Slot, Span {
  readonly value: YamlNode;
  /** Behind the colon or the dash, and behind an anchor that follows it. */
  readonly separatorEnd: number;
}

export interface YamlEntry extends YamlSlot, TreeEntry {
  readonly value: YamlNode;
}

export interface YamlMap extends TreeObject, Marked {
  readonly entries: readonly YamlEntry[];
  readonly shape: YamlShape;
}

export interface YamlSeq extends TreeArray, Marked {
  readonly items: readonly YamlSlot[];
  readonly shape: YamlShape;
}

export interface YamlReading {
  readonly kind: 'read';
  /** `undefined` for a text without content. */
  readonly root: YamlMap | undefined;
  readonly comments: readonly Span[];
}

/** How many values a file may come to with its aliases filled in; more is an attack, not a configuration. */
const VALUES_READ = 100_000;

export function readYaml(text: string): YamlReading | Unreadable {
  try {
    const documents = [
      ...parseAllDocuments(text, { keepSourceTokens: true, intAsBigInt: true, uniqueKeys: false }),
    ];
    const [error] = documents.flatMap((one) => one.errors);
    if (error !== undefined)
      return unreadable('invalid', 'is not valid YAML', lineNumber(text, error.pos[0]));
    const [document, second] = documents;
    if (second !== undefined) {
      return unreadable('documents', 'has more than one document', lineNumber(text, second.range[0]));
    }
    const root = document?.contents ? new Reader(text, document).node(document.contents) : undefined;
    const comments = commentsOf(text);
    if (root === undefined || (root.kind === 'scalar' && root.style === 'empty')) {
      return { kind: 'read', root: undefined, comments };
    }
    if (root.kind !== 'object') return unreadable('shape', 'is not a map of keys');
    return depthOf(root) > DEPTH_READ ? TOO_DEEP : { kind: 'read', root, comments };
  } catch (problem) {
    if (problem instanceof RangeError) return TOO_DEEP;
    if (!(problem instanceof TooMuch)) throw problem;
    return unreadable('invalid', 'has aliases that contain themselves or grow too large');
  }
}

const unreadable = (code: Unreadable['code'], message: string, line?: number): Unreadable => ({
  kind: 'unreadable',
  code,
  message,
  ...(line === undefined ? {} : { line }),
});

class TooMuch extends Error {}

class Reader {
  private readonly text: string;
  private readonly document: Document;
  private readonly built = new Map<Node, YamlNode>();
  private readonly open = new Set<Node>();
  private readonly weights = new Map<YamlNode, number>();
  /** The anchors that aliases name. */
  private readonly repeated = new Set<string>();

  constructor(text: string, document: Document) {
    this.text = text;
    this.document = document;
    visit(document, { Alias: (_, alias) => void this.repeated.add(alias.source) });
  }

  node(node: Node): YamlNode {
    const known = this.built.get(node);
    if (known !== undefined) return known;
    if (this.open.has(node)) throw new TooMuch();
    this.open.add(node);
    const result = this.build(node);
    this.open.delete(node);
    this.built.set(node, result);
    return result;
  }

  private build(node: Node): YamlNode {
    if (isAlias(node)) return this.alias(node);
    if (isMap(node)) return this.map(node);
    if (isSeq(node)) return this.seq(node);
    return isScalar(node) ? this.scalar(node) : this.nothing(this.text.length);
  }

  private alias(node: Alias): YamlScalar {
    const target = node.resolve(this.document);
    const built = target === undefined ? undefined : this.node(target);
    const span = this.span(node);
    const scalar: YamlScalar = {
      kind: 'scalar',
      style: 'alias',
      value: built === undefined ? null : dataOf(built),
      source: this.slice(span),
      fixed: undefined,
      ...span,
    };
    return this.weighed(scalar, built === undefined ? 1 : (this.weights.get(built) ?? 1));
  }

  private map(node: YAMLMap): YamlMap {
    const entries = node.items.map((pair) => this.entry(pair));
    const shape = this.shape(node, entries);
    const weight = entries.reduce((sum, entry) => sum + (this.weights.get(entry.value) ?? 1), 1);
    const start = entries[0]?.start ?? 0;
    const end = entries.at(-1)?.end ?? 0;
    const span = shape.kind === 'flow' ? this.span(node) : { start, end };
    return this.weighed({ kind: 'object', entries, shape, fixed: this.fixed(node), ...span }, weight);
  }

  private seq(node: YAMLSeq): YamlSeq {
    const tokens = node.srcToken?.type === 'block-seq' ? node.srcToken.items : [];
    const items = node.items.map((item, index) => this.item(item, tokens[index]));
    const shape = this.shape(node, items);
    const weight = items.reduce((sum, item) => sum + (this.weights.get(item.value) ?? 1), 1);
    const span =
      shape.kind === 'flow' ? this.span(node) : { start: items[0]?.start ?? 0, end: items.at(-1)?.end ?? 0 };
    return this.weighed({ kind: 'array', items, shape, fixed: this.fixed(node), ...span }, weight);
  }

  private entry(pair: Pair): YamlEntry {
    const token = pair.srcToken;
    const key = toNode(pair.key);
    const keySpan = key === undefined ? undefined : this.span(key);
    const mark = token?.start.find((one) => KEY_MARKS.has(one.type))?.offset;
    const colon = endBehind(token?.sep, 'map-value-ind');
    const start = Math.min(mark ?? this.text.length, keySpan?.start ?? (colon ?? 1) - 1);
    const separatorEnd = colon ?? keySpan?.end ?? start;
    const keySource = this.slice({ start, end: keySpan?.end ?? start });
    const name = isScalar(key) ? String(key.value ?? '') : keySource;
    return { key: name, keySource, ...this.slot(pair.value, start, separatorEnd) };
  }

  private item(item: unknown, token: CST.CollectionItem | undefined): YamlSlot {
    const dash = token?.start.find((one) => one.type === 'seq-item-ind')?.offset;
    const node = toNode(item);
    const start = dash ?? (node === undefined ? 0 : this.span(node).start);
    return this.slot(item, start, endBehind(token?.start, 'seq-item-ind') ?? start);
  }

  private slot(content: unknown, start: number, separatorEnd: number): YamlSlot {
    const node = toNode(content);
    const value = node === undefined ? this.nothing(separatorEnd) : this.node(node);
    // The parser places an empty value behind the comments that follow.
    const isEmpty = value.kind === 'scalar' && value.style === 'empty';
    const end = isEmpty ? separatorEnd : Math.max(separatorEnd, this.endOf(value));
    return { value, spans: [{ start, end }], start, end, separatorEnd };
  }

  private scalar(node: Scalar): YamlScalar {
    const span = this.span(node);
    const source = this.slice(span);
    const style =
      source === '' ? 'empty' : /^[|>]/.test(source) && node.type?.startsWith('BLOCK') ? 'block' : 'plain';
    return this.weighed(
      {
        kind: 'scalar',
        style,
        value: scalarData(node.value, source),
        source,
        fixed: this.fixed(node),
        ...span,
      },
      1,
    );
  }

  private nothing(at: number): YamlScalar {
    return { kind: 'scalar', style: 'empty', value: null, source: '', fixed: undefined, start: at, end: at };
  }

  private fixed(node: Scalar | YAMLMap | YAMLSeq): string | undefined {
    if (node.tag !== undefined) return 'has a tag';
    // `[a: 1]`: a map of one key inside a list.
    if (!isScalar(node) && node.srcToken === undefined) return 'has no braces of its own';
    const isRepeated = node.anchor !== undefined && this.repeated.has(node.anchor);
    return isRepeated ? 'is repeated elsewhere by an alias' : undefined;
  }

  private shape(node: YAMLMap | YAMLSeq, items: readonly Span[]): YamlShape {
    const token: CST.Token | undefined = node.srcToken;
    if (token?.type === 'block-map' || token?.type === 'block-seq') {
      return { kind: 'block', column: token.indent };
    }
    const { start, end } = this.span(node);
    const places = items.map(
      (item): BracketItem => ({ start: item.start, end: item.end, comma: this.comma(item.end) }),
    );
    return { kind: 'flow', list: { open: start, close: end - 1, items: places } };
  }

  private comma(end: number): number | undefined {
    const comma = /(?:[ \t\r\n]|#[^\n]*)*,/y;
    comma.lastIndex = end;
    return comma.exec(this.text) === null ? undefined : comma.lastIndex - 1;
  }

  /** The end of the last line of a value; a block scalar brings the line end behind it along. */
  private endOf(node: YamlNode): number {
    if (node.kind !== 'scalar' || node.style !== 'block') return node.end;
    return this.text[node.end - 1] === '\n' ? previousLineEnd(this.text, node.end) : node.end;
  }

  private weighed<T extends YamlNode>(node: T, weight: number): T {
    if (weight > VALUES_READ) throw new TooMuch();
    this.weights.set(node, weight);
    return node;
  }

  private span(node: Node): Span {
    const [start, end] = node.range ?? [this.text.length, this.text.length];
    return { start, end };
  }

  private slice(span: Span): string {
    return this.text.slice(span.start, span.end);
  }
}

const KEY_MARKS: ReadonlySet<string> = new Set(['explicit-key-ind', 'anchor', 'tag']);
const VALUE_MARKS: ReadonlySet<string> = new Set(['map-value-ind', 'seq-item-ind', 'anchor', 'tag']);

/** Behind the colon or dash, and what marks the value (an anchor, a tag). */
function endBehind(
  tokens: readonly CST.SourceToken[] | undefined,
  type: 'map-value-ind' | 'seq-item-ind',
): number | undefined {
  const at = tokens?.findIndex((token) => token.type === type) ?? -1;
  const marks = at === -1 ? [] : (tokens ?? []).slice(at).filter((token) => VALUE_MARKS.has(token.type));
  const last = marks.at(-1);
  return last === undefined ? undefined : last.offset + last.source.length;
}

function toNode(value: unknown): Node | undefined {
  return isAlias(value) || isMap(value) || isSeq(value) || isScalar(value) ? value : undefined;
}

function scalarData(value: unknown, source: string): Data {
  if (typeof value === 'bigint') return wholeNumber(value);
  if (typeof value === 'number') return Number.isFinite(value) ? value : new Verbatim(source);
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value;
  return new Verbatim(source);
}
