/** Identity and version of a file as `stat` gives it. Two equal stamps mean: nothing to read. */
export interface FileStamp {
  readonly size: number;
  /** Modification time, nanoseconds since the epoch, as a decimal string or bigint-safe number of milliseconds. */
  readonly mtimeMs: number;
  readonly ino: number;
  readonly dev: number;
}

export interface IndexEntry {
  readonly stamp: FileStamp;
  /** What the adapter made of the file: small JSON text, cleaned titles and no other content. */
  readonly value: string;
}

/**
 * Remembers what an adapter read of each file, so that an unchanged file is never opened again. A scope is one
 * adapter and one schema of its values (`claude-code/3`): raising the number forgets what an older build wrote.
 * Never throws: a broken or locked index only means that files are read again.
 */
export interface SessionIndex {
  load(scope: string): ReadonlyMap<string, IndexEntry>;
  stage(scope: string, path: string, entry: IndexEntry): void;
  /** Forgets the paths of a scope that are not among `alive`. */
  prune(scope: string, alive: ReadonlySet<string>): void;
  /** Writes what was staged, in one transaction, if anything was. */
  flush(): void;
  close(): void;
}
