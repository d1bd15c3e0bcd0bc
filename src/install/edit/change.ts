/**
 * The four elementary changes that a format makes to a text, and what they mean for the data.
 *
 * Operations are reduced to them against the data that is there, so formats neither look for missing parents
 * nor decide what is already so. {@link applyChange} is the meaning; what a format wrote is checked against it.
 */
import {
  childOf,
  type Data,
  isArray,
  isObject,
  isWithin,
  lookup,
  nameKind,
  type Path,
  sameData,
  showPath,
} from './data.ts';
import type { Operation } from './operation.ts';

export type Change =
  /** A key that is not there yet, into an object that is. */
  | { readonly kind: 'insert'; readonly at: Path; readonly key: string; readonly value: Data }
  /** A new last item of an array that is there. */
  | { readonly kind: 'append'; readonly at: Path; readonly value: Data }
  | { readonly kind: 'replace'; readonly at: Path; readonly value: Data }
  /** A key or an item that is there. */
  | { readonly kind: 'remove'; readonly at: Path };

export interface ReduceRules {
  /** A key without a value is an empty object or array (YAML's `plugins:`). */
  readonly nullIsEmpty: boolean;
}

export type Reduced =
  /** `made`: the containers that come into being around the value, outermost first; not one that was null. */
  | { readonly kind: 'changes'; readonly changes: readonly Change[]; readonly made: readonly Path[] }
  /** The file has another shape than the operation needs; it is not repaired (S-803). */
  | { readonly kind: 'misfit'; readonly at: Path; readonly message: string };

const NOTHING: Reduced = { kind: 'changes', changes: [], made: [] };

/** What an operation comes to, given what the file says now. The changes are meant one after the other. */
export function reduce(data: Data, operation: Operation, rules: ReduceRules): Reduced {
  switch (operation.kind) {
    case 'setValue':
      return place(data, operation.path, rules, {
        missing: operation.value,
        found: (found) => changes(refine(operation.path, found, operation.value)),
        container: false,
      });
    case 'replaceInArray':
      return place(data, [...operation.path, operation.index], rules, {
        missing: operation.value,
        found: (found) => changes(refine([...operation.path, operation.index], found, operation.value)),
        container: false,
      });
    case 'ensureObject':
      return place(data, operation.path, rules, {
        missing: {},
        found: (found) => {
          const fits = isObject(found) || (found === null && rules.nullIsEmpty);
          return fits ? NOTHING : misfit(operation.path, found, 'an object');
        },
        container: true,
      });
    case 'appendToArray':
      return place(data, operation.path, rules, {
        missing: [operation.value],
        found: (found) => append(operation.path, found, operation.value, rules),
        container: true,
      });
    case 'removeKey':
      return lookup(data, operation.path) === undefined ? NOTHING : remove(operation.path);
    case 'removeFromArray': {
      const array = lookup(data, operation.path);
      if (!isArray(array)) return misfit(operation.path, array, 'a list');
      const at = [...operation.path, operation.index];
      return array[operation.index] === undefined ? misfit(at, undefined, 'an item') : remove(at);
    }
  }
}

/** The data after a change that {@link reduce} gave for it. */
export function applyChange(data: Data, change: Change): Data {
  switch (change.kind) {
    case 'insert':
      return update(data, change.at, (object) =>
        isObject(object) ? { ...object, [change.key]: change.value } : object,
      );
    case 'append':
      return update(data, change.at, (array) => (isArray(array) ? [...array, change.value] : array));
    case 'replace':
      return update(data, change.at, () => change.value);
    case 'remove':
      return without(data, change.at);
  }
}

/** The data without the key or item at `path`; the same data where there is none. */
export function without(data: Data, path: Path): Data {
  const step = path.at(-1);
  if (step === undefined) return data;
  return update(data, path.slice(0, -1), (parent) => {
    if (isArray(parent)) return parent.filter((_, index) => index !== step);
    if (!isObject(parent)) return parent;
    return Object.fromEntries(Object.entries(parent).filter(([key]) => key !== step));
  });
}

/** The changes that turn `from` into `to`, touching as little as possible. */
export function refine(at: Path, from: Data, to: Data): readonly Change[] {
  if (sameData(from, to)) return [];
  if (isObject(from) && isObject(to)) {
    return [
      ...Object.keys(from)
        .filter((key) => !Object.hasOwn(to, key))
        .map((key): Change => ({ kind: 'remove', at: [...at, key] })),
      ...Object.entries(to).flatMap(([key, value]): readonly Change[] => {
        const old = childOf(from, key);
        return old === undefined ? [{ kind: 'insert', at, key, value }] : refine([...at, key], old, value);
      }),
    ];
  }
  return isArray(from) && isArray(to) ? refineArray(at, from, to) : [{ kind: 'replace', at, value: to }];
}

function refineArray(at: Path, from: readonly Data[], to: readonly Data[]): readonly Change[] {
  if (from.length === to.length) {
    return to.flatMap((value, index) => refine([...at, index], from[index] ?? null, value));
  }
  const head = countWhile(from, (item, index) => index < to.length && sameData(item, to[index]));
  if (head === from.length) {
    return to.slice(head).map((value): Change => ({ kind: 'append', at, value }));
  }
  const gone = from.length - to.length;
  const closesUp =
    gone > 0 && to.slice(head).every((item, index) => sameData(item, from[head + gone + index]));
  if (!closesUp) return [{ kind: 'replace', at, value: to }];
  return Array.from(
    { length: gone },
    (_, index): Change => ({
      kind: 'remove',
      at: [...at, head + gone - 1 - index],
    }),
  );
}

interface Placing {
  /** The value where nothing is there. */
  readonly missing: Data;
  /** What to do with what is there. */
  found(found: Data): Reduced;
  /** The value itself is one of the containers that are made. */
  readonly container: boolean;
}

function place(
  data: Data,
  path: Path,
  rules: ReduceRules,
  placing: Placing,
  depth = 0,
  here = data,
): Reduced {
  const step = path[depth];
  if (step === undefined) return placing.found(here);
  const at = path.slice(0, depth);
  const child = childOf(here, step);
  if (child !== undefined) return place(data, path, rules, placing, depth + 1, child);
  const made = path
    .map((_, index) => path.slice(0, index + 1))
    .slice(depth, placing.container ? path.length : path.length - 1);
  const fillsNull = here === null && depth > 0 && rules.nullIsEmpty;
  if (typeof step === 'number' || !(isObject(here) || fillsNull)) {
    return typeof step === 'number' && isArray(here)
      ? misfit([...at, step], undefined, 'an item')
      : misfit(at, here, typeof step === 'number' ? 'a list' : 'an object');
  }
  const nested = nest(path.slice(depth + 1), placing.missing);
  if (nested === undefined) return misfit(path.slice(0, depth + 1), undefined, 'a list');
  if (!fillsNull)
    return { kind: 'changes', changes: [{ kind: 'insert', at, key: step, value: nested }], made };
  return { kind: 'changes', changes: [{ kind: 'replace', at, value: { [step]: nested } }], made };
}

function nest(path: Path, value: Data): Data | undefined {
  const [step, ...rest] = path;
  if (step === undefined) return value;
  if (typeof step === 'number') return undefined;
  const inner = nest(rest, value);
  return inner === undefined ? undefined : { [step]: inner };
}

function append(at: Path, found: Data, value: Data, rules: ReduceRules): Reduced {
  if (isArray(found)) return changes([{ kind: 'append', at, value }]);
  if (found !== null || !rules.nullIsEmpty) return misfit(at, found, 'a list');
  return { kind: 'changes', changes: [{ kind: 'replace', at, value: [value] }], made: [] };
}

function update(data: Data, path: Path, to: (old: Data) => Data): Data {
  const [step, ...rest] = path;
  if (step === undefined) return to(data);
  const child = childOf(data, step);
  if (child === undefined) return data;
  const updated = update(child, rest, to);
  if (isArray(data)) return data.map((item, index) => (index === step ? updated : item));
  return isObject(data) ? { ...data, [step]: updated } : data;
}

const changes = (list: readonly Change[]): Reduced => ({ kind: 'changes', changes: list, made: [] });
const remove = (at: Path): Reduced => changes([{ kind: 'remove', at }]);

function misfit(at: Path, found: Data | undefined, wanted: string): Reduced {
  return { kind: 'misfit', at, message: `${showPath(at)} is ${nameKind(found)}, not ${wanted}` };
}

function countWhile<T>(items: readonly T[], test: (item: T, index: number) => boolean): number {
  const stop = items.findIndex((item, index) => !test(item, index));
  return stop === -1 ? items.length : stop;
}

/** Where the value of a change lies, before it (`remove`, `replace`) and after it (all but `remove`). */
export function targetOf(change: Change, before: Data): Path {
  if (change.kind === 'insert') return [...change.at, change.key];
  if (change.kind !== 'append') return change.at;
  const array = lookup(before, change.at);
  return [...change.at, isArray(array) ? array.length : 0];
}

/** Where something foreign at `path` lies after the change; `undefined` if the change is about it. */
export function mapPath(path: Path, change: Change, before: Data): Path | undefined {
  const target = targetOf(change, before);
  if (isWithin(path, target)) return undefined;
  const index = target.at(-1);
  const depth = target.length - 1;
  const step = path[depth];
  if (change.kind !== 'remove' || typeof index !== 'number' || typeof step !== 'number') return path;
  if (!isWithin(path, target.slice(0, -1)) || step < index) return path;
  return [...path.slice(0, depth), step - 1, ...path.slice(depth + 1)];
}
