/**
 * What a configuration file says, whatever its format: JSON-like values, plus what JSON lacks.
 *
 * Pure. Objects compare without regard to the order of their keys; the order in the file is kept by editing
 * the text, never by printing data.
 */

/** A value that JSON has no word for (a TOML date, `nan`, a JSON5 `Infinity`), as it is written in the file. */
export class Verbatim {
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }
}

/** Whole numbers beyond 2^53 are `bigint`, so that they are neither rounded nor written back. */
export type Data = null | boolean | number | bigint | string | Verbatim | readonly Data[] | DataObject;

export interface DataObject {
  readonly [key: string]: Data;
}

/** Where a value lies: keys of objects, and positions in arrays. `[]` is the whole file. */
export type Path = readonly (string | number)[];

export const isArray = (data: Data | undefined): data is readonly Data[] => Array.isArray(data);

export function isObject(data: Data | undefined): data is DataObject {
  return typeof data === 'object' && data !== null && !isArray(data) && !(data instanceof Verbatim);
}

/** The value at a path; `undefined` where there is none. Never looks into the prototype. */
export function lookup(data: Data, path: Path): Data | undefined {
  const [step, ...rest] = path;
  if (step === undefined) return data;
  const child = childOf(data, step);
  return child === undefined ? undefined : lookup(child, rest);
}

export function childOf(data: Data, step: string | number): Data | undefined {
  if (typeof step === 'number') return isArray(data) ? data[step] : undefined;
  return isObject(data) && Object.hasOwn(data, step) ? data[step] : undefined;
}

/** Whether two values say the same; with `nullIsEmpty`, `null` also equals an empty object or array. */
export function sameData(a: Data | undefined, b: Data | undefined, nullIsEmpty = false): boolean {
  if (a === b) return true;
  if (nullIsEmpty && ((a === null && isEmpty(b)) || (b === null && isEmpty(a)))) return true;
  if (isArray(a)) {
    if (!isArray(b) || a.length !== b.length) return false;
    return a.every((item, index) => sameData(item, b[index], nullIsEmpty));
  }
  if (isObject(a)) {
    if (!isObject(b)) return false;
    const keys = Object.keys(a);
    return (
      keys.length === Object.keys(b).length &&
      keys.every((key) => Object.hasOwn(b, key) && sameData(a[key], b[key], nullIsEmpty))
    );
  }
  return a instanceof Verbatim && b instanceof Verbatim && a.source === b.source;
}

/** An object or array without content. */
export function isEmpty(data: Data | undefined): boolean {
  if (isArray(data)) return data.length === 0;
  return isObject(data) && Object.keys(data).length === 0;
}

/** A whole number as `number` where that is exact, else as `bigint`. */
export function wholeNumber(value: bigint): number | bigint {
  const small = Number(value);
  return Number.isSafeInteger(small) ? small : value;
}

export const samePath = (a: Path, b: Path): boolean => a.length === b.length && isWithin(a, b);

/** Whether `path` is `ancestor` or lies below it. */
export const isWithin = (path: Path, ancestor: Path): boolean =>
  ancestor.length <= path.length && ancestor.every((step, index) => step === path[index]);

/** A path as people write it: `hooks.Stop[0].command`; keys that need it are quoted. */
export function showPath(path: Path): string {
  if (path.length === 0) return 'the top level';
  return path
    .map((step, index) => {
      if (typeof step === 'number') return `[${step}]`;
      const word = /^[\p{L}\p{N}_$-]+$/u.test(step) ? step : JSON.stringify(step);
      return index === 0 ? word : `.${word}`;
    })
    .join('');
}

/** What kind of value this is, in words for a message. */
export function nameKind(data: Data | undefined): string {
  if (data === undefined) return 'missing';
  if (data === null) return 'empty (null)';
  if (isArray(data)) return 'a list';
  if (isObject(data)) return 'an object';
  if (typeof data === 'string') return 'text';
  return typeof data === 'boolean' ? 'true or false' : 'a single value';
}
