/** YAML with one document: edits that keep comments, anchors, block scalars, quoting and indentation. Pure. */
import { addItem, type BracketStyle, removeItem } from '../brackets.ts';
import type { Change } from '../change.ts';
import { type Data, isArray, isEmpty, isObject, type Path } from '../data.ts';
import { type ChangeResult, cannot, edits, type Format, type SourceDocument } from '../document.ts';
import {
  BOM,
  keepOpenEnd,
  lineBreakNear,
  nextLine,
  previousLineEnd,
  restOfLine,
  startsLine,
  wholeLines,
} from '../layout.ts';
import { deleteSpan, insertAt, type TextEdit } from '../text-edit.ts';
import type { Span } from '../tree.ts';
import { printFlow, printItem, printPair, printPairs, type YamlSpacing } from './print.ts';
import { readYaml, type YamlMap, type YamlNode, type YamlSeq, type YamlSlot } from './read.ts';

export const yamlFormat: Format = {
  id: 'yaml',
  rules: { nullIsEmpty: true, emptiesVanish: false },
  open(text) {
    const reading = readYaml(text);
    if (reading.kind === 'unreadable') return reading;
    return { kind: 'document', document: new YamlDocument(text, reading.root, reading.comments) };
  },
};

const NO_ENTRIES: YamlMap = {
  kind: 'object',
  entries: [],
  shape: { kind: 'block', column: 0 },
  fixed: undefined,
  start: 0,
  end: 0,
};
const NO_WORD = cannot('cannot hold this value');

class YamlDocument implements SourceDocument {
  readonly text: string;
  readonly root: YamlMap;
  readonly comments: readonly Span[];
  private readonly spacing: YamlSpacing;
  private readonly style: BracketStyle;

  constructor(text: string, root: YamlMap | undefined, comments: readonly Span[]) {
    this.text = text;
    this.root = root ?? NO_ENTRIES;
    this.comments = comments;
    this.spacing = spacingOf(this.root);
    this.style = { text, comments, unit: this.spacing.unit, separator: ', ', opensUp: false };
  }

  change(change: Change): ChangeResult {
    const fixed = change.at.map((_, depth) => this.nodeAt(change.at.slice(0, depth + 1))?.fixed);
    const reason = [this.root.fixed, ...fixed].find((one) => one !== undefined);
    if (reason !== undefined) return cannot(reason);
    if (change.kind === 'remove') return this.remove(change.at);
    if (printFlow(change.value) === undefined) return NO_WORD;
    if (change.kind === 'insert') return this.insert(change.at, change.key, change.value);
    return change.kind === 'append'
      ? this.append(change.at, change.value)
      : this.replace(change.at, change.value);
  }

  private insert(at: Path, key: string, value: Data): ChangeResult {
    const map = this.nodeAt(at);
    if (map?.kind !== 'object') return cannot('is not written as a map here (it may be an alias)');
    // What `<<` brings along would be hidden by a key of that name.
    if (map.entries.some((entry) => entry.key === '<<')) return cannot('takes keys from elsewhere with `<<`');
    if (map.shape.kind === 'flow') {
      return edits(...addItem(map.shape.list, this.style, () => `${printFlow(key)}: ${printFlow(value)}`));
    }
    return this.addLines(
      map.entries.at(-1),
      printPair(key, value, ' '.repeat(map.shape.column), this.spacing),
    );
  }

  private append(at: Path, value: Data): ChangeResult {
    const seq = this.nodeAt(at);
    if (seq?.kind !== 'array') return cannot('is not written as a list here (it may be an alias)');
    if (seq.shape.kind === 'flow')
      return edits(...addItem(seq.shape.list, this.style, () => printFlow(value) ?? ''));
    return this.addLines(seq.items.at(-1), printItem(value, ' '.repeat(seq.shape.column), this.spacing));
  }

  private replace(at: Path, value: Data): ChangeResult {
    const slot = this.slotAt(at);
    const node = slot?.value;
    if (slot === undefined || node === undefined) return cannot('is not written here');
    if (node.kind === 'scalar' && node.style === 'empty') return this.fill(at, slot, value);
    if (node.kind !== 'scalar' && node.shape.kind === 'block') return cannot('cannot be replaced as a whole');
    return edits({ offset: node.start, length: this.endOf(node) - node.start, text: printFlow(value) ?? '' });
  }

  /** Gives a value to a key that has none: below it where it can stand on lines of its own. */
  private fill(at: Path, slot: YamlSlot, value: Data): ChangeResult {
    const parent = this.nodeAt(at.slice(0, -1));
    if (parent?.kind !== 'object' || parent.shape.kind === 'flow' || isEmpty(value) || !isNested(value)) {
      return edits(insertAt(slot.separatorEnd, ` ${printFlow(value)}`));
    }
    const indent = ' '.repeat(parent.shape.column);
    const inner = indent + this.spacing.unit;
    const dashes = this.spacing.dashesIn ? inner : indent;
    const lines = isArray(value)
      ? value.flatMap((item) => printItem(item, dashes, this.spacing))
      : printPairs(value, inner, this.spacing);
    return this.addLines(slot, lines);
  }

  private remove(at: Path): ChangeResult {
    const parent = this.nodeAt(at.slice(0, -1));
    const slot = this.slotAt(at);
    if (slot === undefined || parent === undefined || parent.kind === 'scalar')
      return cannot('is not written here');
    const slots: readonly YamlSlot[] = parent.kind === 'object' ? parent.entries : parent.items;
    const index = slots.indexOf(slot);
    // Without the last one, an earlier one would come to count.
    if (parent.kind === 'object' && countOf(parent, at.at(-1)) > 1)
      return cannot('has this key more than once');
    if (parent.shape.kind === 'flow') return edits(...removeItem(parent.shape.list, index, this.style));
    if (slots.length === 1) return this.empty(at.slice(0, -1), parent, slot);
    if (startsLine(this.text, slot.start)) return edits(...this.dropLines(slot));
    const next = slots[index + 1];
    const gap = next === undefined ? undefined : { start: slot.end, end: next.start };
    const hasComment =
      gap !== undefined && this.comments.some((one) => one.start >= gap.start && one.end <= gap.end);
    if (gap === undefined || hasComment) return cannot('shares its line with something else');
    return edits(deleteSpan(slot.start, gap.end));
  }

  /** Takes the only entry out of a block collection, which then has to say that it is empty. */
  private empty(at: Path, parent: YamlMap | YamlSeq, only: YamlSlot): ChangeResult {
    const sign = parent.kind === 'object' ? '{}' : '[]';
    const owner = this.slotAt(at);
    if (owner === undefined || !startsLine(this.text, only.start)) {
      return edits({ offset: only.start, length: only.end - only.start, text: sign });
    }
    return edits(insertAt(owner.separatorEnd, ` ${sign}`), ...this.dropLines(only));
  }

  /** Lines of their own behind the last line of `before`; at the end of a file without content. */
  private addLines(before: YamlSlot | undefined, lines: readonly string[]): ChangeResult {
    const { text } = this;
    const at =
      before === undefined ? text.length : nextLine(text, restOfLine(text, before.end, this.comments).end);
    const lineBreak = lineBreakNear(text, at);
    const block = lines.join(lineBreak);
    const startsFresh = at === 0 || text[at - 1] === '\n' || (at === 1 && text.startsWith(BOM));
    return edits(insertAt(at, startsFresh ? block + lineBreak : lineBreak + block));
  }

  private dropLines(slot: Span): readonly TextEdit[] {
    const lines = wholeLines(this.text, slot, this.comments);
    if (lines === undefined) return [deleteSpan(slot.start, slot.end)];
    const deletion = [deleteSpan(lines.start, lines.end)];
    return endsBlock(this.root, lines.start) ? deletion : keepOpenEnd(this.text, deletion);
  }

  private endOf(node: YamlNode): number {
    const isBlock = node.kind === 'scalar' && node.style === 'block' && this.text[node.end - 1] === '\n';
    return isBlock ? previousLineEnd(this.text, node.end) : node.end;
  }

  private slotAt(path: Path): YamlSlot | undefined {
    const parent = this.nodeAt(path.slice(0, -1));
    const step = path.at(-1);
    if (parent?.kind === 'array') return typeof step === 'number' ? parent.items[step] : undefined;
    return parent?.kind === 'object' ? parent.entries.findLast((entry) => entry.key === step) : undefined;
  }

  private nodeAt(path: Path): YamlNode | undefined {
    return path.length === 0 ? this.root : this.slotAt(path)?.value;
  }
}

/** Whether a block scalar ends there: the line end before is then its own, and may be part of what it says. */
function endsBlock(node: YamlNode, offset: number): boolean {
  if (node.kind === 'scalar') return node.style === 'block' && node.end === offset;
  const slots: readonly YamlSlot[] = node.kind === 'object' ? node.entries : node.items;
  return slots.some((slot) => endsBlock(slot.value, offset));
}

const isNested = (value: Data): boolean => isArray(value) || isObject(value);

const countOf = (map: YamlMap, key: string | number | undefined): number =>
  map.entries.filter((entry) => entry.key === key).length;

const DEFAULT_SPACING: YamlSpacing = { unit: '  ', dashesIn: true };

/** How the file is indented, by the first map in a map and the first list in a map. */
function spacingOf(root: YamlMap): YamlSpacing {
  const steps = nestedColumns(root);
  const map = steps.find((step) => step.kind === 'object' && step.step > 0);
  const list = steps.find((step) => step.kind === 'array');
  return {
    unit: map === undefined ? DEFAULT_SPACING.unit : ' '.repeat(map.step),
    dashesIn: list === undefined ? DEFAULT_SPACING.dashesIn : list.step > 0,
  };
}

interface Step {
  readonly kind: 'object' | 'array';
  readonly step: number;
}

function nestedColumns(node: YamlNode): readonly Step[] {
  if (node.kind === 'scalar' || node.shape.kind === 'flow') return [];
  if (node.kind === 'array') return node.items.flatMap((item) => nestedColumns(item.value));
  const { column } = node.shape;
  return node.entries.flatMap(({ value }) => {
    if (value.kind === 'scalar' || value.shape.kind === 'flow') return [];
    return [{ kind: value.kind, step: value.shape.column - column }, ...nestedColumns(value)];
  });
}
