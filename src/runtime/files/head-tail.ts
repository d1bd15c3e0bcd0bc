/**
 * The two ends of a JSONL file, read in growing steps until the caller has seen enough.
 *
 * The cost of a list must not depend on how big a transcript is: rollouts of 37 GB exist (X9), and reading
 * whole files has brought daemons down (X5, X6, X8). One open serves both ends. Buffers are reused from file
 * to file (2,000 files of 32 KB: 20 ms and no growth, against 28 ms and 12 MB with fresh ones), so lines
 * are views that live only inside the callback.
 */
import { fileWasRead } from '../process/compile-policy.ts';
import {
  type FileProblem,
  type FileStat,
  type FileSystemPort,
  notAFile,
  systemFiles,
  toProblem,
  tryStat,
} from './file-system.ts';
import { type Lease, type Line, type LineCounts, noCounts, splitLines } from './jsonl.ts';

/** The first step from the start of a file; a `session_meta` of Codex fits into the second. */
export const HEAD_FIRST_STEP = 8 * 1024;
/** The most that is read from the start. Codex's first line alone can be over 20 KB. */
export const HEAD_CAP = 1024 * 1024;
/** The first step from the end. */
export const TAIL_FIRST_STEP = 16 * 1024;
/** How much each step grows. Claude Code writes rows of over 100 KB between two conversation rows. */
export const STEP_FACTOR = 4;
/** The most that is read from the end. */
export const TAIL_CAP = 4 * 1024 * 1024;

/** How far to read. */
export interface EndOptions {
  /** Called with all whole lines known so far, in file order, after each step; `true` ends the reading. */
  readonly enough: (lines: readonly Line[]) => boolean;
  readonly firstStep?: number;
  readonly factor?: number;
  readonly cap?: number;
  readonly maxLineBytes?: number;
}

/** Lines from one end. */
export interface EndLines {
  /** Whole lines in file order. */
  readonly lines: readonly Line[];
  /** The unfinished last line of the file, where the reading reached it. */
  readonly torn: Line | undefined;
  /**
   * Offset just past the last line end that was seen: where a follower goes on from a tail. `undefined` if none
   * was.
   */
  readonly committed: number | undefined;
  /** Whether the whole file has been read. */
  readonly whole: boolean;
  /** Whether `enough` said yes; otherwise the file or the cap ended first. */
  readonly satisfied: boolean;
}

/** An open file inside {@link FileReader.read}. */
export interface OpenFile {
  /** What was true when it was opened: identity and size for the index. */
  readonly stat: FileStat;
  head(options: EndOptions): EndLines;
  tail(options: EndOptions): EndLines;
}

export type ReadResult<T> =
  | { readonly kind: 'read'; readonly value: T; readonly stat: FileStat }
  | FileProblem;

export interface FileReader {
  /**
   * Opens a file, hands it to `use`, closes it. Never throws for what is wrong with the file. A file that
   * shrinks meanwhile is read once more from its new stat, so that the value and the stat belong together;
   * `use` must therefore be without side effects. Lines are dead once `use` has returned.
   *
   * @param known the stat that a scan already has; spares one.
   */
  read<T>(path: string, use: (file: OpenFile) => T, known?: FileStat): ReadResult<T>;
  /** What was skipped or repaired so far. */
  readonly counts: LineCounts;
}

/** A reader with its own buffers; one for each scan. */
export function createFileReader(
  files: FileSystemPort = systemFiles,
  counts: LineCounts = noCounts(),
): FileReader {
  const buffers = new BufferPool();
  return {
    counts,
    read(path, use, known) {
      // Asked before opening: opening a FIFO wakes its writer, opening a device can do anything.
      const refused = notAFile(known ?? tryStat(files, path));
      if (refused !== undefined) return refused;
      fileWasRead();
      for (let attempt = 0; attempt < 2; attempt += 1) {
        const result = readOnce(files, path, use, buffers, counts);
        if (result.kind !== 'changed') return result;
      }
      return { kind: 'changed' };
    },
  };
}

function readOnce<T>(
  files: FileSystemPort,
  path: string,
  use: (file: OpenFile) => T,
  buffers: BufferPool,
  counts: LineCounts,
): ReadResult<T> {
  const opened = tryOpen(files, path);
  if (typeof opened !== 'number') return opened;
  const lease: Lease = { live: true };
  const taken: Buffer[] = [];
  const take = (length: number): Buffer => {
    const buffer = buffers.take(length);
    taken.push(buffer);
    return buffer;
  };
  try {
    const stat = files.fstat(opened);
    if (stat.kind !== 'file') return { kind: 'not-a-file' };
    const range = new RangeReader(files, opened, stat.size, take, counts, lease);
    const value = use({
      stat,
      head: (options) => readHead(range, options),
      tail: (options) => readTail(range, options),
    });
    if (range.short || files.fstat(opened).size < stat.size) return { kind: 'changed' };
    return { kind: 'read', value, stat };
  } catch (error) {
    if (error instanceof ReadFailure) return toProblem(error.cause);
    throw error;
  } finally {
    lease.live = false;
    buffers.give(taken);
    files.close(opened);
  }
}

function tryOpen(files: FileSystemPort, path: string): number | FileProblem {
  try {
    return files.open(path);
  } catch (error) {
    return toProblem(error);
  }
}

function readHead(range: RangeReader, options: EndOptions): EndLines {
  const cap = Math.min(options.cap ?? HEAD_CAP, range.size);
  const factor = options.factor ?? STEP_FACTOR;
  const lines: Line[] = [];
  let committed = 0;
  let torn: Line | undefined;
  for (let want = options.firstStep ?? HEAD_FIRST_STEP; ; want *= factor) {
    const to = Math.min(want, cap);
    const split = range.split(committed, to, options.maxLineBytes);
    lines.push(...split.lines);
    committed = split.committed;
    const whole = to === range.size;
    torn = whole ? split.torn : undefined;
    const satisfied = options.enough(lines);
    if (satisfied || to >= cap) {
      return { lines, torn, committed: committed === 0 ? undefined : committed, whole, satisfied };
    }
  }
}

function readTail(range: RangeReader, options: EndOptions): EndLines {
  const cap = Math.min(options.cap ?? TAIL_CAP, range.size);
  const factor = options.factor ?? STEP_FACTOR;
  let lines: readonly Line[] = [];
  let boundary = range.size;
  let torn: Line | undefined;
  let committed: number | undefined;
  for (let want = options.firstStep ?? TAIL_FIRST_STEP; ; want *= factor) {
    const from = range.size - Math.min(want, cap);
    const step = range.splitBack(from, boundary, options.maxLineBytes);
    if (committed === undefined) ({ torn, committed } = step);
    lines = [...step.lines, ...lines];
    boundary = step.boundary;
    const whole = from === 0;
    const satisfied = options.enough(lines);
    if (satisfied || whole || range.size - from >= cap) return { lines, torn, committed, whole, satisfied };
  }
}

/** What the system said no to in the middle of a read; told apart from an error of the caller's own code. */
class ReadFailure extends Error {}

class RangeReader {
  readonly size: number;
  /** Set once a read ended before the size that the file had. */
  short = false;
  readonly #files: FileSystemPort;
  readonly #fd: number;
  readonly #take: (length: number) => Buffer;
  readonly #counts: LineCounts;
  readonly #lease: Lease;

  constructor(
    files: FileSystemPort,
    fd: number,
    size: number,
    take: (length: number) => Buffer,
    counts: LineCounts,
    lease: Lease,
  ) {
    this.#files = files;
    this.#fd = fd;
    this.size = size;
    this.#take = take;
    this.#counts = counts;
    this.#lease = lease;
  }

  split(from: number, to: number, maxLineBytes: number | undefined): ReturnType<typeof splitLines> {
    return splitLines(this.#bytes(from, to), this.#options(from, maxLineBytes));
  }

  /**
   * The whole lines of `from..to`, without the fragment at its start. `boundary` is where the first of them
   * begins: the next step back ends there, so that no line is split or parsed twice.
   */
  splitBack(
    from: number,
    to: number,
    maxLineBytes: number | undefined,
  ): { lines: readonly Line[]; boundary: number; torn: Line | undefined; committed: number | undefined } {
    const bytes = this.#bytes(from, to);
    const fragment = from === 0 ? 0 : bytes.indexOf(10) + 1;
    if (from > 0 && fragment === 0) return { lines: [], boundary: to, torn: undefined, committed: undefined };
    const boundary = from + fragment;
    const split = splitLines(bytes.subarray(fragment), this.#options(boundary, maxLineBytes));
    const committed = split.committed === 0 ? undefined : split.committed;
    return { lines: split.lines, boundary, torn: split.torn, committed };
  }

  #options(start: number, maxLineBytes: number | undefined) {
    const base = { start, counts: this.#counts, lease: this.#lease };
    return maxLineBytes === undefined ? base : { ...base, maxLineBytes };
  }

  #bytes(from: number, to: number): Buffer {
    const length = to - from;
    const buffer = this.#take(length);
    let filled = 0;
    while (filled < length) {
      const count = this.#read(buffer, filled, length - filled, from + filled);
      if (count === 0) {
        this.short = true;
        break;
      }
      filled += count;
    }
    return buffer.subarray(0, filled);
  }

  #read(buffer: Buffer, offset: number, length: number, position: number): number {
    try {
      return this.#files.read(this.#fd, buffer, offset, length, position);
    } catch (error) {
      throw new ReadFailure('the file could not be read', { cause: error });
    }
  }
}

/** Buffers that are handed out again for the next file, in powers of two from the smallest step. */
class BufferPool {
  readonly #free = new Map<number, Buffer[]>();

  take(length: number): Buffer {
    const size = sizeClass(length);
    return this.#free.get(size)?.pop() ?? Buffer.allocUnsafeSlow(size);
  }

  give(buffers: readonly Buffer[]): void {
    for (const buffer of buffers) {
      const free = this.#free.get(buffer.length) ?? [];
      free.push(buffer);
      this.#free.set(buffer.length, free);
    }
  }
}

function sizeClass(length: number): number {
  let size = HEAD_FIRST_STEP;
  while (size < length) size *= 2;
  return size;
}
