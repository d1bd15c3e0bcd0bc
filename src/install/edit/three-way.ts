/** What undoing a change means for data that has changed again since. Pure. */
import { childOf, type Data, isArray, isObject, sameData } from './data.ts';

/**
 * `now` with the change from `before` to `after` taken back; `undefined` where the two are about the same
 * value, or where items of a list would have to move (T1: the position of a foreign hook is its identity).
 */
export function takeBack(before: Data, after: Data, now: Data): Data | undefined {
  const result = reverse(before, after, now);
  return result === CONFLICT || result === ABSENT ? undefined : result;
}

const ABSENT = Symbol('absent');
const CONFLICT = Symbol('conflict');
type Maybe = Data | typeof ABSENT;

function reverse(before: Maybe, after: Maybe, now: Maybe): Maybe | typeof CONFLICT {
  if (same(after, now)) return before;
  if (same(before, after)) return now;
  if (before === ABSENT || after === ABSENT || now === ABSENT) return reverseMade(before, after, now);
  if (isObject(after) && isObject(now)) return reverseKeys(isObject(before) ? before : {}, after, now);
  if (!isArray(before) || !isArray(after) || !isArray(now)) return CONFLICT;
  if (before.length !== after.length || after.length !== now.length) return CONFLICT;
  const items = now.map((item, index) => reverse(child(before, index), child(after, index), item));
  return items.every(isData) ? items : CONFLICT;
}

/** An object of ours that someone has put something into stays, without what is ours. */
function reverseMade(before: Maybe, after: Maybe, now: Maybe): Maybe | typeof CONFLICT {
  if (before !== ABSENT || after === ABSENT || now === ABSENT) return CONFLICT;
  return isObject(after) && isObject(now) ? reverseKeys({}, after, now) : CONFLICT;
}

function reverseKeys(before: Data, after: Data, now: Data): Data | typeof CONFLICT {
  const keys = new Set([before, after, now].flatMap((data) => (isObject(data) ? Object.keys(data) : [])));
  const entries: [string, Data][] = [];
  for (const key of keys) {
    const value = reverse(child(before, key), child(after, key), child(now, key));
    if (value === CONFLICT) return CONFLICT;
    if (value !== ABSENT) entries.push([key, value]);
  }
  return Object.fromEntries(entries);
}

const isData = (value: Maybe | typeof CONFLICT): value is Data => value !== ABSENT && value !== CONFLICT;

function child(data: Data, step: string | number): Maybe {
  const value = childOf(data, step);
  return value === undefined ? ABSENT : value;
}

function same(a: Maybe, b: Maybe): boolean {
  return a === ABSENT || b === ABSENT ? a === b : sameData(a, b);
}
