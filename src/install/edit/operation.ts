/**
 * The closed set of edits that callers ask for, the same for every format.
 *
 * Each is idempotent in what it leaves behind, except `appendToArray` and `removeFromArray`, which callers ask
 * for only after looking at the data.
 */
import type { Data, Path } from './data.ts';

export type Operation =
  /** Sets a key, or an item that exists. Parents that are missing are made; what already says so is left. */
  | { readonly kind: 'setValue'; readonly path: Path; readonly value: Data }
  /** Takes a key away; nothing happens if it is not there. */
  | { readonly kind: 'removeKey'; readonly path: Path }
  /** Makes an empty object if there is none. */
  | { readonly kind: 'ensureObject'; readonly path: Path }
  /** Adds behind all others (T1: positions of the others stay); makes the array if there is none. */
  | { readonly kind: 'appendToArray'; readonly path: Path; readonly value: Data }
  | { readonly kind: 'replaceInArray'; readonly path: Path; readonly index: number; readonly value: Data }
  | { readonly kind: 'removeFromArray'; readonly path: Path; readonly index: number };

/**
 * Sets `path` to `value`. Where both the old and the new value are objects only what differs is touched, so
 * comments and order inside stay.
 */
export const setValue = (path: Path, value: Data): Operation => ({ kind: 'setValue', path, value });

export const removeKey = (path: Path): Operation => ({ kind: 'removeKey', path });

export const ensureObject = (path: Path): Operation => ({ kind: 'ensureObject', path });

export const appendToArray = (path: Path, value: Data): Operation => ({ kind: 'appendToArray', path, value });

/** Replaces an item in its place (S-812); the index must exist. */
export const replaceInArray = (path: Path, index: number, value: Data): Operation => ({
  kind: 'replaceInArray',
  path,
  index,
  value,
});

/** Takes an item out; those behind it move up. The index must exist. */
export const removeFromArray = (path: Path, index: number): Operation => ({
  kind: 'removeFromArray',
  path,
  index,
});
