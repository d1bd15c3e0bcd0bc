/** TOML: edits that keep comments, dotted keys, inline tables, numbers and the order of tables. Pure. */
import { addItem, type BracketStyle, type Brackets, removeItem } from '../brackets.ts';
import type { Change } from '../change.ts';
import { type Data, isObject, isWithin, type Path } from '../data.ts';
import { type ChangeResult, cannot, edits, type Format, type SourceDocument } from '../document.ts';
import {
  BOM,
  indentOf,
  isBlank,
  keepOpenEnd,
  lineBreakNear,
  lineStart,
  previousLineEnd,
  restOfLine,
  wholeLines,
} from '../layout.ts';
import { deleteSpan, insertAt, type TextEdit } from '../text-edit.ts';
import { type Span, slotAt } from '../tree.ts';
import { hasSections, printInline, printLine, printSections, printTable } from './print.ts';
import { readToml, type TomlNode, type TomlReading, type TomlSection, type TomlTable } from './read.ts';

export const tomlFormat: Format = {
  id: 'toml',
  rules: { nullIsEmpty: false, emptiesVanish: true },
  open(text) {
    const reading = readToml(text);
    return reading.kind === 'unreadable'
      ? reading
      : { kind: 'document', document: new TomlDocument(text, reading) };
  },
};

const DOTTED = 'is written with a dotted key';
const NO_WORD = cannot('cannot hold this value');

class TomlDocument implements SourceDocument {
  readonly text: string;
  readonly root: TomlTable;
  readonly comments: readonly Span[];
  private readonly sections: readonly TomlSection[];
  private readonly style: BracketStyle;

  constructor(text: string, reading: TomlReading) {
    this.text = text;
    this.root = reading.root;
    this.comments = reading.comments;
    this.sections = reading.sections;
    this.style = { text, comments: reading.comments, unit: '  ', separator: ', ', opensUp: false };
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
    const table = this.nodeAt(at);
    if (table?.kind !== 'object') return cannot('is not written as a table');
    const { home } = table;
    if (home.kind === 'nowhere') return cannot(DOTTED);
    if (home.kind === 'inline') return this.addTo(home.list, printLine([key], value));
    if (hasSections(value)) {
      const below = home.kind === 'dotted' ? home.section.path : at;
      return this.addSections(below, printSections([...namesOf(at), key], value));
    }
    if (home.kind === 'implied')
      return this.addSections(at, printTable(namesOf(at), { [key]: value }, false));
    const prefix = home.kind === 'dotted' ? home.prefix : [];
    return this.addLine(home.section, prefix, printLine([...prefix, key], value));
  }

  private append(at: Path, value: Data): ChangeResult {
    const array = this.nodeAt(at);
    if (array?.kind !== 'array') return cannot('is not written as a list');
    if (array.list !== undefined) return this.addTo(array.list, printInline(value));
    return isObject(value) ? this.addSections(at, printTable(namesOf(at), value, true)) : NO_WORD;
  }

  private replace(at: Path, value: Data): ChangeResult {
    const node = this.nodeAt(at);
    const span = node === undefined ? undefined : inlineSpan(node);
    if (span === undefined)
      return cannot('is written as a table of its own and cannot be replaced as a whole');
    const printed = printInline(value);
    if (printed === undefined) return NO_WORD;
    return edits({ offset: span.start, length: span.end - span.start, text: printed });
  }

  private remove(at: Path): ChangeResult {
    const slot = slotAt(this.root, at);
    const parent = this.nodeAt(at.slice(0, -1));
    if (slot === undefined || parent === undefined) return cannot('is not written here');
    if (parent.kind === 'object' && parent.home.kind === 'nowhere') return cannot(DOTTED);
    const list = listOf(parent);
    if (list === undefined)
      return edits(
        ...keepOpenEnd(
          this.text,
          slot.spans.map((span) => this.dropLines(span)),
        ),
      );
    const [span] = slot.spans;
    const index = list.items.findIndex((item) => item.start === span?.start && item.end === span.end);
    return index === -1 ? cannot(DOTTED) : edits(...removeItem(list, index, this.style));
  }

  private addTo(list: Brackets, printed: string | undefined): ChangeResult {
    return printed === undefined ? NO_WORD : edits(...addItem(list, this.style, () => printed));
  }

  /** Behind the last line of its section that it belongs with. */
  private addLine(
    section: TomlSection,
    prefix: readonly string[],
    printed: string | undefined,
  ): ChangeResult {
    if (printed === undefined) return NO_WORD;
    const line = section.lines.findLast(({ keys }) => isWithin(keys, prefix));
    const before = line ?? section.header;
    if (before !== undefined) {
      const rest = restOfLine(this.text, before.end, this.comments);
      const indent = indentOf(this.text, before.start);
      return edits(insertAt(rest.end, this.lineBreak(before.start) + indent + printed));
    }
    const top = this.text.startsWith(BOM) ? 1 : 0;
    const lineBreak = this.lineBreak(top);
    const space = /^[ \t]*\[/.test(this.text.slice(top)) ? lineBreak : '';
    return edits(insertAt(top, printed + lineBreak + space));
  }

  /**
   * Behind the last table at or below `at`, so that it stays inside its item of an array of tables; for the
   * top level, and where `at` has no table yet, at the end.
   */
  private addSections(at: Path, lines: readonly string[] | undefined): ChangeResult {
    if (lines === undefined) return NO_WORD;
    const anchor =
      at.length === 0 ? undefined : this.sections.findLast((section) => isWithin(section.path, at));
    const content = this.text.replace(/[ \t\r\n]+$/, '');
    const lineBreak = this.lineBreak(anchor?.start ?? this.text.length);
    const printed = lines.join(lineBreak);
    if (content === '' || content === BOM) return edits(insertAt(this.text.length, printed + lineBreak));
    const end = anchor === undefined ? content.length : restOfLine(this.text, anchor.end, this.comments).end;
    return edits(insertAt(end, lineBreak + lineBreak + printed));
  }

  /** The lines of a table or of `key = value`, and the empty line that set a table apart. */
  private dropLines(span: Span): TextEdit {
    const lines = wholeLines(this.text, span, this.comments);
    if (lines === undefined) return deleteSpan(span.start, span.end);
    const isTable = this.sections.some((section) => section.header?.start === span.start);
    return deleteSpan(isTable ? this.startWithGap(lines.start) : lines.start, lines.end);
  }

  private startWithGap(start: number): number {
    const end = previousLineEnd(this.text, start);
    const gap = lineStart(this.text, end);
    return end < start && isBlank(this.text.slice(gap, end)) ? gap : start;
  }

  private lineBreak(offset: number): string {
    return lineBreakNear(this.text, offset);
  }

  private nodeAt(path: Path): TomlNode | undefined {
    return path.reduce<TomlNode | undefined>((node, step) => {
      if (node?.kind === 'array' && typeof step === 'number') return node.items[step]?.value;
      return node?.kind === 'object' ? node.entries.find((entry) => entry.key === step)?.value : undefined;
    }, this.root);
  }
}

/** A path without positions: how headers name it. */
const namesOf = (path: Path): readonly string[] => path.filter((step) => typeof step === 'string');

function listOf(node: TomlNode): Brackets | undefined {
  if (node.kind === 'array') return node.list;
  return node.kind === 'object' && node.home.kind === 'inline' ? node.home.list : undefined;
}

function inlineSpan(node: TomlNode): Span | undefined {
  if (node.kind === 'scalar') return node.span;
  const list = listOf(node);
  return list === undefined ? undefined : { start: list.open, end: list.close + 1 };
}
