/** What the core needs from a format: to read a text, and to say how to change it. */
import type { Change, ReduceRules } from './change.ts';
import type { TextEdit } from './text-edit.ts';
import type { Span, TreeObject } from './tree.ts';

/**
 * `json` is strict; `jsonc` also has comments and trailing commas; `json5` also unquoted keys, single quotes
 * and the rest of JSON5. `env` has only text values at the top level.
 */
export type FormatId = 'json' | 'jsonc' | 'json5' | 'toml' | 'yaml' | 'env';

export interface FormatRules extends ReduceRules {
  /** A container that has become empty may no longer be written at all (TOML: the last `[[table]]`). */
  readonly emptiesVanish: boolean;
}

export interface Format {
  readonly id: FormatId;
  readonly rules: FormatRules;
  /** Reads a text; a blank one is an empty object (S-801). Never throws. */
  open(text: string): Opened;
}

export type Opened = { readonly kind: 'document'; readonly document: SourceDocument } | Unreadable;

/** Why a text is not edited. */
export interface Unreadable {
  readonly kind: 'unreadable';
  /**
   * `invalid`: not this format; `dialect`: only a wider form of it (a comment in strict JSON); `shape`: not an
   * object at the top; `documents`: more than one document in the file.
   */
  readonly code: 'invalid' | 'dialect' | 'shape' | 'documents';
  /** What is wrong, without the file's name, and never with its content. */
  readonly message: string;
  /** 1 for the first. */
  readonly line?: number;
}

/** A file nested deeper than this is not a configuration; it would only exhaust the stack. */
export const DEPTH_READ = 200;

export const TOO_DEEP: Unreadable = { kind: 'unreadable', code: 'invalid', message: 'is nested too deeply' };

export interface SourceDocument {
  readonly text: string;
  readonly root: TreeObject;
  /** In the order of the file. */
  readonly comments: readonly Span[];
  /** The edits that make a change which fits the data of this document. */
  change(change: Change): ChangeResult;
}

export type ChangeResult =
  | { readonly kind: 'edits'; readonly edits: readonly TextEdit[] }
  /** The format, or the way the file is written, has no safe place for it. */
  | { readonly kind: 'cannot'; readonly message: string };

export const edits = (...list: readonly TextEdit[]): ChangeResult => ({ kind: 'edits', edits: list });
export const cannot = (message: string): ChangeResult => ({ kind: 'cannot', message });
