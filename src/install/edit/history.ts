/**
 * What we did to one file, step by step, and how its texts come back: also when the user or a program has
 * changed the file since. Pure.
 *
 * A step remembers the text before it, and the file as it would be without anything of ours (`clean`). The
 * latter is carried along through changes of others, so removal can give the very bytes back, and not only
 * the same data. What it gives is a proposal: callers compare its data before they use it.
 */
import type { Path } from './data.ts';
import type { FormatId } from './document.ts';
import { alignTexts, applyEdits, invertEdits, rebaseEdits, type TextEdit } from './text-edit.ts';

/** A text (`null`: no file), and the edits that lead from it to another one. */
export interface Origin {
  readonly text: string | null;
  readonly edits: readonly TextEdit[];
}

export interface Step {
  readonly kind: 'install' | 'remove';
  /** The id of the wiring. */
  readonly wiring: string;
  readonly format: FormatId;
  /** The text before, and the edits to `after`. */
  readonly before: Origin;
  readonly after: string | null;
  /** The file without anything of ours, with the edits to `after`; `undefined` where that cannot be told. */
  readonly clean: Origin | undefined;
  /** The containers that we made, all steps so far together. `[]` is the file. */
  readonly made: readonly Path[];
  /** The folders that we made for the file, outermost first, all steps so far together. */
  readonly folders: readonly string[];
}

/** How many steps back a file can be undone; older backups are dropped. */
export const STEPS_KEPT = 10;

/** The steps that stand: one whose outcome never reached the disk, or was put back by hand, is left out. */
export function settle<S extends Step>(steps: readonly S[], now: string | null): readonly S[] {
  const last = steps.at(-1);
  if (last === undefined || last.after === now || last.before.text !== now) return steps;
  return settle(steps.slice(0, -1), now);
}

/**
 * The text that `origin` is, with what others have changed since in it: `after` is where its edits lead, and
 * `now` what the file is. `undefined` where others changed the same places.
 */
export function carryBack(origin: Origin, after: string | null, now: string | null): Origin | undefined {
  if (after === now) return origin;
  if (now === null) return { text: null, edits: [] };
  const inverse = invertEdits(origin.text ?? '', origin.edits);
  const changes = alignTexts(after ?? '', now);
  const moved = changes === undefined ? undefined : rebaseEdits(inverse, changes);
  if (moved === undefined) return undefined;
  const text = applyEdits(now, moved);
  // What we made from nothing is nothing again, unless someone put something else into it.
  const isGone = origin.text === null && text.trim() === '';
  return { text: isGone ? null : text, edits: isGone ? wholeText(now) : invertEdits(now, moved) };
}

/** The edits from nothing to a text. */
const wholeText = (text: string): readonly TextEdit[] =>
  text === '' ? [] : [{ offset: 0, length: 0, text }];

/** The text of the file without anything of ours; `undefined` where the steps do not tell. */
export function cleanText(steps: readonly Step[], now: string | null): Origin | undefined {
  const last = steps.at(-1);
  return last?.clean === undefined ? undefined : carryBack(last.clean, last.after, now);
}

/** The text with one step undone. */
export const withoutStep = (step: Step, now: string | null): Origin | undefined =>
  carryBack(step.before, step.after, now);
