import { socketPathIn } from '../../runtime/daemon/endpoint.ts';
import { readBounded, writePrivate } from '../../runtime/files/private-file.ts';
import { removeFile } from '../../runtime/files/remove-file.ts';
import { unifiedDiff } from '../edit/diff.ts';
import type { Outcome } from '../edit/editor.ts';
import { type Extension, GENERATION, generationOf } from '../extensions/generate.ts';
import type { Certainty, HooksContext, HooksPlan, HooksStatus, PlannedChange } from './integration.ts';

/**
 * A whole file of ours in a program's extensions folder (S-830). Whose it is, its first line says: a file of the same
 * name without it is never written, and never removed.
 */
export interface ExtensionFile {
  readonly path: string;
  readonly extension: Extension;
}

/** Larger than any text of ours by far. */
const READ_BYTES = 4 * 1024 * 1024;

type Found =
  | { readonly kind: 'none' }
  | { readonly kind: 'ours'; readonly bytes: Buffer; readonly generation: number }
  | { readonly kind: 'theirs'; readonly why: string };

function lookAt({ path, extension }: ExtensionFile): Found {
  const read = readBounded(path, READ_BYTES);
  switch (read.kind) {
    case 'missing':
      return { kind: 'none' };
    case 'read': {
      const generation = generationOf(read.bytes.toString('utf8'), extension.runtimeId);
      if (generation !== undefined) return { kind: 'ours', bytes: read.bytes, generation };
      return { kind: 'theirs', why: 'it does not begin with our header, so it is somebody else’s' };
    }
    case 'unreadable':
      return { kind: 'theirs', why: `it can’t be read (${read.code})` };
    default:
      return { kind: 'theirs', why: 'it is no file of ours' };
  }
}

function textFor({ extension }: ExtensionFile, { connectorHome, platform }: HooksContext): string {
  return extension.text(socketPathIn(connectorHome), platform);
}

function refused(path: string, why: string): HooksPlan {
  return {
    kind: 'refused',
    path,
    message: `${path} is left as it is: ${why}.`,
    byHand: ['Move that file away, then run install-hooks again.'],
  };
}

/** What installing would do. `afterwards` are the sentences of a change that was made. */
export function planInstallFile(
  file: ExtensionFile,
  context: HooksContext,
  afterwards: readonly string[],
): HooksPlan {
  const found = lookAt(file);
  if (found.kind === 'theirs') return refused(file.path, found.why);
  const text = textFor(file, context);
  const before = found.kind === 'ours' ? found.bytes : null;
  if (before?.equals(Buffer.from(text))) return { kind: 'nothing', files: [file.path], notes: [] };
  const change: PlannedChange = {
    path: file.path,
    does: before === null ? 'write our extension' : 'renew our extension',
    diff: unifiedDiff(file.path, before?.toString('utf8') ?? null, text),
    commit: () => write(file.path, text, before),
  };
  return { kind: 'changes', changes: [change], notes: [], afterwards };
}

/** What uninstalling would do; goes by the header alone (S-830). */
export function planRemoveFile(file: ExtensionFile, afterwards: readonly string[]): HooksPlan {
  const found = lookAt(file);
  if (found.kind === 'none') return { kind: 'nothing', files: [file.path], notes: [] };
  if (found.kind === 'theirs') {
    return { kind: 'nothing', files: [file.path], notes: [`${file.path} is left as it is: ${found.why}.`] };
  }
  const { bytes } = found;
  const change: PlannedChange = {
    path: file.path,
    does: 'remove our extension',
    diff: unifiedDiff(file.path, bytes.toString('utf8'), null),
    commit: () => remove(file.path, bytes),
  };
  return { kind: 'changes', changes: [change], notes: [], afterwards };
}

function write(path: string, text: string, expected: Buffer | null): Outcome {
  const result = writePrivate(path, text, { expected });
  switch (result.kind) {
    case 'conflict':
      return { kind: 'conflict', file: result.path };
    case 'failed':
      return { kind: 'failed', file: result.path, code: result.code, while: 'write' };
    default:
      return { kind: 'written', file: result.path, backup: undefined };
  }
}

function remove(path: string, bytes: Buffer): Outcome {
  const result = removeFile(path, bytes);
  if (result.kind === 'removed') return { kind: 'removed', file: result.path, backup: undefined };
  if (result.kind === 'conflict') return { kind: 'conflict', file: result.path };
  return { kind: 'failed', file: result.path, code: result.code, while: 'write' };
}

/** What is known of the file; the marked event has no command to go through here. */
export function fileStatus(file: ExtensionFile, context: HooksContext, present: boolean): HooksStatus {
  const found = lookAt(file);
  return {
    present,
    files: [file.path],
    trusted: 'unneeded',
    commands: [],
    ...installedOf(file, found, context),
  };
}

function installedOf(
  file: ExtensionFile,
  found: Found,
  context: HooksContext,
): { readonly installed: Certainty; readonly notes: readonly string[] } {
  if (found.kind === 'none') return { installed: 'no', notes: [] };
  if (found.kind === 'theirs') return { installed: 'no', notes: [`${file.path}: ${found.why}.`] };
  if (found.bytes.equals(Buffer.from(textFor(file, context)))) return { installed: 'yes', notes: [] };
  const other =
    found.generation === GENERATION
      ? 'It was changed, or reports to another connector home.'
      : `It is of generation ${found.generation}; this program writes ${GENERATION}.`;
  return { installed: 'partly', notes: [`${other} install-hooks renews it.`] };
}
