import { statSync } from 'node:fs';
import type { Change, Editor, FileRefusal, Outcome } from '../edit/editor.ts';
import { type EditorContext, type EditorPlace, editorPlaces, profileSettings } from './places.ts';
import { removeShim, shimAt, shimStands, shimText, writeShim } from './shim.ts';
import { pointingOf, SETTING, wrapperWiring } from './wiring.ts';

/** Puts the wrapper into the editors of the VS Code family, and takes it out again (S-840 … S-844). */
export interface WrapperContext extends EditorContext {
  readonly editor: Editor;
  readonly shim: string;
  /** One settings file instead of those of the editors that are there. */
  readonly settings?: string;
  readonly dryRun: boolean;
}

/** What became of one settings file. */
export interface SettingsDone {
  readonly path: string;
  /** The editor's name; absent for a file that was named. */
  readonly label?: string;
  readonly result: 'changed' | 'wouldChange' | 'unchanged' | 'left' | 'refused' | 'failed';
  readonly diff?: string;
  readonly backup?: string;
  /** One sentence for a person. */
  readonly message?: string;
  /** Lines to add or to remove by hand, where the file can't be edited. */
  readonly byHand?: readonly string[];
}

export interface WrapperDone {
  readonly shim: {
    readonly path: string;
    readonly result:
      | 'written'
      | 'wouldWrite'
      | 'unchanged'
      | 'removed'
      | 'wouldRemove'
      | 'kept'
      | 'absent'
      | 'failed';
    readonly message?: string;
  };
  readonly settings: readonly SettingsDone[];
}

interface File {
  readonly path: string;
  readonly label?: string;
}

/** The shim first, so that no setting ever names a file that isn't there (S-840, S-842). */
export function installWrapper(
  context: WrapperContext,
  how: { readonly self: readonly string[]; readonly socket?: string; readonly replace: boolean },
): WrapperDone {
  const text = shimText(
    how.socket === undefined ? { self: how.self } : { self: how.self, socket: how.socket },
  );
  if (context.dryRun) {
    if (shimAt(context.shim) === 'foreign') return { shim: failedShim(context.shim, 'EEXIST'), settings: [] };
    const settings = files(context).map((file) => setIn(file, context, how.replace));
    const result = shimStands(context.shim, text) ? 'unchanged' : 'wouldWrite';
    return { shim: { path: context.shim, result }, settings };
  }
  const written = writeShim(context.shim, text);
  if (written.kind === 'failed') return { shim: failedShim(context.shim, written.code), settings: [] };
  return {
    shim: { path: context.shim, result: written.kind },
    settings: files(context).map((file) => setIn(file, context, how.replace)),
  };
}

function failedShim(path: string, code: string): WrapperDone['shim'] {
  const why = code === 'EEXIST' ? 'a file that is not ours is there' : code;
  return { path, result: 'failed', message: `${path} can’t be written: ${why}. No settings were changed.` };
}

/** Clears the setting where it names our shim, and removes the shim unless somebody still needs it (S-844). */
export function uninstallWrapper(context: WrapperContext): WrapperDone {
  const settings = files(context).map((file) => clearIn(file, context));
  const path = context.shim;
  const users = usersOf(context, settings);
  if (users.length > 0) {
    const message = `${path} stays: ${users.join(' and ')} still ${users.length > 1 ? 'name' : 'names'} it.`;
    return { shim: { path, result: 'kept', message }, settings };
  }
  const there = shimAt(path);
  if (there === 'absent') return { shim: { path, result: 'absent' }, settings };
  if (there === 'foreign') {
    return { shim: { path, result: 'kept', message: `${path} is not ours; it stays.` }, settings };
  }
  if (context.dryRun) return { shim: { path, result: 'wouldRemove' }, settings };
  const failed = removeShim(path);
  if (failed === undefined) return { shim: { path, result: 'removed' }, settings };
  return { shim: { path, result: 'failed', message: `${path} can’t be removed: ${failed}.` }, settings };
}

/** The named file; else those of the editors that are there; else stable VS Code's (S-840). */
function files(context: WrapperContext): readonly File[] {
  if (context.settings !== undefined) return [{ path: context.settings }];
  const [stable] = editorPlaces(context);
  const there = editorsHere(context);
  return (there.length > 0 ? there : [stable]).map(({ settings, label }) => ({ path: settings, label }));
}

/** The editors of the family whose settings folder is there. */
export function editorsHere(context: EditorContext): readonly EditorPlace[] {
  return editorPlaces(context).filter(({ folder }) => isFolder(folder));
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Every settings file that we can see and that still names the shim. One that can't be read may name it, too. */
function usersOf(context: WrapperContext, done: readonly SettingsDone[]): readonly string[] {
  const places = editorPlaces(context);
  const seen = places.flatMap((place) => [place.settings, ...profileSettings(place, context.platform)]);
  const all = [...new Set([...done.map(({ path }) => path), ...seen])];
  return all.filter((path) => {
    const cleared = done.some((one) => one.path === path && one.result === 'wouldChange');
    return !cleared && mayName(path, context);
  });
}

function mayName(path: string, { editor, shim }: WrapperContext): boolean {
  const read = editor.read(path, 'jsonc');
  if (read.kind === 'refused') return true;
  const pointing = pointingOf(read.data, shim);
  return pointing.kind === 'ours' && pointing.at === shim;
}

function setIn(file: File, context: WrapperContext, replace: boolean): SettingsDone {
  const { editor, shim } = context;
  const read = editor.read(file.path, 'jsonc');
  const pointing = read.kind === 'data' ? pointingOf(read.data, shim) : undefined;
  if (pointing?.kind === 'foreign' && !replace) {
    const message = `${file.path} names another wrapper, ${pointing.value}; --replace takes its place.`;
    return { ...file, result: 'left', message };
  }
  const proposed = editor.install(file.path, wrapperWiring(shim, replace));
  if (proposed.kind === 'refused') return refused(file, proposed, 'add');
  if (proposed.kind !== 'change') return { ...file, result: 'unchanged' };
  return doIt(file, proposed, context);
}

function clearIn(file: File, context: WrapperContext): SettingsDone {
  const { editor, shim } = context;
  const proposed = editor.remove(file.path, wrapperWiring(shim, false));
  if (proposed.kind === 'refused') return refused(file, proposed, 'remove');
  if (proposed.kind === 'change') return doIt(file, proposed, context);
  const read = editor.read(file.path, 'jsonc');
  const pointing = read.kind === 'data' ? pointingOf(read.data, shim) : undefined;
  if (pointing?.kind !== 'foreign') return { ...file, result: 'unchanged' };
  return {
    ...file,
    result: 'left',
    message: `${file.path} names another wrapper, ${pointing.value}; it stays.`,
  };
}

/** The exact line, and whether it is to be added or removed (S-841, C-342). */
function refused(file: File, refusal: FileRefusal, deed: 'add' | 'remove'): SettingsDone {
  const { byHand, message } = refusal;
  const lines = (deed === 'add' ? byHand.paste : byHand.remove)?.split('\n') ?? [];
  const entry = lines.filter((line) => line.includes(SETTING)).map((line) => line.trim());
  const what = deed === 'add' ? 'Add this line by hand' : 'Remove this line by hand, if it is there';
  const where = refusal.line === undefined ? '' : ` (line ${refusal.line})`;
  return {
    ...file,
    result: 'refused',
    message: `${file.path} ${message}${where}; it was not changed. ${what}: ${entry.join(' ')}`,
    byHand: entry,
  };
}

function doIt(file: File, change: Change, { editor, dryRun }: WrapperContext): SettingsDone {
  if (dryRun) return { ...file, result: 'wouldChange', diff: change.diff };
  const outcome = editor.commit(change);
  if (outcome.kind === 'written' || outcome.kind === 'removed') {
    const backup = outcome.backup === undefined ? {} : { backup: outcome.backup };
    return { ...file, result: 'changed', diff: change.diff, ...backup };
  }
  return { ...file, result: 'failed', message: `${file.path} ${reasonOf(outcome)}` };
}

function reasonOf(outcome: Exclude<Outcome, { kind: 'written' | 'removed' }>): string {
  switch (outcome.kind) {
    case 'conflict':
      return 'changed meanwhile; nothing was written. Try it again.';
    case 'failed':
      return `could not be written (${outcome.code}); it is as it was.`;
    case 'overwritten':
      return 'was written, and another program wrote it anew at once. Look at it.';
    case 'restored':
      return 'could not be written whole; its former text is there again.';
  }
}
