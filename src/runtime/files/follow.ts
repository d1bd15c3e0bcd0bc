/**
 * Follows one growing JSONL file: each poll gives the whole lines that were appended since the last.
 *
 * Files are not only appended to. Claude Code can take one row out by truncating and writing the rest again,
 * Codex unpacks a compressed rollout in place, editors replace. A new inode or a smaller size shows most of
 * that; for a rewrite that ends up longer, the last bytes that were read are compared with what stands there
 * now. What was read before such a change is void: the poll says `restarted` and reads from the start.
 */
import {
  type FileProblem,
  type FileStat,
  type FileSystemPort,
  notAFile,
  systemFiles,
  toProblem,
  tryStat,
} from './file-system.ts';
import { createLineStream, type Line, type LineCounts, type LineStream, noCounts } from './jsonl.ts';

/** The most that one poll reads, in bytes; what a file grew beyond that is a gap. */
export const FOLLOW_CAP = 4 * 1024 * 1024;
const CHUNK = 256 * 1024;
/** How many bytes before the offset are compared. */
const MARK_BYTES = 64;
const LF = 10;

/** Where a follower is; plain data, so that another can go on from there. */
export interface FollowState {
  readonly path: string;
  readonly ino: number;
  readonly dev: number;
  /** Just past the last whole line that was given out (X1). */
  readonly offset: number;
  /** Size of the file when it was last read. */
  readonly size: number;
  /** The bytes before `offset`, in hexadecimal, as proof that the file is still the one that was read. */
  readonly mark?: string;
}

export type Restart = 'replaced' | 'shrunk' | 'rewritten';

export type FollowPoll =
  | {
      readonly kind: 'lines';
      readonly lines: readonly Line[];
      /** Why everything given before is void; the lines are then from the start of the file (or its tail). */
      readonly restarted: Restart | undefined;
      /** Lines before these were left out, since there was more than the cap. */
      readonly gap: boolean;
    }
  | FileProblem;

export interface FollowOptions {
  readonly files?: FileSystemPort;
  readonly counts?: LineCounts;
  /** Goes on from here; default is the start of the file. */
  readonly state?: FollowState;
  readonly cap?: number;
  readonly maxLineBytes?: number;
}

export interface Follower {
  /** Never throws. Opens nothing while size, time and inode are the same. */
  poll(): FollowPoll;
  /** `undefined` before the file was first seen, and while it is gone. */
  readonly state: FollowState | undefined;
}

/** A follower of one path. */
export function createFollower(path: string, options: FollowOptions = {}): Follower {
  return new FileFollower(path, options);
}

interface Seen {
  readonly ino: number;
  readonly dev: number;
  readonly size: number;
  readonly mtimeMs: number;
}

class FileFollower implements Follower {
  readonly #path: string;
  readonly #files: FileSystemPort;
  readonly #options: FollowOptions;
  readonly #counts: LineCounts;
  #seen: Seen | undefined;
  #started = false;
  #stream: LineStream;
  /** All bytes before this were pushed into the stream. */
  #received: number;
  /** The bytes before `#received`. */
  #mark: Buffer;
  #committedMark: Buffer;
  /** After a gap inside a line: nothing counts until its end. */
  #skipping = false;

  constructor(path: string, options: FollowOptions) {
    this.#path = path;
    this.#files = options.files ?? systemFiles;
    this.#options = options;
    this.#counts = options.counts ?? noCounts();
    const from = options.state;
    this.#received = from?.offset ?? 0;
    this.#stream = this.#streamFrom(this.#received);
    this.#mark = Buffer.from(from?.mark ?? '', 'hex');
    this.#committedMark = this.#mark;
    if (from !== undefined)
      this.#seen = { ino: from.ino, dev: from.dev, size: from.size, mtimeMs: Number.NaN };
    this.#started = from !== undefined;
  }

  get state(): FollowState | undefined {
    const seen = this.#seen;
    if (seen === undefined) return undefined;
    const { ino, dev, size } = seen;
    const mark = this.#committedMark.toString('hex');
    return { path: this.#path, ino, dev, offset: this.#stream.committed, size, mark };
  }

  poll(): FollowPoll {
    const stat = tryStat(this.#files, this.#path);
    const refused = notAFile(stat);
    if (refused !== undefined) return this.#refuse(refused);
    if (this.#seen !== undefined && 'size' in stat && isSame(this.#seen, stat)) {
      return { kind: 'lines', lines: [], restarted: undefined, gap: false };
    }
    const answer = this.#read();
    return answer.kind === 'lines' ? answer : this.#refuse(answer);
  }

  /** A file that is gone is forgotten; one that cannot be read just now is not. */
  #refuse(problem: FileProblem): FileProblem {
    if (problem.kind !== 'unreadable') this.#seen = undefined;
    return problem;
  }

  #read(): FollowPoll {
    let fd: number | undefined;
    try {
      fd = this.#files.open(this.#path);
      const stat = this.#files.fstat(fd);
      if (stat.kind !== 'file') return { kind: 'not-a-file' };
      const restarted = this.#restartReason(fd, stat);
      if (restarted !== undefined) this.#restart();
      this.#started = true;
      const gap = this.#skipAhead(stat.size);
      const lines = this.#readTo(fd, stat.size);
      this.#seen = { ino: stat.ino, dev: stat.dev, size: stat.size, mtimeMs: stat.mtimeMs };
      return { kind: 'lines', lines, restarted, gap };
    } catch (error) {
      return toProblem(error);
    } finally {
      if (fd !== undefined) this.#files.close(fd);
    }
  }

  #restartReason(fd: number, stat: FileStat): Restart | undefined {
    if (!this.#started) return undefined;
    const seen = this.#seen;
    if (seen === undefined || seen.ino !== stat.ino || seen.dev !== stat.dev) return 'replaced';
    if (stat.size < this.#received) return 'shrunk';
    const before = Buffer.alloc(this.#mark.length);
    const count = this.#files.read(fd, before, 0, before.length, this.#received - before.length);
    return count === before.length && before.equals(this.#mark) ? undefined : 'rewritten';
  }

  #restart(): void {
    this.#received = 0;
    this.#stream = this.#streamFrom(0);
    this.#mark = Buffer.alloc(0);
    this.#committedMark = this.#mark;
    this.#skipping = false;
  }

  /** Jumps to the tail of a file that grew by more than the cap. */
  #skipAhead(size: number): boolean {
    const cap = this.#options.cap ?? FOLLOW_CAP;
    if (size - this.#received <= cap) return false;
    // One byte earlier, so that a line end right before the tail shows that the tail begins with a whole line.
    this.#received = size - cap - 1;
    this.#mark = Buffer.alloc(0);
    this.#skipping = true;
    return true;
  }

  #readTo(fd: number, size: number): readonly Line[] {
    const lines: Line[] = [];
    const chunk = Buffer.allocUnsafe(Math.min(CHUNK, Math.max(size - this.#received, 0)));
    while (this.#received < size) {
      const length = Math.min(chunk.length, size - this.#received);
      const count = this.#files.read(fd, chunk, 0, length, this.#received);
      // Cut short under us: the next poll sees the smaller size.
      if (count === 0) break;
      lines.push(...this.#take(chunk.subarray(0, count)));
    }
    return lines;
  }

  #take(bytes: Buffer): readonly Line[] {
    const window = Buffer.concat([this.#mark, bytes]);
    const end = this.#received + bytes.length;
    const before = this.#stream.committed;
    const lines = this.#push(bytes);
    this.#received = end;
    this.#mark = window.subarray(-MARK_BYTES);
    if (this.#stream.committed !== before) {
      const to = window.length - (end - this.#stream.committed);
      this.#committedMark = window.subarray(Math.max(0, to - MARK_BYTES), to);
    }
    return lines;
  }

  #push(bytes: Buffer): readonly Line[] {
    if (!this.#skipping) return this.#stream.push(bytes);
    const lf = bytes.indexOf(LF);
    if (lf < 0) return [];
    this.#skipping = false;
    this.#stream = this.#streamFrom(this.#received + lf + 1);
    return this.#stream.push(bytes.subarray(lf + 1));
  }

  #streamFrom(start: number): LineStream {
    const base = { start, counts: this.#counts };
    const { maxLineBytes } = this.#options;
    return createLineStream(maxLineBytes === undefined ? base : { ...base, maxLineBytes });
  }
}

function isSame(seen: Seen, stat: FileStat): boolean {
  return (
    seen.ino === stat.ino && seen.dev === stat.dev && seen.size === stat.size && seen.mtimeMs === stat.mtimeMs
  );
}
