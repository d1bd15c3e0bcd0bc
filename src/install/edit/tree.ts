/**
 * What every reader of a format gives: the values with their places in the text.
 *
 * Readers extend these shapes with what their own editing needs. Pure.
 */
import type { Data, Path } from './data.ts';

/** `end` is the offset behind the last unit. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

export type TreeNode = TreeObject | TreeArray | TreeScalar;

export interface TreeScalar {
  readonly kind: 'scalar';
  readonly value: Data;
  readonly source: string;
}

/** A place for a value: all the text that goes when the value goes, without blanks and separators. */
export interface Slot {
  readonly value: TreeNode;
  readonly spans: readonly Span[];
}

export interface TreeEntry extends Slot {
  readonly key: string;
  /** The key as it is written; empty where it stands in several places. */
  readonly keySource: string;
}

export interface TreeArray {
  readonly kind: 'array';
  readonly items: readonly Slot[];
}

export interface TreeObject {
  readonly kind: 'object';
  /** In the order of the file; a key may be there twice, the last one counts. */
  readonly entries: readonly TreeEntry[];
}

/** What the text says. */
export function dataOf(node: TreeNode): Data {
  if (node.kind === 'scalar') return node.value;
  if (node.kind === 'array') return node.items.map((item) => dataOf(item.value));
  return Object.fromEntries(node.entries.map((entry) => [entry.key, dataOf(entry.value)]));
}

/** The slot at a path (of duplicate keys the last one); `undefined` where there is none, and for `[]`. */
export function slotAt(root: TreeNode, path: Path): Slot | undefined {
  const [step, ...rest] = path;
  if (step === undefined) return undefined;
  const slot = childSlot(root, step);
  return slot === undefined || rest.length === 0 ? slot : slotAt(slot.value, rest);
}

function childSlot(node: TreeNode, step: string | number): Slot | undefined {
  if (typeof step === 'number') return node.kind === 'array' ? node.items[step] : undefined;
  return node.kind === 'object' ? node.entries.findLast((entry) => entry.key === step) : undefined;
}

/** How often a key stands in the object at `path`. */
export function countKey(root: TreeNode, path: Path, key: string): number {
  const node = path.length === 0 ? root : slotAt(root, path)?.value;
  return node?.kind === 'object' ? node.entries.filter((entry) => entry.key === key).length : 0;
}

/** A single value or the key of a container, as it is written. */
export interface Leaf {
  readonly path: Path;
  readonly source: string;
}

/**
 * Every leaf in the order of the file. Those under a duplicate key that does not count have a path of their
 * own, so that they cannot be taken for the ones that do.
 */
export function leavesOf(node: TreeNode, path: Path = [], keySource = ''): readonly Leaf[] {
  if (node.kind === 'scalar') return [{ path, source: `${keySource}=${node.source}` }];
  const inner =
    node.kind === 'array'
      ? node.items.flatMap((item, index) => leavesOf(item.value, [...path, index]))
      : stepsOf(node).flatMap(({ entry, step }) => leavesOf(entry.value, [...path, step], entry.keySource));
  return keySource === '' ? inner : [{ path, source: keySource }, ...inner];
}

/** Entries with a step that is the key for the one that counts, and another for each that a later one hides. */
function stepsOf(node: TreeObject): readonly { readonly entry: TreeEntry; readonly step: string }[] {
  const hiders = new Map<string, number>();
  const steps = node.entries.toReversed().map((entry) => {
    const later = hiders.get(entry.key) ?? 0;
    hiders.set(entry.key, later + 1);
    return { entry, step: later === 0 ? entry.key : `${entry.key}\0${later}` };
  });
  return steps.toReversed();
}

/** How many levels of containers there are. */
export function depthOf(node: TreeNode): number {
  if (node.kind === 'scalar') return 0;
  const slots: readonly Slot[] = node.kind === 'array' ? node.items : node.entries;
  return slots.reduce((depth, slot) => Math.max(depth, depthOf(slot.value) + 1), 1);
}
