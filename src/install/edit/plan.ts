/**
 * Plans the edits of one text: what it will be, by which edits, and that nothing else changes. Pure.
 *
 * A text that cannot be read, has another shape, or cannot be edited safely is refused as a whole, with the
 * reason and with what the user can write by hand; a plan is never made of some of the operations (H1, H2).
 */
import { type ByHand, byHand } from './by-hand.ts';
import { type Change, reduce, targetOf } from './change.ts';
import { checkChange } from './check.ts';
import { type Data, type Path, showPath } from './data.ts';
import type { Format, FormatId, SourceDocument, Unreadable } from './document.ts';
import { FORMATS } from './formats.ts';
import type { Operation } from './operation.ts';
import { applyEdits, composeEdits, normalise, type TextEdit } from './text-edit.ts';
import { dataOf } from './tree.ts';

export interface Plan {
  readonly kind: 'plan';
  readonly format: FormatId;
  /** `null`: there is no file. */
  readonly before: string | null;
  /** Equal to `before` where there is nothing to do; `null` only then. */
  readonly after: string | null;
  /** From `before` (none: an empty text) to `after`. */
  readonly edits: readonly TextEdit[];
  /** The containers that the edits bring into being around our values; `[]` is the file. */
  readonly made: readonly Path[];
  /** What `after` says. */
  readonly data: Data;
}

export interface Refusal {
  readonly kind: 'refused';
  /**
   * Those of {@link Unreadable}; `misfit`: a value has another shape than is needed (S-803); `cannot`: the way
   * the file is written has no safe place; `unsafe`: the edit would have changed something else, such as a YAML text that
   * keeps the empty lines behind it.
   */
  readonly code: Unreadable['code'] | 'misfit' | 'cannot' | 'unsafe';
  /** A sentence without its subject, the file. */
  readonly message: string;
  readonly line?: number;
  /** What to do by hand instead. */
  readonly byHand: ByHand;
}

/** Reads what a text says; `null` is no file, and says the same as a blank one (S-801). */
export function readData(text: string | null, format: FormatId): { kind: 'data'; data: Data } | Unreadable {
  const opened = FORMATS[format].open(text ?? '');
  return opened.kind === 'unreadable' ? opened : { kind: 'data', data: dataOf(opened.document.root) };
}

/** Plans `operations`, one after the other, on a text. Never throws for what the text holds. */
export function plan(
  before: string | null,
  format: FormatId,
  operations: readonly Operation[],
): Plan | Refusal {
  const opened = FORMATS[format].open(before ?? '');
  if (opened.kind === 'unreadable') {
    const { code, message, line } = opened;
    return {
      kind: 'refused',
      code,
      message,
      ...(line === undefined ? {} : { line }),
      byHand: byHand(format, operations),
    };
  }
  const start: Draft = { document: opened.document, edits: [], made: [] };
  const draft = operations.reduce<Draft | Problem>(
    (current, operation) => (isProblem(current) ? current : perform(current, operation, FORMATS[format])),
    start,
  );
  if (isProblem(draft)) return { kind: 'refused', ...draft, byHand: byHand(format, operations) };
  const isNew = before === null && draft.edits.length > 0;
  return {
    kind: 'plan',
    format,
    before,
    after: before === null && !isNew ? null : draft.document.text,
    edits: draft.edits,
    made: isNew ? [[], ...draft.made] : draft.made,
    data: dataOf(draft.document.root),
  };
}

interface Draft {
  readonly document: SourceDocument;
  readonly edits: readonly TextEdit[];
  readonly made: readonly Path[];
}

interface Problem {
  readonly code: Refusal['code'];
  readonly message: string;
}

const isProblem = (result: Draft | Problem): result is Problem => 'code' in result;

function perform(draft: Draft, operation: Operation, format: Format): Draft | Problem {
  const reduced = reduce(dataOf(draft.document.root), operation, format.rules);
  if (reduced.kind === 'misfit') return { code: 'misfit', message: `has another shape: ${reduced.message}` };
  const changed = reduced.changes.reduce<Draft | Problem>(
    (current, change) => (isProblem(current) ? current : write(current, change, format)),
    draft,
  );
  return isProblem(changed) ? changed : { ...changed, made: [...changed.made, ...reduced.made] };
}

function write(draft: Draft, change: Change, format: Format): Draft | Problem {
  const { document } = draft;
  const place = showPath(targetOf(change, dataOf(document.root)));
  const result = document.change(change);
  if (result.kind === 'cannot')
    return { code: 'cannot', message: `cannot be edited at ${place}: it ${result.message}` };
  const edits = normalise(result.edits);
  const opened = format.open(applyEdits(document.text, edits));
  const problem =
    opened.kind === 'unreadable'
      ? 'would no longer be valid'
      : checkChange(document, opened.document, change, format.rules);
  if (problem !== undefined || opened.kind === 'unreadable') {
    return { code: 'unsafe', message: `cannot be edited safely at ${place}: it ${problem}` };
  }
  return { document: opened.document, edits: composeEdits(draft.edits, edits), made: draft.made };
}
