/** What a user can do by hand where a file is not edited (R-23, S-841). Pure. */

import { reduce } from './change.ts';
import { type Data, type Path, showPath } from './data.ts';
import type { FormatId } from './document.ts';
import { FORMATS } from './formats.ts';
import { printJson } from './json/print.ts';
import type { Operation } from './operation.ts';
import { applyEdits, normalise } from './text-edit.ts';
import { dataOf } from './tree.ts';

export interface ByHand {
  /** Lines to add, as they would stand in a file with nothing else in it; `undefined` if there are none. */
  readonly paste: string | undefined;
  /** Lines to look for and take out, for a file in which they cannot be found; `undefined` if there are none. */
  readonly remove?: string | undefined;
  /** What else to do, one line each: values to change or remove, by their path. */
  readonly steps: readonly string[];
}

/** The operations in words and lines; for an operation that adds, its place is seen from the lines around it. */
export function byHand(format: FormatId, operations: readonly Operation[]): ByHand {
  const adding = operations.filter(isAdding);
  const paste = adding.reduce((text, operation) => added(text, operation, format), '');
  return {
    paste: paste === '' ? undefined : paste,
    steps: operations.filter((operation) => !isAdding(operation)).map(describe),
  };
}

function isAdding(operation: Operation): boolean {
  const kinds: readonly Operation['kind'][] = ['setValue', 'ensureObject', 'appendToArray'];
  return kinds.includes(operation.kind) && operation.path.every((step) => typeof step === 'string');
}

function added(text: string, operation: Operation, format: FormatId): string {
  const opened = FORMATS[format].open(text);
  if (opened.kind === 'unreadable') return text;
  const reduced = reduce(dataOf(opened.document.root), operation, FORMATS[format].rules);
  const [change] = reduced.kind === 'changes' ? reduced.changes : [];
  const result = change === undefined ? undefined : opened.document.change(change);
  return result?.kind === 'edits' ? applyEdits(text, normalise(result.edits)) : text;
}

function describe(operation: Operation): string {
  switch (operation.kind) {
    case 'removeKey':
      return `remove ${showPath(operation.path)}`;
    case 'removeFromArray':
      return `remove ${showPath([...operation.path, operation.index])}`;
    case 'replaceInArray':
      return set([...operation.path, operation.index], operation.value);
    case 'setValue':
      return set(operation.path, operation.value);
    case 'appendToArray':
      return `add to ${showPath(operation.path)}: ${show(operation.value)}`;
    case 'ensureObject':
      return set(operation.path, {});
  }
}

const set = (path: Path, value: Data): string => `set ${showPath(path)} to ${show(value)}`;

const show = (value: Data): string =>
  printJson(value, { kind: 'inline' }, { unit: '', colon: ': ', separator: ', ' }) ?? 'its value';
