/**
 * Edits settings files of other programs: looks, proposes, and on demand does what it proposed.
 *
 * Nothing is written that was not proposed first (H12: the file must still be the one that was looked at), no
 * byte is written that does not differ (T5), and nothing without a backup. Links stay links (H9), mode and
 * owner stay. What was written is read back.
 */
import { type Stats, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { waitForLock } from '../../runtime/daemon/lock.ts';
import { errorCode } from '../../runtime/files/file-system.ts';
import { followLinks, readBounded, type WriterPort, writePrivate } from '../../runtime/files/private-file.ts';
import { removeEmptyFolders, removeFile } from '../../runtime/files/remove-file.ts';
import { ensureHome } from '../../runtime/store/home.ts';
import { type ByHand, byHand } from './by-hand.ts';
import type { Data } from './data.ts';
import { unifiedDiff } from './diff.ts';
import type { FormatId } from './document.ts';
import { type Step, settle } from './history.ts';
import { type Proposal, proposeInstall, proposeRemoval, proposeUndo } from './lifecycle.ts';
import { type Refusal, readData } from './plan.ts';
import { createRecords, decode, SETTINGS_BYTES } from './records.ts';
import type { Wiring } from './wiring.ts';

export interface EditorOptions {
  /** The connector home. */
  readonly home: string;
  now(): Date;
  readonly port?: WriterPort;
}

export type Proposed =
  | Change
  /** It is all as it should be. */
  | { readonly kind: 'nothing'; readonly path: string }
  | FileRefusal
  /** An undo would touch what someone has changed since; `diff` leads from what we wrote to what is there. */
  | { readonly kind: 'changed-since'; readonly path: string; readonly diff: string };

/** What {@link Editor.commit} does when it is asked to. */
export interface Change {
  readonly kind: 'change';
  /** As it was named. */
  readonly path: string;
  /** The file itself, at the end of any links. */
  readonly file: string;
  /** `null`: there is no file. */
  readonly before: string | null;
  readonly after: string | null;
  /** Unified, for `--dry-run`. It may show secrets that stand in the lines around. */
  readonly diff: string;
  readonly proposal: Extract<Proposal, { kind: 'step' | 'undo' }>;
}

export interface FileRefusal {
  readonly kind: 'refused';
  readonly path: string;
  /**
   * Those of {@link Refusal}; `unreadable` (with the system's code in the message), `not-a-file`, `too-large`,
   * `encoding` (not UTF-8); `read-only`: its owner may not write it, so it was closed on purpose;
   * `hard-linked`: replacing it would part it from its other name.
   */
  readonly code:
    | Refusal['code']
    | 'unreadable'
    | 'not-a-file'
    | 'too-large'
    | 'encoding'
    | 'read-only'
    | 'hard-linked';
  /** A sentence without its subject, the file. */
  readonly message: string;
  readonly line?: number;
  readonly byHand: ByHand;
}

export type Outcome =
  /** `backup` holds the former text; none if there was no file. */
  | { readonly kind: 'written'; readonly file: string; readonly backup: string | undefined }
  | { readonly kind: 'removed'; readonly file: string; readonly backup: string | undefined }
  /** The file is no longer the one that was looked at; nothing was written. Look again. */
  | { readonly kind: 'conflict'; readonly file: string }
  /** Nothing was written. `while` says at what. */
  | {
      readonly kind: 'failed';
      readonly file: string;
      readonly code: string;
      readonly while: 'backup' | 'write';
    }
  /** Written, but a program wrote the file again at once (H11), and what is there now is its. */
  | { readonly kind: 'overwritten'; readonly file: string }
  /** What was read back made no sense; the former text is there again. */
  | { readonly kind: 'restored'; readonly file: string };

export interface Editor {
  /** What a file says; for `doctor`, and for callers that only look. */
  read(path: string, format: FormatId): { readonly kind: 'data'; readonly data: Data } | FileRefusal;
  install(path: string, wiring: Wiring): Proposed;
  remove(path: string, wiring: Wiring): Proposed;
  /** Takes back the last step that was done on the file. */
  undo(path: string): Proposed;
  /** When the last step that still stands was done on the file, ISO 8601; `undefined` if there is none. */
  lastStepAt(path: string): string | undefined;
  commit(change: Change): Outcome;
}

/** An edit takes milliseconds; whoever holds the lock for so long is stopped, and its file may be half done. */
const LOCK_MS = 2_000;

const NO_HANDS: ByHand = { paste: undefined, steps: [] };

export function createEditor(options: EditorOptions): Editor {
  const records = createRecords(options.home, options.port);
  const port = options.port === undefined ? {} : { port: options.port };

  function propose(
    path: string,
    hand: () => ByHand,
    make: (now: string | null, steps: readonly Step[]) => Proposal,
  ): Proposed {
    const found = look(path);
    if (found.kind === 'refused') return { ...found, byHand: hand() };
    const { file, text: before, closed } = found;
    const proposal = make(before, settle(records.load(file), before));
    if (proposal.kind === 'nothing') return { kind: 'nothing', path };
    if (proposal.kind === 'refused') return { ...proposal, path };
    // Only now: a closed file in which there is nothing to do stands in nobody's way.
    if (closed !== undefined) return { ...closed, byHand: hand() };
    if (proposal.kind === 'changed-since') {
      return { kind: 'changed-since', path, diff: unifiedDiff(path, proposal.after, before) };
    }
    const { after } = proposal;
    return { kind: 'change', path, file, before, after, diff: unifiedDiff(path, before, after), proposal };
  }

  /** Alone: two of us at once would each write down the steps as if the other had done nothing. */
  function commit(change: Change): Outcome {
    ensureHome(options.home);
    const lock = waitForLock(join(options.home, 'edits.lock'), LOCK_MS);
    if (lock.kind === 'busy') return { kind: 'conflict', file: change.file };
    try {
      return commitAlone(change);
    } finally {
      if (lock.kind === 'held') lock.release();
    }
  }

  function commitAlone(change: Change): Outcome {
    const { file, before, proposal } = change;
    const found = look(change.path);
    if (found.kind === 'file' && found.text !== before) return { kind: 'conflict', file };
    const recorded = records.load(file);
    const steps = settle(recorded, before);
    const missing = change.after === null ? [] : missingFolders(file);
    const backup = records.backupOf(file, proposal.kind === 'undo' ? proposal.undone : proposal.step);
    if (proposal.kind === 'step') {
      const step = { ...proposal.step, folders: [...proposal.step.folders, ...missing] };
      const failed = records.save(file, [...steps, { ...step, at: options.now().toISOString() }]);
      if (failed !== undefined) return { kind: 'failed', file, code: failed, while: 'backup' };
    }
    const outcome = put(change, backup);
    const stands = outcome.kind === 'written' || outcome.kind === 'removed' || outcome.kind === 'overwritten';
    if (stands && proposal.kind === 'undo') records.save(file, steps.slice(0, -1));
    if (!stands && proposal.kind === 'step') records.save(file, recorded);
    return outcome;
  }

  function put(change: Change, backup: string | undefined): Outcome {
    const { path, file, before, after, proposal } = change;
    if (!leadsTo(path, file)) return { kind: 'conflict', file };
    if (after === null) {
      const result = removeFile(file, encode(before ?? ''));
      if (result.kind === 'failed') return { kind: 'failed', file, code: result.code, while: 'write' };
      if (result.kind === 'conflict') return { kind: 'conflict', file };
      removeEmptyFolders(proposal.kind === 'undo' ? proposal.undone.folders : proposal.step.folders);
      return { kind: 'removed', file, backup };
    }
    const result = writePrivate(file, after, { keep: true, expected: before, ...port });
    if (result.kind === 'failed') return { kind: 'failed', file, code: result.code, while: 'write' };
    if (result.kind === 'conflict') return { kind: 'conflict', file };
    return readBack(change, backup);
  }

  /** Bytes that make no sense are ours to mend; valid ones are someone else's, and are never fought over. */
  function readBack(change: Change, backup: string | undefined): Outcome {
    const { file, before, after, proposal } = change;
    const read = readBounded(file, SETTINGS_BYTES);
    const text = read.kind === 'read' ? decode(read.bytes) : undefined;
    if (text === after) return { kind: 'written', file, backup };
    const { format } = proposal.kind === 'undo' ? proposal.undone : proposal.step;
    const isSound = text !== undefined && readData(text, format).kind === 'data';
    if (isSound || read.kind !== 'read') return { kind: 'overwritten', file };
    if (before === null) removeFile(file, read.bytes);
    else writePrivate(file, before, { keep: true, expected: read.bytes, ...port });
    return { kind: 'restored', file };
  }

  return {
    read(path, format) {
      const found = look(path);
      if (found.kind === 'refused') return found;
      const read = readData(found.text, format);
      if (read.kind === 'data') return read;
      return { ...read, kind: 'refused', path, byHand: NO_HANDS };
    },
    install: (path, wiring) =>
      propose(
        path,
        () => byHand(wiring.format, wiring.install({})),
        (now, steps) => proposeInstall(now, steps, wiring),
      ),
    remove: (path, wiring) =>
      propose(
        path,
        () => ({ ...NO_HANDS, remove: byHand(wiring.format, wiring.install({})).paste }),
        (now, steps) => proposeRemoval(now, steps, wiring),
      ),
    undo: (path) => propose(path, () => NO_HANDS, proposeUndo),
    lastStepAt(path) {
      const found = look(path);
      return found.kind === 'refused' ? undefined : settle(records.load(found.file), found.text).at(-1)?.at;
    },
    commit,
  };
}

interface Looked {
  readonly kind: 'file';
  readonly file: string;
  readonly text: string | null;
  /** Why it can be read, and not written. */
  readonly closed?: FileRefusal;
}

function look(path: string): Looked | FileRefusal {
  const refuse = (code: FileRefusal['code'], message: string): FileRefusal => ({
    kind: 'refused',
    path,
    code,
    message,
    byHand: NO_HANDS,
  });
  try {
    const file = followLinks(path);
    const stats = statSync(file, { throwIfNoEntry: false });
    if (stats === undefined) return { kind: 'file', file, text: null };
    if (!stats.isFile()) return refuse('not-a-file', 'is not a file');
    const closed = closedAgainst(stats);
    const read = readBounded(file, SETTINGS_BYTES);
    if (read.kind === 'too-large') return refuse('too-large', `is larger than ${SETTINGS_BYTES} bytes`);
    if (read.kind !== 'read') return refuse('unreadable', `cannot be read (${reasonOf(read)})`);
    const text = decode(read.bytes);
    if (text === undefined) return refuse('encoding', 'is not UTF-8 text');
    return { kind: 'file', file, text, ...(closed === undefined ? {} : { closed: refuse(...closed) }) };
  } catch (error) {
    return refuse('unreadable', `cannot be read (${errorCode(error)})`);
  }
}

function closedAgainst(stats: Stats): [FileRefusal['code'], string] | undefined {
  if ((stats.mode & 0o200) === 0) return ['read-only', 'is read-only'];
  if (stats.nlink > 1)
    return ['hard-linked', 'has a second name (a hard link), which replacing it would cut off'];
  return undefined;
}

/** Whether a path still ends at the file that was looked at. */
function leadsTo(path: string, file: string): boolean {
  try {
    return followLinks(path) === file;
  } catch {
    // A link that cannot be followed any more leads somewhere else.
    return false;
  }
}

const reasonOf = (read: { readonly kind: string; readonly code?: string }): string => read.code ?? read.kind;

function missingFolders(file: string): readonly string[] {
  const folder = dirname(file);
  if (folder === file || statSync(folder, { throwIfNoEntry: false }) !== undefined) return [];
  return [...missingFolders(folder), folder];
}

const encode = (text: string): Buffer => Buffer.from(text, 'utf8');
