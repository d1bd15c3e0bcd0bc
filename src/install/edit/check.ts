/**
 * The proof that an edit did what it should and nothing else, made from the two texts and not from the edit.
 *
 * The new text must read as exactly the intended data; every foreign key and value must be written as before;
 * every comment outside of what was replaced or removed must still be there; and line ends, byte order mark
 * and the last line end must not have changed their kind (H18: every foreign content, not one example). Pure.
 */
import { applyChange, type Change, mapPath, targetOf, without } from './change.ts';
import { type Data, isEmpty, isWithin, lookup, type Path, sameData } from './data.ts';
import type { FormatRules, SourceDocument } from './document.ts';
import { BOM } from './layout.ts';
import { dataOf, type Leaf, leavesOf, type Span, slotAt } from './tree.ts';

/** What is wrong with `after` as the result of `change`, in words; `undefined` if all is right. */
export function checkChange(
  before: SourceDocument,
  after: SourceDocument,
  change: Change,
  rules: FormatRules,
): string | undefined {
  const data = dataOf(before.root);
  const actual = dataOf(after.root);
  const expected = applyChange(data, change);
  const written = rules.emptiesVanish ? withoutVanished(expected, actual, change.at) : expected;
  if (!sameData(actual, written)) return 'would not say what is meant';
  if (!keepsLeaves(before, after, change, data)) return 'would change something else';
  if (!keepsComments(before, after, targetOf(change, data))) return 'would lose a comment';
  return keepsTextStyle(before.text, after.text, change) ? undefined : 'would change line ends';
}

/** Containers around a removed value that are empty now, and so are written nowhere. */
function withoutVanished(expected: Data, actual: Data, at: Path): Data {
  return at
    .map((_, depth) => at.slice(0, depth))
    .filter((path) => path.length > 0)
    .reduceRight(
      (data, path) =>
        isEmpty(lookup(data, path)) && lookup(actual, path) === undefined ? without(data, path) : data,
      expected,
    );
}

function keepsLeaves(before: SourceDocument, after: SourceDocument, change: Change, data: Data): boolean {
  const target = targetOf(change, data);
  const kept = leavesOf(before.root).flatMap((leaf) => {
    const path = mapPath(leaf.path, change, data);
    return path === undefined ? [] : [{ ...leaf, path }];
  });
  const leaves = leavesOf(after.root);
  const found = change.kind === 'remove' ? leaves : leaves.filter((leaf) => !isWithin(leaf.path, target));
  return sameList(inPathOrder(kept), inPathOrder(found));
}

/** By path, since a table in several places may come to begin elsewhere; what shares a path keeps its order. */
function inPathOrder(leaves: readonly Leaf[]): readonly string[] {
  const keyed = leaves.map((leaf) => ({ key: JSON.stringify(leaf.path), source: leaf.source }));
  return keyed
    .sort((a, b) => (a.key < b.key ? -1 : Number(a.key > b.key)))
    .map(({ key, source }) => `${key} ${source}`);
}

function keepsComments(before: SourceDocument, after: SourceDocument, target: Path): boolean {
  const spans = slotAt(before.root, target)?.spans ?? [];
  const isInside = (comment: Span) =>
    spans.some((span) => comment.start >= span.start && comment.end <= span.end);
  const all = textsOf(before, before.comments);
  const mustStay = textsOf(
    before,
    before.comments.filter((comment) => !isInside(comment)),
  );
  const found = textsOf(after, after.comments);
  return isPartOf(mustStay, found) && isPartOf(found, all);
}

const textsOf = (document: SourceDocument, spans: readonly Span[]): readonly string[] =>
  spans.map((span) => document.text.slice(span.start, span.end));

/** Whether `part` is `whole` with some items left out. */
function isPartOf(part: readonly string[], whole: readonly string[]): boolean {
  const matched = whole.reduce((count, text) => (part[count] === text ? count + 1 : count), 0);
  return matched === part.length;
}

function keepsTextStyle(before: string, after: string, change: Change): boolean {
  if (before.startsWith(BOM) !== after.startsWith(BOM)) return false;
  if (before.trim() === '' || after.trim() === '') return true;
  // Without the last line, a text may come to end in an empty line that was there all along.
  const opens = before.endsWith('\n') && !after.endsWith('\n');
  const closes = !before.endsWith('\n') && after.endsWith('\n');
  if (opens || (closes && change.kind !== 'remove')) return false;
  const had = lineBreaksOf(before);
  const has = lineBreaksOf(after);
  // A text of one line shows no kind of line end; nor does one that has lost all of them.
  if (!had.bare && !had.paired) return true;
  return (had.bare || !has.bare) && (had.paired || !has.paired);
}

const lineBreaksOf = (text: string) => ({ bare: /(?:^|[^\r])\n/.test(text), paired: text.includes('\r\n') });

const sameList = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((item, index) => item === b[index]);
