/**
 * Edits of a text, and the arithmetic on them: apply, invert, compose, and carry over to a text that someone
 * else has changed meanwhile.
 *
 * Pure. Offsets and lengths are UTF-16 units of the text that the edits apply to. A list is sorted, its edits
 * neither overlap nor share an offset, and each of them changes something.
 */
import { diffArrays } from 'diff';

export interface TextEdit {
  readonly offset: number;
  readonly length: number;
  readonly text: string;
}

export const insertAt = (offset: number, text: string): TextEdit => ({ offset, length: 0, text });
export const deleteSpan = (start: number, end: number): TextEdit => ({
  offset: start,
  length: end - start,
  text: '',
});

/** The text after the edits. */
export function applyEdits(text: string, edits: readonly TextEdit[]): string {
  const parts: string[] = [];
  const end = edits.reduce((at, edit) => {
    parts.push(text.slice(at, edit.offset), edit.text);
    return edit.offset + edit.length;
  }, 0);
  return parts.join('') + text.slice(end);
}

/** Sorts edits of one text, joins those that touch, and drops those that change nothing. */
export function normalise(edits: readonly TextEdit[]): readonly TextEdit[] {
  const sorted = [...edits].sort((a, b) => a.offset - b.offset || a.length - b.length);
  const joined: TextEdit[] = [];
  for (const edit of sorted) {
    if (edit.length === 0 && edit.text === '') continue;
    const last = joined.at(-1);
    if (last === undefined || last.offset + last.length < edit.offset) {
      joined.push(edit);
      continue;
    }
    joined[joined.length - 1] = {
      offset: last.offset,
      length: edit.offset + edit.length - last.offset,
      text: last.text + edit.text,
    };
  }
  return joined;
}

/** The edits of the edited text that give `text` back. */
export function invertEdits(text: string, edits: readonly TextEdit[]): readonly TextEdit[] {
  const inverse: TextEdit[] = [];
  edits.reduce((shift, edit) => {
    inverse.push({
      offset: edit.offset + shift,
      length: edit.text.length,
      text: text.slice(edit.offset, edit.offset + edit.length),
    });
    return shift + edit.text.length - edit.length;
  }, 0);
  return inverse;
}

/** One list for `first`, and then `second` on its result. */
export function composeEdits(first: readonly TextEdit[], second: readonly TextEdit[]): readonly TextEdit[] {
  return second.reduceRight<readonly TextEdit[]>(composeOne, first);
}

/**
 * `next` is in the coordinates after `edits`. The edits that it touches become one with it: their replaced
 * spans joined, their texts with `next` worked in.
 */
function composeOne(edits: readonly TextEdit[], next: TextEdit): readonly TextEdit[] {
  const end = next.offset + next.length;
  const untouched: TextEdit[] = [];
  const touched: { readonly edit: TextEdit; readonly at: number }[] = [];
  const shifts = { before: 0, through: 0 };
  for (const edit of edits) {
    const at = edit.offset + shifts.through;
    const isBefore = at + edit.text.length < next.offset;
    if (isBefore || at > end) untouched.push(edit);
    else touched.push({ edit, at });
    if (at <= end) shifts.through += edit.text.length - edit.length;
    if (isBefore) shifts.before = shifts.through;
  }
  const head = touched[0];
  const tail = touched.at(-1);
  if (head === undefined || tail === undefined) {
    return normalise([...untouched, { ...next, offset: next.offset - shifts.before }]);
  }
  const from = Math.min(next.offset - shifts.before, head.edit.offset);
  const to = Math.max(end - shifts.through, tail.edit.offset + tail.edit.length);
  const kept = head.edit.text.slice(0, Math.max(0, next.offset - head.at));
  const rest = tail.edit.text.slice(Math.max(0, end - tail.at));
  return normalise([...untouched, { offset: from, length: to - from, text: kept + next.text + rest }]);
}

/**
 * `edits` for the text that `over` has changed, both being edits of the same text. `undefined` where they are
 * about the same place. Where both insert at one point, what `over` inserted comes first.
 */
export function rebaseEdits(
  edits: readonly TextEdit[],
  over: readonly TextEdit[],
): readonly TextEdit[] | undefined {
  const moved: TextEdit[] = [];
  for (const edit of edits) {
    if (over.some((other) => collide(edit, other))) return undefined;
    const shift = over
      .filter((other) => other.offset + other.length <= edit.offset)
      .reduce((sum, other) => sum + other.text.length - other.length, 0);
    moved.push({ ...edit, offset: edit.offset + shift });
  }
  return normalise(moved);
}

function collide(a: TextEdit, b: TextEdit): boolean {
  const aEnd = a.offset + a.length;
  const bEnd = b.offset + b.length;
  return b.offset < aEnd && a.offset < bEnd;
}

/** How many words, spaces and signs two versions may differ by before aligning them is given up. */
const ALIGNED_DIFFERENCES = 1000;
const WORDS = /[\p{L}\p{N}_]+|\r\n|[ \t]+|[\s\S]/gu;

/** The edits from one text to another, found by aligning words; `undefined` where they have little in common. */
export function alignTexts(from: string, to: string): readonly TextEdit[] | undefined {
  if (from === to) return [];
  const parts = diffArrays(from.match(WORDS) ?? [], to.match(WORDS) ?? [], {
    maxEditLength: ALIGNED_DIFFERENCES,
  });
  if (parts === undefined) return undefined;
  const edits: TextEdit[] = [];
  parts.reduce((offset, part) => {
    const text = part.value.join('');
    if (part.added) edits.push({ offset, length: 0, text });
    if (part.removed) edits.push({ offset, length: text.length, text: '' });
    return part.added ? offset : offset + text.length;
  }, 0);
  return normalise(edits);
}
