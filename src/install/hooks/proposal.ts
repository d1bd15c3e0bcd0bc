/** Turns what the editing core proposes for one file into parts of a plan, in the words of the commands. */
import { type ByHand, byHand } from '../edit/by-hand.ts';
import { type Data, isObject, lookup } from '../edit/data.ts';
import type { Change, Editor, FileRefusal, Proposed } from '../edit/editor.ts';
import type { Wiring } from '../edit/wiring.ts';
import type { HooksPlan, HooksRefusal, PlannedChange } from './integration.ts';

export interface Wording {
  /** What the change does: `add or renew hooks`. */
  readonly does: string;
  /** A sentence about what the runtime makes of a file that is not valid. */
  readonly invalid: string;
}

/** What a proposal comes to. */
export type Turned =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'change'; readonly change: PlannedChange }
  | HooksRefusal;

export function turn(editor: Editor, proposed: Proposed, wording: Wording): Turned {
  switch (proposed.kind) {
    case 'nothing':
      return { kind: 'nothing' };
    case 'change':
      return { kind: 'change', change: plannedChange(editor, proposed, wording.does) };
    case 'changed-since':
      return {
        kind: 'refused',
        path: proposed.path,
        message: `${proposed.path} was changed since, where we had written`,
        byHand: ['What others have changed (- as we wrote it, + as it is):', ...proposed.diff.split('\n')],
      };
    case 'refused':
      return refusal(proposed, wording);
  }
}

function plannedChange(editor: Editor, change: Change, does: string): PlannedChange {
  return { path: change.path, does, diff: change.diff, commit: () => editor.commit(change) };
}

const INVALID: ReadonlySet<FileRefusal['code']> = new Set(['invalid', 'dialect', 'shape', 'encoding']);

/** A refusal in a sentence, with the lines to write by hand (R-23, H1). */
export function refusal(proposed: FileRefusal, wording: Wording): HooksRefusal {
  const { path, code, message, line } = proposed;
  const where = line === undefined ? path : `${path}:${line}`;
  const makes = INVALID.has(code) ? `. ${wording.invalid}` : '';
  return { kind: 'refused', path, message: `${where} ${message}${makes}`, byHand: linesOf(proposed.byHand) };
}

/** A file whose `hooks` has no place for any of ours: not repaired (S-803), and not called done either. */
export function misfit(path: string, data: Data, wiring: Wiring): HooksRefusal | undefined {
  const hooks = lookup(data, ['hooks']);
  if (hooks === undefined || isObject(hooks)) return undefined;
  return {
    kind: 'refused',
    path,
    message: `${path} was left as it is, and no hook is installed: its "hooks" is not an object`,
    byHand: linesOf(byHand(wiring.format, wiring.install({}))),
  };
}

function linesOf({ paste, remove, steps }: ByHand): readonly string[] {
  return [
    ...(paste === undefined
      ? []
      : ['Mend the file and try again, or add to it:', ...paste.trimEnd().split('\n')]),
    ...(remove === undefined
      ? []
      : [
          'Mend the file and try again, or take out what of these lines is in it:',
          ...remove.trimEnd().split('\n'),
        ]),
    ...steps,
  ];
}

/** What takes back the last step on the first of these files that has one, the newest first. */
export function planUndoOf(editor: Editor, paths: readonly string[], wording: Wording): HooksPlan {
  const [path] = paths
    .map((one) => ({ one, at: editor.lastStepAt(one) ?? '' }))
    .filter(({ at }) => at !== '')
    .toSorted((a, b) => b.at.localeCompare(a.at))
    .map(({ one }) => one);
  if (path === undefined)
    return { kind: 'nothing', files: paths, notes: ['There is no step of ours to take back.'] };
  const turned = turn(editor, editor.undo(path), wording);
  if (turned.kind === 'refused') return turned;
  if (turned.kind === 'nothing') return { kind: 'nothing', files: [path], notes: [] };
  return { kind: 'changes', changes: [withoutBackup(turned.change)], notes: [], afterwards: [] };
}

/** What was before the step that is taken back is what the file is now. */
function withoutBackup(change: PlannedChange): PlannedChange {
  return {
    ...change,
    commit() {
      const outcome = change.commit();
      return 'backup' in outcome ? { ...outcome, backup: undefined } : outcome;
    },
  };
}
