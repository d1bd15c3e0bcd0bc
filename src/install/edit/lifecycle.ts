/**
 * Installing, removing and undoing, given a file's text and what we did to it before. Pure: it proposes, and
 * `editor.ts` does.
 */
import { type ByHand, byHand } from './by-hand.ts';
import { applyChange, reduce, without } from './change.ts';
import { type Data, isEmpty, lookup, type Path, sameData, samePath } from './data.ts';
import type { FormatId } from './document.ts';
import { FORMATS } from './formats.ts';
import { cleanText, type Origin, type Step, withoutStep } from './history.ts';
import { type Operation, removeKey, setValue } from './operation.ts';
import { type Plan, plan, type Refusal, readData } from './plan.ts';
import { composeEdits, invertEdits, type TextEdit } from './text-edit.ts';
import { takeBack } from './three-way.ts';
import type { Wiring } from './wiring.ts';

export type Proposal =
  /** `step` is what to remember. */
  | {
      readonly kind: 'step';
      readonly before: string | null;
      readonly after: string | null;
      readonly step: Step;
    }
  /** `undone` is the last step, which is to be forgotten. */
  | {
      readonly kind: 'undo';
      readonly before: string | null;
      readonly after: string | null;
      readonly undone: Step;
    }
  | { readonly kind: 'nothing' }
  | Refusal
  /** Undoing would touch what someone has changed since; `after` is what we had written. */
  | { readonly kind: 'changed-since'; readonly after: string | null };

const NOTHING: Proposal = { kind: 'nothing' };

/** What brings all of a wiring into the file; nothing if it is there. */
export function proposeInstall(now: string | null, steps: readonly Step[], wiring: Wiring): Proposal {
  const read = readData(now, wiring.format);
  if (read.kind === 'unreadable') return refuse(read, byHand(wiring.format, wiring.install({})));
  const planned = plan(now, wiring.format, wiring.install(read.data));
  if (planned.kind === 'refused') return planned;
  if (planned.after === now) return NOTHING;
  const clean = cleanBefore(now, steps, wiring);
  return {
    kind: 'step',
    before: now,
    after: planned.after,
    step: {
      kind: 'install',
      wiring: wiring.id,
      format: wiring.format,
      before: { text: now, edits: planned.edits },
      after: planned.after,
      clean: clean && { text: clean.text, edits: composeEdits(clean.edits, planned.edits) },
      made: joinPaths(steps.at(-1)?.made ?? [], planned.made),
      folders: steps.at(-1)?.folders ?? [],
    },
  };
}

/**
 * What takes all of a wiring out of the file. The exact text that the file had without it is preferred;
 * where that is unknown, or would not say what removal means now, the entries are taken out one by one.
 */
export function proposeRemoval(now: string | null, steps: readonly Step[], wiring: Wiring): Proposal {
  const read = readData(now, wiring.format);
  // What is ours cannot be found in it: what installing would write is what to look for.
  if (read.kind === 'unreadable') return refuse(read, lookFor(wiring));
  const operations = wiring.remove(read.data);
  if (operations.length === 0) return NOTHING;
  const made = steps.at(-1)?.made;
  const expected = expect(read.data, operations, wiring.format);
  const clean = cleanText(steps, now);
  const earlier =
    expected === undefined
      ? undefined
      : findText(
          earlierTexts(clean, now, steps, wiring),
          prune(read.data, expected, operations, made),
          wiring,
        );
  const taken = earlier ?? editOut(now, wiring, operations, made);
  return 'code' in taken ? taken : removal(now, taken, clean, steps.at(-1), wiring);
}

/** What takes the last step back. */
export function proposeUndo(now: string | null, steps: readonly Step[]): Proposal {
  const undone = steps.at(-1);
  if (undone === undefined) return NOTHING;
  const { format } = undone;
  const exact: Proposal = { kind: 'undo', before: now, after: undone.before.text, undone };
  if (now === undone.after) return exact;
  const conflict: Proposal = { kind: 'changed-since', after: undone.after };
  const [before, after, current] = [undone.before.text, undone.after, now].map((text) =>
    dataIn(text, format),
  );
  if (before === undefined || after === undefined || current === undefined || now === null) return conflict;
  const expected = takeBack(before, after, current);
  if (expected === undefined) return conflict;
  const text = withoutStep(undone, now);
  if (text !== undefined && says(text.text, expected, format)) return { ...exact, after: text.text };
  const planned = plan(now, format, [setValue([], expected)]);
  if (planned.kind === 'refused') return conflict;
  return { ...exact, after: undone.before.text === null && isBare(planned) ? null : planned.after };
}

interface Found {
  readonly text: string | null;
  /** From the text of now. */
  readonly edits: readonly TextEdit[];
  readonly data: Data;
}

function removal(
  now: string | null,
  found: Found,
  clean: Origin | undefined,
  last: Step | undefined,
  wiring: Wiring,
): Proposal {
  const isClean = clean?.text === found.text;
  return {
    kind: 'step',
    before: now,
    after: found.text,
    step: {
      kind: 'remove',
      wiring: wiring.id,
      format: wiring.format,
      before: { text: now, edits: found.edits },
      after: found.text,
      clean: clean && { text: clean.text, edits: isClean ? [] : composeEdits(clean.edits, found.edits) },
      made: (last?.made ?? []).filter(
        (path) => found.text !== null && lookup(found.data, path) !== undefined,
      ),
      folders: last?.folders ?? [],
    },
  };
}

/** The first text that says what removal means; all of them are what the file was, carried along to now. */
function findText(earlier: Iterable<Origin | undefined>, expected: Data, wiring: Wiring): Found | undefined {
  for (const origin of earlier) {
    const data = origin === undefined ? undefined : dataIn(origin.text, wiring.format);
    if (origin === undefined || data === undefined || !same(data, expected, wiring)) continue;
    return { text: origin.text, edits: invertEdits(origin.text ?? '', origin.edits), data };
  }
  return undefined;
}

/** The file without anything of ours, then with one step of this wiring undone, newest first. */
function* earlierTexts(
  clean: Origin | undefined,
  now: string | null,
  steps: readonly Step[],
  wiring: Wiring,
): Iterable<Origin | undefined> {
  yield clean;
  for (const step of steps.toReversed()) if (step.wiring === wiring.id) yield withoutStep(step, now);
}

/** Takes entries out of the text as it is. */
function editOut(
  now: string | null,
  wiring: Wiring,
  operations: readonly Operation[],
  made: readonly Path[] | undefined,
): Found | Refusal {
  const planned = plan(now, wiring.format, operations);
  if (planned.kind === 'refused') return planned;
  const before = dataIn(now, wiring.format) ?? {};
  const tidied = plan(planned.after, wiring.format, emptied(before, planned.data, operations, made));
  if (tidied.kind === 'refused') return found(planned, planned.edits);
  const ours = made?.some((path) => path.length === 0) === true;
  if (ours && isBare(tidied)) {
    return { text: null, edits: [{ offset: 0, length: now?.length ?? 0, text: '' }], data: {} };
  }
  return found(tidied, composeEdits(planned.edits, tidied.edits));
}

const found = (planned: Plan, edits: readonly TextEdit[]): Found => ({
  text: planned.after,
  edits,
  data: planned.data,
});

/** Nothing is left in the file: no value, and no comment. */
function isBare(planned: Plan): boolean {
  const opened = FORMATS[planned.format].open(planned.after ?? '');
  return isEmpty(planned.data) && opened.kind === 'document' && opened.document.comments.length === 0;
}

/**
 * The file without anything of ours before a step: as remembered, or else by taking out what this wiring
 * would. `undefined` where neither can be had; removal then goes entry by entry.
 */
function cleanBefore(now: string | null, steps: readonly Step[], wiring: Wiring): Origin | undefined {
  const known = cleanText(steps, now);
  const data = known === undefined ? undefined : dataIn(known.text, wiring.format);
  if (known !== undefined && data !== undefined && wiring.remove(data).length === 0) return known;
  const current = dataIn(now, wiring.format);
  if (current === undefined) return undefined;
  const edited = editOut(now, wiring, wiring.remove(current), steps.at(-1)?.made);
  if ('code' in edited) return undefined;
  return { text: edited.text, edits: invertEdits(now ?? '', edited.edits) };
}

/** The data after operations, without writing them; `undefined` where they do not fit. */
function expect(data: Data, operations: readonly Operation[], format: FormatId): Data | undefined {
  return operations.reduce<Data | undefined>((current, operation) => {
    if (current === undefined) return undefined;
    const reduced = reduce(current, operation, FORMATS[format].rules);
    return reduced.kind === 'changes' ? reduced.changes.reduce(applyChange, current) : undefined;
  }, data);
}

function prune(
  before: Data,
  after: Data,
  operations: readonly Operation[],
  made: readonly Path[] | undefined,
): Data {
  return emptied(before, after, operations, made).reduce(
    (data, operation) => without(data, operation.path),
    after,
  );
}

/**
 * Takes away the containers that are empty now: with a record those that we made, however they came to be
 * empty; without one those that this removal emptied, but for keys of the top level, which may be the user's
 * (S-814 names the lists of events).
 */
function emptied(
  before: Data,
  after: Data,
  operations: readonly Operation[],
  made: readonly Path[] | undefined,
): readonly Operation[] {
  const around = operations.flatMap(({ path }) => path.map((_, depth) => path.slice(0, depth + 1)));
  const candidates = (made ?? around.filter((path) => path.length > 1 && !isEmpty(lookup(before, path))))
    .filter((path) => path.length > 0 && path.every((step) => typeof step === 'string'))
    .toSorted((a, b) => b.length - a.length);
  const result = candidates.reduce<{ data: Data; operations: readonly Operation[] }>(
    (state, path) =>
      isEmpty(lookup(state.data, path))
        ? { data: without(state.data, path), operations: [...state.operations, removeKey(path)] }
        : state,
    { data: after, operations: [] },
  );
  return result.operations;
}

function dataIn(text: string | null, format: FormatId): Data | undefined {
  const read = readData(text, format);
  return read.kind === 'data' ? read.data : undefined;
}

function same(data: Data, expected: Data, wiring: Wiring): boolean {
  const settled = wiring.settled ?? ((all: Data) => all);
  return sameData(settled(data), settled(expected), FORMATS[wiring.format].rules.nullIsEmpty);
}

function says(text: string | null, expected: Data, format: FormatId): boolean {
  return sameData(dataIn(text, format), expected, FORMATS[format].rules.nullIsEmpty);
}

function lookFor(wiring: Wiring): ByHand {
  const { paste } = byHand(wiring.format, wiring.install({}));
  return { paste: undefined, remove: paste, steps: [] };
}

function refuse(read: Extract<ReturnType<typeof readData>, { kind: 'unreadable' }>, hand: ByHand): Refusal {
  return { ...read, kind: 'refused', byHand: hand };
}

function joinPaths(a: readonly Path[], b: readonly Path[]): readonly Path[] {
  return [...a, ...b.filter((path) => !a.some((known) => samePath(known, path)))];
}
