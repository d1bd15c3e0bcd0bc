/**
 * `.env` files: `KEY=value` lines with `export`, quotes, values over several lines and comments. Pure.
 *
 * What is read is what python-dotenv reads (Hermes uses it). What is written is read alike by it, by dotenv
 * for JavaScript, and by a shell; a value that no notation gives to all of them is refused.
 */
import type { Change } from '../change.ts';
import type { Data } from '../data.ts';
import {
  type ChangeResult,
  cannot,
  edits,
  type Format,
  type Opened,
  type SourceDocument,
} from '../document.ts';
import { BOM, keepOpenEnd, lineBreakNear, lineEnd, lineNumber, wholeLines } from '../layout.ts';
import { deleteSpan, insertAt } from '../text-edit.ts';
import type { Span, TreeEntry, TreeObject, TreeScalar } from '../tree.ts';

export const envFormat: Format = {
  id: 'env',
  rules: { nullIsEmpty: false, emptiesVanish: false },
  open,
};

interface EnvEntry extends TreeEntry {
  readonly value: TreeScalar & Span;
}

interface EnvObject extends TreeObject {
  readonly entries: readonly EnvEntry[];
}

const EMPTY_LINE = /[ \t]*(?=\r?\n|$)/y;
const COMMENT = /[ \t]*(#[^\r\n]*)/y;
const NAME = /[ \t]*((?:export[ \t]+)?([^\s=#'"]+))[ \t]*=[ \t]*/y;
const SINGLE = /'[^'\\]*(?:\\[\s\S][^'\\]*)*'/y;
const DOUBLE = /"[^"\\]*(?:\\[\s\S][^"\\]*)*"/y;
const BARE = /[^\r\n]*/y;

function open(text: string): Opened {
  const entries: EnvEntry[] = [];
  const comments: Span[] = [];
  for (let at = text.startsWith(BOM) ? 1 : 0; at < text.length; ) {
    const found = readLine(text, at);
    if (found === undefined) {
      return {
        kind: 'unreadable',
        code: 'invalid',
        message: 'has quotes that do not close',
        line: lineNumber(text, at),
      };
    }
    if (found.entry !== undefined) entries.push(found.entry);
    if (found.comment !== undefined) comments.push(found.comment);
    at = found.end;
  }
  return { kind: 'document', document: new EnvDocument(text, { kind: 'object', entries }, comments) };
}

interface EnvLine {
  readonly entry?: EnvEntry;
  readonly comment?: Span | undefined;
  /** The start of the next line. */
  readonly end: number;
}

/** `undefined` where it cannot be said how far the line reaches. */
function readLine(text: string, at: number): EnvLine | undefined {
  const comment = commentAt(text, at);
  if (comment !== undefined || matchAt(EMPTY_LINE, text, at) !== undefined)
    return closeLine(text, at, comment);
  const name = matchAt(NAME, text, at);
  if (name === undefined) {
    // Not an assignment: readers skip the line. With a quote in it, they may not agree on where it ends.
    const line = text.slice(at, lineEnd(text, at));
    return /['"]/.test(line) ? undefined : { end: afterBreak(text, lineEnd(text, at)) };
  }
  const start = at + name[0].length;
  const value = readValue(text, start);
  if (value === undefined) return undefined;
  const key = name[2] ?? '';
  const keyStart = at + name[0].indexOf(name[1] ?? '');
  const entry = { key, keySource: name[1] ?? '', value, spans: [{ start: keyStart, end: value.end }] };
  const rest = closeLine(text, value.end, commentAt(text, value.end));
  return rest === undefined ? undefined : { ...rest, entry };
}

function readValue(text: string, start: number): (TreeScalar & Span) | undefined {
  const sign = text[start];
  const quoted = sign === "'" ? SINGLE : sign === '"' ? DOUBLE : undefined;
  const matched = matchAt(quoted ?? BARE, text, start)?.[0];
  if (matched === undefined) return undefined;
  const source = quoted === undefined ? matched.replace(/(?:^|[ \t]+)#.*$/, '').trimEnd() : matched;
  const value = quoted === undefined ? source : unquote(source);
  return { kind: 'scalar', value, source, start, end: start + source.length };
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: '\u0007',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};

function unquote(source: string): string {
  const inner = source.slice(1, -1);
  if (source.startsWith("'")) return inner.replace(/\\([\\'])/g, '$1');
  return inner.replace(/\\([\\'"abfnrtv])/g, (_, sign: string) => ESCAPES[sign] ?? sign);
}

function commentAt(text: string, at: number): Span | undefined {
  const comment = matchAt(COMMENT, text, at);
  if (comment === undefined) return undefined;
  const end = at + comment[0].length;
  return { start: end - (comment[1]?.length ?? 0), end };
}

function closeLine(text: string, at: number, comment: Span | undefined): EnvLine | undefined {
  const end = comment?.end ?? at;
  const blank = matchAt(EMPTY_LINE, text, end);
  return blank === undefined ? undefined : { comment, end: afterBreak(text, end + blank[0].length) };
}

const afterBreak = (text: string, at: number): number =>
  text.startsWith('\r\n', at) ? at + 2 : Math.min(at + 1, text.length);

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text) ?? undefined;
}

class EnvDocument implements SourceDocument {
  readonly text: string;
  readonly root: EnvObject;
  readonly comments: readonly Span[];

  constructor(text: string, root: EnvObject, comments: readonly Span[]) {
    this.text = text;
    this.root = root;
    this.comments = comments;
  }

  change(change: Change): ChangeResult {
    if (change.kind === 'append') return cannot('cannot hold lists');
    if (change.kind === 'insert') {
      return change.at.length === 0 ? this.insert(change.key, change.value) : cannot('cannot hold objects');
    }
    const [key, ...below] = change.at;
    const entry = this.root.entries.findLast((one) => one.key === key);
    if (entry === undefined || below.length > 0) return cannot('is not written here');
    if (change.kind === 'remove') return this.remove(entry);
    const printed = printValue(change.value);
    if (printed === undefined) return cannot('cannot hold this value in a way that all its readers agree on');
    return edits({ offset: entry.value.start, length: entry.value.end - entry.value.start, text: printed });
  }

  private insert(key: string, value: Data): ChangeResult {
    const printed = printValue(value);
    if (printed === undefined || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(key)) {
      return cannot('cannot hold this value in a way that all its readers agree on');
    }
    const { text } = this;
    const line = `${key}=${printed}`;
    const content = text.replace(/[ \t\r\n]+$/, '').length;
    if (content === 0 || text === BOM) return edits(insertAt(text.length, line + lineBreakNear(text, 0)));
    return edits(insertAt(lineEnd(text, content), lineBreakNear(text, content) + line));
  }

  private remove(entry: EnvEntry): ChangeResult {
    // Without the last one, an earlier one would come to count.
    if (this.root.entries.filter((one) => one.key === entry.key).length > 1)
      return cannot('has this key more than once');
    const [span = entry.value] = entry.spans;
    const lines = wholeLines(this.text, span, this.comments);
    if (lines === undefined) return edits(deleteSpan(span.start, span.end));
    return edits(...keepOpenEnd(this.text, [deleteSpan(lines.start, lines.end)]));
  }
}

function printValue(value: Data): string | undefined {
  if (typeof value !== 'string' || !value.isWellFormed()) return undefined;
  if (/^[A-Za-z0-9_./:@+,-]*$/.test(value)) return value;
  // Some readers fill in `${NAME}` in every notation.
  if (value.includes('${') || hasControl(value)) return undefined;
  if (!/['\\\n]/.test(value)) return `'${value}'`;
  return /["\\$`]/.test(value) ? undefined : `"${value.replaceAll('\n', '\\n')}"`;
}

const hasControl = (value: string): boolean =>
  [...value].some((sign) => sign !== '\n' && (sign < ' ' || sign === '\u007f'));
