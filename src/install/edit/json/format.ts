/** JSON, JSONC and JSON5: reading, and edits that keep comments, spacing, key order and duplicate keys. Pure. */
import { addItem, type BracketStyle, type ItemLayout, removeItem } from '../brackets.ts';
import type { Change } from '../change.ts';
import type { Data, Path } from '../data.ts';
import {
  type ChangeResult,
  cannot,
  edits,
  type Format,
  type Opened,
  type SourceDocument,
} from '../document.ts';
import { BOM, indentOf, lineBreakNear, startsLine } from '../layout.ts';
import { insertAt } from '../text-edit.ts';
import type { Span } from '../tree.ts';
import type { Dialect } from './lexer.ts';
import { printEntry, printJson } from './print.ts';
import { type JsonNode, type JsonObject, readJson } from './read.ts';

const DEFAULT_UNIT = '  ';

/** The format for a program that reads `dialect`; what goes beyond it is refused, since that program would. */
export function jsonFormat(dialect: Dialect): Format {
  return {
    id: dialect,
    rules: { nullIsEmpty: false, emptiesVanish: false },
    open: (text) => open(text, dialect),
  };
}

function open(text: string, dialect: Dialect): Opened {
  const reading = readJson(text, dialect);
  if (reading.kind === 'unreadable') return reading;
  // The reader that most programs use has the last word on what strict JSON is.
  if (dialect === 'json' && reading.root !== undefined && !parses(text)) {
    return { kind: 'unreadable', code: 'invalid', message: 'is not JSON' };
  }
  return { kind: 'document', document: new JsonDocument(text, reading.root, reading.comments) };
}

function parses(text: string): boolean {
  try {
    JSON.parse(text.startsWith(BOM) ? text.slice(1) : text);
    return true;
  } catch {
    // Not JSON: that is the answer.
    return false;
  }
}

const NO_ENTRIES: JsonObject = {
  kind: 'object',
  start: 0,
  end: 0,
  entries: [],
  list: { open: 0, close: 0, items: [] },
};

class JsonDocument implements SourceDocument {
  readonly text: string;
  readonly root: JsonObject;
  readonly comments: readonly Span[];
  private readonly isBlank: boolean;
  private readonly style: BracketStyle & { readonly colon: string };

  constructor(text: string, root: JsonObject | undefined, comments: readonly Span[]) {
    this.text = text;
    this.root = root ?? NO_ENTRIES;
    this.comments = comments;
    this.isBlank = root === undefined;
    this.style = styleOf(text, this.root, comments);
  }

  change(change: Change): ChangeResult {
    switch (change.kind) {
      case 'insert':
        return this.insert(change.at, change.key, change.value);
      case 'append':
        return this.append(change.at, change.value);
      case 'replace':
        return this.replace(change.at, change.value);
      case 'remove':
        return this.remove(change.at);
    }
  }

  private insert(at: Path, key: string, value: Data): ChangeResult {
    if (this.isBlank) return this.begin({ [key]: value });
    const object = this.nodeAt(at);
    if (object?.kind !== 'object') return cannot('is not written as an object');
    return this.add(object, (layout) => printEntry(key, value, layout, this.style));
  }

  private append(at: Path, value: Data): ChangeResult {
    const array = this.nodeAt(at);
    if (array?.kind !== 'array') return cannot('is not written as a list');
    return this.add(array, (layout) => printJson(value, layout, this.style));
  }

  private replace(at: Path, value: Data): ChangeResult {
    const node = this.nodeAt(at);
    if (node === undefined || at.length === 0) return cannot('cannot be replaced as a whole');
    const printed = printJson(value, this.layoutAt(node), this.style);
    if (printed === undefined) return cannot('cannot hold this value');
    return edits({ offset: node.start, length: node.end - node.start, text: printed });
  }

  private remove(at: Path): ChangeResult {
    const step = at.at(-1);
    const parent = this.nodeAt(at.slice(0, -1));
    if (parent === undefined || parent.kind === 'scalar' || step === undefined)
      return cannot('is not written here');
    const index = typeof step === 'number' ? step : indexOfKey(parent, step);
    // Without the last one, an earlier one would come to count.
    if (index === undefined) return cannot('has this key more than once');
    return edits(...removeItem(parent.list, index, this.style));
  }

  private add(
    parent: Exclude<JsonNode, { kind: 'scalar' }>,
    print: (layout: ItemLayout) => string | undefined,
  ): ChangeResult {
    if (print({ kind: 'inline' }) === undefined) return cannot('cannot hold this value');
    return edits(...addItem(parent.list, this.style, (layout) => print(layout) ?? ''));
  }

  /** The first content of a file that is blank. */
  private begin(root: Data): ChangeResult {
    const lineBreak = lineBreakNear(this.text, 0);
    const printed = printJson(root, { kind: 'lines', indent: '', lineBreak }, this.style);
    if (printed === undefined) return cannot('cannot hold this value');
    const isOpen = this.comments.length > 0 && !startsLine(this.text, this.text.length);
    return edits(insertAt(this.text.length, isOpen ? lineBreak + printed : printed + lineBreak));
  }

  private nodeAt(path: Path): JsonNode | undefined {
    return path.reduce<JsonNode | undefined>((node, step) => {
      if (node?.kind === 'array' && typeof step === 'number') return node.items[step]?.value;
      return node?.kind === 'object'
        ? node.entries.findLast((entry) => entry.key === step)?.value
        : undefined;
    }, this.root);
  }

  private layoutAt(node: JsonNode): ItemLayout {
    const spreads = this.style.opensUp || this.text.slice(node.start, node.end).includes('\n');
    if (!spreads) return { kind: 'inline' };
    return {
      kind: 'lines',
      indent: indentOf(this.text, node.start),
      lineBreak: lineBreakNear(this.text, node.start),
    };
  }
}

function indexOfKey(parent: JsonNode, key: string): number | undefined {
  if (parent.kind !== 'object' || parent.entries.filter((entry) => entry.key === key).length !== 1)
    return undefined;
  return parent.entries.findIndex((entry) => entry.key === key);
}

function styleOf(text: string, root: JsonObject, comments: readonly Span[]) {
  const first = root.entries[0];
  const onOwnLine = first !== undefined && startsLine(text, first.keySpan.start);
  const colon = first === undefined ? ': ' : text.slice(first.keySpan.end, first.value.start);
  const plainColon = /^[ \t]*:[ \t]*$/.test(colon) ? colon : ': ';
  return {
    text,
    comments,
    unit: (onOwnLine && indentOf(text, first.keySpan.start)) || DEFAULT_UNIT,
    colon: plainColon,
    separator: plainColon.endsWith(':') ? ',' : ', ',
    opensUp: first === undefined || (onOwnLine && first.keySpan.start > root.start + 1),
  };
}
