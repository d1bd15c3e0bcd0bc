/**
 * The folders that are watched: a tree as deep as each root asks for, kept in step with what is on disk.
 * It reports paths; when to look and how to bundle them is `watch.ts`.
 */
import { basename, dirname, join } from 'node:path';
import {
  errorCode,
  type FileStat,
  type FileSystemPort,
  type FolderEntry,
  tryNames,
  tryStat,
} from './file-system.ts';
import type { WatchPort } from './watch-port.ts';

/** A folder to watch. */
export interface WatchRoot {
  /** May be missing, and may be or contain a link. */
  readonly path: string;
  /** How many levels of folders below it count as well; 0 for its own entries only. */
  readonly depth: number;
  /** Names of folders and files that are neither entered nor reported (`subagents`, `tool-results`). */
  readonly exclude?: ReadonlySet<string>;
}

/** A folder in the tree. */
export interface FolderNode {
  readonly path: string;
  readonly depth: number;
  readonly root: RootNode;
  readonly parent: FolderNode | undefined;
  readonly ino: number;
  readonly dev: number;
  readonly children: Map<string, FolderNode>;
  mtimeMs: number;
  handle: { close(): void } | undefined;
  /** Why the system does not announce what happens here; `undefined` while it does. */
  polledFor: string | undefined;
  /** One number for each file, by name, from the last full check. */
  stamps: Map<string, number> | undefined;
  /** A change that was found but not announced; if it stays so, the folder is polled. */
  suspect: string | undefined;
  closed: boolean;
}

export interface RootNode {
  readonly spec: WatchRoot;
  node: FolderNode | undefined;
  /** While the root is missing: a watch on the nearest folder above it that exists. */
  waiting: { close(): void } | undefined;
}

export interface TreeOptions {
  readonly files: FileSystemPort;
  readonly port: WatchPort;
  /** The most watches that are taken; folders beyond it are polled. */
  readonly limit: number;
  /** Something happened to this path. `heard` is false where we found it ourselves. */
  readonly onPath: (path: string, heard: boolean) => void;
  /** A folder cannot be watched. */
  readonly onTrouble: (folder: string, reason: string) => void;
}

/** Reason of folders beyond the limit of watches. */
export const OVER_LIMIT = 'too many folders';
/** Reason of folders whose watch says nothing, as on some network drives. */
export const UNANNOUNCED = 'changes are not announced';

export class FolderTree {
  readonly roots: readonly RootNode[];
  readonly #options: TreeOptions;
  #watches = 0;
  #closed = false;

  constructor(roots: readonly WatchRoot[], options: TreeOptions) {
    this.#options = options;
    this.roots = roots.map((spec) => ({ spec, node: undefined, waiting: undefined }));
    for (const root of this.roots) this.attach(root, false);
  }

  /** All folders, parents before their children. */
  *nodes(): Generator<FolderNode> {
    const queue = this.roots.flatMap((root) => (root.node === undefined ? [] : [root.node]));
    for (const node of queue) {
      yield node;
      queue.push(...node.children.values());
    }
  }

  close(): void {
    this.#closed = true;
    for (const root of this.roots) this.#detach(root);
  }

  /** Opens a root, or waits for it. With `announce`, what is in it is reported: nobody has seen it yet. */
  attach(root: RootNode, announce: boolean): void {
    if (this.#closed) return;
    this.#detach(root);
    root.node = this.#open(root, undefined, root.spec.path, root.spec.depth);
    if (root.node === undefined) this.#awaitRoot(root);
    else if (announce) this.#announce(root.node);
  }

  /** Whether the folder is still the one that was opened. If not, what took its place is opened. */
  verify(node: FolderNode): boolean {
    if (node.closed) return false;
    const stat = tryStat(this.#options.files, node.path);
    if ('size' in stat && isSameFolder(node, stat)) {
      node.mtimeMs = stat.mtimeMs;
      return true;
    }
    this.#replaced(node);
    return false;
  }

  /** Brings the sub-folders up to date with a listing. */
  refresh(node: FolderNode): void {
    if (node.depth === 0) return;
    const names = new Set(this.#folders(node).map((entry) => entry.name));
    for (const name of new Set([...names, ...node.children.keys()])) this.#syncEntry(node, name);
  }

  /** Tries to watch a folder that is polled because the system refused. */
  retry(node: FolderNode): void {
    if (node.polledFor === undefined || node.polledFor === UNANNOUNCED) return;
    if (node.handle !== undefined || node.closed) return;
    this.#watch(node);
  }

  excludes(node: FolderNode, name: string): boolean {
    return node.root.spec.exclude?.has(name) === true;
  }

  #detach(root: RootNode): void {
    root.waiting?.close();
    root.waiting = undefined;
    if (root.node !== undefined) this.#closeNode(root.node);
    root.node = undefined;
  }

  #open(root: RootNode, parent: FolderNode | undefined, path: string, depth: number): FolderNode | undefined {
    const stat = tryStat(this.#options.files, path);
    if (!('size' in stat) || stat.kind !== 'folder') return undefined;
    const node: FolderNode = {
      ...{ path, depth, root, parent, ino: stat.ino, dev: stat.dev, mtimeMs: stat.mtimeMs },
      ...{ children: new Map(), handle: undefined, polledFor: undefined, stamps: undefined },
      ...{ suspect: undefined, closed: false },
    };
    // Watched before it is listed: what is made in between is then announced, or listed, or both.
    this.#watch(node);
    if (depth > 0) this.#openChildren(node);
    return node;
  }

  #openChildren(node: FolderNode): void {
    const found = this.#folders(node).flatMap((entry) => {
      const stat = tryStat(this.#options.files, join(node.path, entry.name));
      return 'size' in stat && stat.kind === 'folder' ? [{ name: entry.name, mtimeMs: stat.mtimeMs }] : [];
    });
    // The newest first: where watches run out, the oldest projects are the ones to be polled.
    for (const { name } of found.sort((a, b) => b.mtimeMs - a.mtimeMs)) this.#openChild(node, name);
  }

  #openChild(node: FolderNode, name: string): FolderNode | undefined {
    const child = this.#open(node.root, node, join(node.path, name), node.depth - 1);
    if (child !== undefined) node.children.set(name, child);
    return child;
  }

  #folders(node: FolderNode): readonly FolderEntry[] {
    try {
      return this.#options.files
        .entries(node.path)
        .filter((entry) => entry.kind === 'folder' || entry.kind === 'link')
        .filter((entry) => !this.excludes(node, entry.name));
    } catch {
      // It was removed since its stat, or may not be listed: it has no sub-folders that we could watch.
      return [];
    }
  }

  #watch(node: FolderNode): void {
    const { port, limit } = this.#options;
    // One recursive handle on the root speaks for all folders below it.
    if (port.recursive && node.parent !== undefined) {
      node.polledFor = node.parent.polledFor;
      return;
    }
    if (this.#watches >= limit) {
      node.polledFor = OVER_LIMIT;
      this.#options.onTrouble(node.path, OVER_LIMIT);
      return;
    }
    try {
      node.handle = port.watch(node.path, port.recursive, {
        event: (kind, name) => this.#event(node, kind, name),
        error: (code) => this.#lost(node, code),
      });
      this.#watches += 1;
      node.polledFor = undefined;
    } catch (error) {
      node.polledFor = errorCode(error);
      this.#options.onTrouble(node.path, node.polledFor);
    }
  }

  #lost(node: FolderNode, code: string): void {
    if (node.closed) return;
    this.#release(node);
    // A folder that was removed takes its watch along; that is no trouble.
    if (!this.verify(node)) return;
    node.polledFor = code;
    this.#options.onTrouble(node.path, code);
  }

  #event(node: FolderNode, kind: 'entry' | 'content', name: string | undefined): void {
    if (node.closed) return;
    if (name === undefined || name === '') {
      if (this.verify(node)) this.#options.onPath(node.path, true);
      return;
    }
    const segments = this.#options.port.recursive ? name.split(/[\\/]/) : [name];
    const last = segments.pop() ?? '';
    let at = node;
    for (const segment of segments) {
      const child = at.children.get(segment);
      if (child === undefined) {
        // Deeper than was asked for, or a new folder whose own announcement is still under way.
        if (at.depth > 0) this.#entryChanged(at, segment);
        return;
      }
      at = child;
    }
    if (this.excludes(at, last)) return;
    if (kind === 'entry') this.#entryChanged(at, last);
    this.#options.onPath(join(at.path, last), true);
  }

  #entryChanged(node: FolderNode, name: string): void {
    if (this.verify(node)) this.#syncEntry(node, name);
  }

  /** Opens, closes or exchanges the sub-folder of this name as the disk has it now. */
  #syncEntry(node: FolderNode, name: string): void {
    if (node.depth === 0 || this.excludes(node, name)) return;
    const stat = tryStat(this.#options.files, join(node.path, name));
    const isFolder = 'size' in stat && stat.kind === 'folder';
    const child = node.children.get(name);
    if (child !== undefined && isFolder && isSameFolder(child, stat)) return;
    if (child !== undefined) {
      node.children.delete(name);
      this.#closeNode(child);
      this.#options.onPath(child.path, false);
    }
    const made = isFolder ? this.#openChild(node, name) : undefined;
    if (made !== undefined) this.#announce(made);
  }

  #replaced(node: FolderNode): void {
    const { parent } = node;
    if (parent === undefined) {
      this.attach(node.root, true);
      this.#options.onPath(node.path, false);
      return;
    }
    this.#entryChanged(parent, basename(node.path));
  }

  #announce(node: FolderNode): void {
    for (const name of tryNames(this.#options.files, node.path).names) {
      if (!this.excludes(node, name) && !node.children.has(name))
        this.#options.onPath(join(node.path, name), false);
    }
    for (const child of node.children.values()) this.#announce(child);
  }

  #closeNode(node: FolderNode): void {
    node.closed = true;
    this.#release(node);
    for (const child of node.children.values()) this.#closeNode(child);
    node.children.clear();
  }

  #release(node: FolderNode): void {
    if (node.handle === undefined) return;
    node.handle.close();
    node.handle = undefined;
    this.#watches -= 1;
  }

  #awaitRoot(root: RootNode): void {
    const { files, port } = this.#options;
    const above = nearestFolder(files, root.spec.path);
    if (above === undefined) return;
    const retry = (): void => {
      if (root.node === undefined) this.attach(root, true);
    };
    try {
      root.waiting = port.watch(above.path, false, {
        event: (_, name) => {
          if (name === undefined || name === above.next) retry();
        },
        error: retry,
      });
    } catch {
      // The root is looked for at each poll anyway; a folder above it is no feed worth a warning.
      return;
    }
    // Made since it was found missing: then nobody would announce it.
    if ('size' in tryStat(files, join(above.path, above.next))) retry();
  }
}

function isSameFolder(node: FolderNode, stat: FileStat): boolean {
  return stat.kind === 'folder' && stat.ino === node.ino && stat.dev === node.dev;
}

function nearestFolder(files: FileSystemPort, path: string): { path: string; next: string } | undefined {
  const above = dirname(path);
  if (above === path) return undefined;
  const stat = tryStat(files, above);
  if ('size' in stat && stat.kind === 'folder') return { path: above, next: basename(path) };
  return nearestFolder(files, above);
}
