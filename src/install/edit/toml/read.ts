/**
 * Reads TOML into one logical tree: a table that is written in several places (headers, dotted keys, inline)
 * is one node that knows them all. Pure.
 *
 * The parser is `toml-eslint-parser`: it gives every node its place, keeps whole numbers beyond 2^53, and
 * refuses what TOML forbids (a table defined twice, say). It reads TOML 1.1; what is written here is 1.0.
 */
import { type AST, ParseError, parseTOML } from 'toml-eslint-parser';
import type { BracketItem, Brackets } from '../brackets.ts';
import { type Data, Verbatim, wholeNumber } from '../data.ts';
import { DEPTH_READ, TOO_DEEP, type Unreadable } from '../document.ts';
import { BOM, lineNumber } from '../layout.ts';
import {
  depthOf,
  type Slot,
  type Span,
  type TreeArray,
  type TreeEntry,
  type TreeObject,
  type TreeScalar,
} from '../tree.ts';

export type TomlNode = TomlTable | TomlArray | TomlScalar;

export interface TomlScalar extends TreeScalar {
  readonly span: Span;
}

/** One `key = value`, with all the keys of a dotted one. */
export interface TomlLine extends Span {
  readonly keys: readonly string[];
  readonly value: Span;
}

/** A header and the lines under it; the lines before the first header are a section without a header. */
export interface TomlSection extends Span {
  /** The whole path, with positions in arrays of tables. */
  readonly path: readonly (string | number)[];
  /** From `[` to `]`. */
  readonly header: Span | undefined;
  readonly lines: TomlLine[];
}

/** Where the keys of a table can be written. */
export type TomlHome =
  | { readonly kind: 'section'; readonly section: TomlSection }
  /** `a.b = 1` in a section: the table `a` lives in those lines. */
  | { readonly kind: 'dotted'; readonly section: TomlSection; readonly prefix: readonly string[] }
  | { readonly kind: 'inline'; readonly list: Brackets }
  /** Only named by the headers of tables below it. */
  | { readonly kind: 'implied' }
  /** `{ a.b = 1 }`: the table `a` has no place of its own. */
  | { readonly kind: 'nowhere' };

export interface TomlSlot extends Slot {
  readonly value: TomlNode;
  readonly spans: Span[];
}

export interface TomlEntry extends TomlSlot, TreeEntry {
  readonly value: TomlNode;
  readonly spans: Span[];
}

export interface TomlTable extends TreeObject {
  readonly entries: TomlEntry[];
  home: TomlHome;
}

export interface TomlArray extends TreeArray {
  readonly items: TomlSlot[];
  /** `undefined` for an array of tables with `[[headers]]`. */
  readonly list: Brackets | undefined;
}

export interface TomlReading {
  readonly kind: 'read';
  readonly root: TomlTable;
  readonly comments: readonly Span[];
  /** In the order of the file; the first is the one without a header. */
  readonly sections: readonly TomlSection[];
}

export function readToml(text: string): TomlReading | Unreadable {
  const offset = text.startsWith(BOM) ? 1 : 0;
  try {
    const reading = new Reader(offset, text).read(parseTOML(text.slice(offset)));
    return depthOf(reading.root) > DEPTH_READ ? TOO_DEEP : reading;
  } catch (error) {
    if (error instanceof RangeError) return TOO_DEEP;
    if (!(error instanceof ParseError)) throw error;
    const line = lineNumber(text, error.index + offset);
    return { kind: 'unreadable', code: 'invalid', message: 'is not valid TOML', line };
  }
}

class Reader {
  private readonly offset: number;
  private readonly text: string;

  constructor(offset: number, text: string) {
    this.offset = offset;
    this.text = text;
  }

  read(program: AST.TOMLProgram): TomlReading {
    const top = program.body[0];
    const end = top.body.findLast((node) => node.type === 'TOMLKeyValue')?.range[1] ?? 0;
    const first = { path: [], header: undefined, lines: [], start: this.offset, end: end + this.offset };
    const root: TomlTable = { kind: 'object', entries: [], home: { kind: 'section', section: first } };
    const sections: TomlSection[] = [first];
    for (const node of top.body) {
      if (node.type === 'TOMLKeyValue') this.addLine(root, first, node);
      else sections.push(this.addSection(root, node));
    }
    const comments = program.comments.map((comment) => this.span(comment));
    return { kind: 'read', root, comments, sections };
  }

  private addSection(root: TomlTable, node: AST.TOMLTable): TomlSection {
    const header = { start: this.span(node).start, end: this.headerEnd(node) };
    const section: TomlSection = { path: node.resolvedKey, header, lines: [], ...this.span(node) };
    const table = this.descend(root, node.resolvedKey, this.span(node), node.kind === 'array');
    table.home = { kind: 'section', section };
    for (const line of node.body) this.addLine(table, section, line);
    return section;
  }

  /** The parser does not say where a header ends: behind its key, blanks, and one or two brackets. */
  private headerEnd(node: AST.TOMLTable): number {
    const close = node.kind === 'array' ? /[ \t]*\][ \t]*\]/y : /[ \t]*\]/y;
    close.lastIndex = this.span(node.key).end;
    return close.exec(this.text) === null ? this.span(node.key).end : close.lastIndex;
  }

  /** The table at a header's path, made where it is missing; every table on the way also owns the span. */
  private descend(
    root: TomlTable,
    path: readonly (string | number)[],
    span: Span,
    isItem: boolean,
  ): TomlTable {
    return path.reduce<TomlTable>((table, step, index) => {
      if (typeof step === 'number') return table;
      const position = path[index + 1];
      const entry = table.entries.find((one) => one.key === step);
      entry?.spans.push(span);
      const isLast = index === path.length - (isItem ? 2 : 1);
      if (typeof position !== 'number') return tableOf(entry) ?? addTable(table, step, span);
      const array = arrayOf(entry) ?? addArray(table, step, span);
      const item = array.items[position];
      if (item !== undefined && !(isLast && isItem)) {
        item.spans.push(span);
        if (item.value.kind === 'object') return item.value;
      }
      const made: TomlTable = { kind: 'object', entries: [], home: { kind: 'implied' } };
      array.items.push({ value: made, spans: [span] });
      return made;
    }, root);
  }

  private addLine(table: TomlTable, section: TomlSection, node: AST.TOMLKeyValue): void {
    const keys = node.key.keys.map(keyName);
    section.lines.push({ keys, value: this.span(node.value), ...this.span(node) });
    const owner = keys.slice(0, -1).reduce<TomlTable>((parent, key, index) => {
      const entry = parent.entries.find((one) => one.key === key);
      entry?.spans.push(this.span(node));
      const inner = tableOf(entry) ?? addTable(parent, key, this.span(node));
      if (inner.home.kind === 'implied') {
        inner.home = { kind: 'dotted', section, prefix: keys.slice(0, index + 1) };
      }
      return inner;
    }, table);
    this.addEntry(owner, node);
  }

  private addEntry(owner: TomlTable, node: AST.TOMLKeyValue): void {
    owner.entries.push({
      key: keyName(node.key.keys.at(-1)),
      keySource: this.source(node.key),
      value: this.value(node.value),
      spans: [this.span(node)],
    });
  }

  private value(node: AST.TOMLContentNode): TomlNode {
    const span = this.span(node);
    if (node.type === 'TOMLArray') {
      const items = node.elements.map((item) => ({ value: this.value(item), spans: [this.span(item)] }));
      return { kind: 'array', items, list: this.list(span, node.elements) };
    }
    if (node.type === 'TOMLInlineTable') {
      const list = this.list(span, node.body);
      const table: TomlTable = { kind: 'object', entries: [], home: { kind: 'inline', list } };
      for (const entry of node.body) this.addInline(table, entry);
      return table;
    }
    return { kind: 'scalar', value: scalarOf(node, this.source(node)), source: this.source(node), span };
  }

  private addInline(table: TomlTable, node: AST.TOMLKeyValue): void {
    const owner = node.key.keys.slice(0, -1).reduce<TomlTable>((parent, key) => {
      const entry = parent.entries.find((one) => one.key === keyName(key));
      entry?.spans.push(this.span(node));
      const inner = tableOf(entry) ?? addTable(parent, keyName(key), this.span(node));
      if (inner.home.kind === 'implied') inner.home = { kind: 'nowhere' };
      return inner;
    }, table);
    this.addEntry(owner, node);
  }

  private list(span: Span, nodes: readonly { readonly range: readonly [number, number] }[]): Brackets {
    const items = nodes.map((node): BracketItem => {
      const place = this.span(node);
      return { ...place, comma: this.commaBehind(place.end) };
    });
    return { open: span.start, close: span.end - 1, items };
  }

  /** Only blanks, line ends and comments may stand between an item and its comma. */
  private commaBehind(end: number): number | undefined {
    const comma = /(?:[ \t\r\n]|#[^\n]*)*,/y;
    comma.lastIndex = end;
    return comma.exec(this.text) === null ? undefined : comma.lastIndex - 1;
  }

  private span(node: { readonly range: readonly [number, number] }): Span {
    return { start: node.range[0] + this.offset, end: node.range[1] + this.offset };
  }

  private source(node: { readonly range: readonly [number, number] }): string {
    const { start, end } = this.span(node);
    return this.text.slice(start, end);
  }
}

function keyName(key: AST.TOMLBare | AST.TOMLQuoted | undefined): string {
  if (key === undefined) return '';
  return key.type === 'TOMLBare' ? key.name : key.value;
}

const tableOf = (entry: TomlEntry | undefined): TomlTable | undefined =>
  entry?.value.kind === 'object' ? entry.value : undefined;

const arrayOf = (entry: TomlEntry | undefined): TomlArray | undefined =>
  entry?.value.kind === 'array' ? entry.value : undefined;

function addTable(parent: TomlTable, key: string, span: Span): TomlTable {
  const value: TomlTable = { kind: 'object', entries: [], home: { kind: 'implied' } };
  parent.entries.push({ key, keySource: '', value, spans: [span] });
  return value;
}

function addArray(parent: TomlTable, key: string, span: Span): TomlArray {
  const value: TomlArray = { kind: 'array', items: [], list: undefined };
  parent.entries.push({ key, keySource: '', value, spans: [span] });
  return value;
}

function scalarOf(node: AST.TOMLValue, source: string): Data {
  if (node.kind === 'integer') return wholeNumber(node.bigint);
  if (node.kind === 'float') return Number.isFinite(node.value) ? node.value : new Verbatim(source);
  if (node.kind === 'string' || node.kind === 'boolean') return node.value;
  return new Verbatim(source);
}
