/**
 * Bytes to lines, for transcripts, rollouts and journals.
 *
 * Node's readline also splits at U+2028 and U+2029, which JSON allows inside strings, and it knows no byte
 * offsets. Here only LF ends a line; everything else is what a crash or an editor may have left behind:
 *
 * - one CR before the LF is dropped; a BOM at byte 0 of the file is dropped (X13);
 * - a run of NUL bytes (a block that a crash never filled) is a break inside its line: it is counted, and
 *   what stands before and after it are lines of their own (X13). JSON text never holds a raw NUL;
 * - a line of more than {@link MAX_LINE_BYTES} is skipped and counted, without being kept in memory (X6);
 * - invalid UTF-8 is decoded with replacement characters and counted (X13);
 * - bytes after the last LF are a torn line: given apart, and never committed (X1).
 */
import { type Lease, Line, type LineCounts, type LineOwner, noCounts } from './line.ts';

export { type Lease, Line, type LineCounts, noCounts } from './line.ts';

/** The longest line that is given out, in bytes, without its line end and without NUL bytes (X6). */
export const MAX_LINE_BYTES = 1024 * 1024;

const LF = 10;
const CR = 13;
const ZEROS = Buffer.alloc(4096);
const forever: Lease = { live: true };

/** The JSON value of a line, or `undefined` if it is malformed (counted; it still advances the offset, X1). */
export function parseRecord(line: Line): unknown {
  return line.record;
}

/** Where the bytes come from, and what to do with what is found in them. */
export interface SplitOptions {
  /** Offset in the file of the first byte; a BOM is looked for only at 0. Default 0. */
  readonly start?: number;
  readonly maxLineBytes?: number;
  readonly counts?: LineCounts;
  readonly lease?: Lease;
}

export interface Split {
  readonly lines: readonly Line[];
  /** Offset just past the last LF; equal to `start` if there was none. */
  readonly committed: number;
  /** What follows the last LF, if anything but NUL does. */
  readonly torn: Line | undefined;
}

/** Splits bytes that are all at hand. The lines are views into `bytes`. */
export function splitLines(bytes: Uint8Array, options: SplitOptions = {}): Split {
  const buffer = asBuffer(bytes);
  const start = options.start ?? 0;
  const sink = new LineSink(options);
  const dense = buffer.indexOf(0) < 0;
  let at = 0;
  for (let lf = buffer.indexOf(LF); lf >= 0; lf = buffer.indexOf(LF, at)) {
    if (dense) sink.takeDense(buffer, at, lf, start);
    else sink.takeSparse(buffer.subarray(at, lf), start + at, start + lf + 1);
    at = lf + 1;
  }
  const torn =
    at < buffer.length ? sink.torn(gapless(buffer.subarray(at), start + at, false).pieces) : undefined;
  return { lines: sink.lines, committed: start + at, torn };
}

/** A splitter that is fed in chunks of any size; see {@link createLineStream}. */
export interface LineStream {
  /** The lines that this chunk completed. The chunk may be reused afterwards: the lines hold copies. */
  push(chunk: Uint8Array): readonly Line[];
  /** Offset just past the last LF that was pushed. */
  readonly committed: number;
  /** Number of bytes that are kept because their line has not ended; at most the cap. */
  readonly pending: number;
  /** The line that has begun but not ended; `undefined` if there is none or it is over the cap. */
  torn(): Line | undefined;
}

/** Splits a file that arrives in pieces: any cutting of the same bytes gives the same lines. */
export function createLineStream(options: SplitOptions = {}): LineStream {
  const counts = options.counts ?? noCounts();
  const cap = options.maxLineBytes ?? MAX_LINE_BYTES;
  const base = { ...options, counts };
  let committed = options.start ?? 0;
  let received = committed;
  let pieces: Piece[] = [];
  let pending = 0;
  let nulRuns = 0;
  let endsInNul = false;

  const hold = (bytes: Buffer): void => {
    if (bytes.length === 0) return;
    const found = gapless(bytes, received, endsInNul);
    endsInNul = bytes[bytes.length - 1] === 0;
    pending += found.size;
    nulRuns += found.nulRuns;
    // Over the cap only the length still matters, so that a line of gigabytes costs no memory.
    pieces = pending > cap ? [] : joinPieces(pieces, found.pieces);
    received += bytes.length;
  };

  return {
    push(chunk) {
      const bytes = Buffer.from(chunk);
      const first = bytes.indexOf(LF);
      if (first < 0) {
        hold(bytes);
        return [];
      }
      const sink = new LineSink(base);
      hold(bytes.subarray(0, first));
      received += 1;
      counts.nulBlocks += nulRuns;
      sink.take(pieces, pending, received);
      pieces = [];
      pending = 0;
      nulRuns = 0;
      endsInNul = false;
      const last = bytes.lastIndexOf(LF);
      const whole = splitLines(bytes.subarray(first + 1, last + 1), { ...base, start: received });
      received = whole.committed;
      committed = received;
      hold(bytes.subarray(last + 1));
      return [...sink.lines, ...whole.lines];
    },
    get committed() {
      return committed;
    },
    get pending() {
      return pieces.reduce((sum, piece) => sum + piece.bytes.length, 0);
    },
    torn() {
      return pending > cap ? undefined : new LineSink(base).torn(pieces);
    },
  };
}

/** A stretch of bytes of one line without NUL. */
interface Piece {
  readonly start: number;
  readonly bytes: Buffer;
}

class LineSink {
  readonly lines: Line[] = [];
  readonly #owner: LineOwner;
  readonly #cap: number;

  constructor(options: SplitOptions) {
    this.#owner = { counts: options.counts ?? noCounts(), lease: options.lease ?? forever };
    this.#cap = options.maxLineBytes ?? MAX_LINE_BYTES;
  }

  /** One ended line without NUL bytes, `from..lf` in a buffer whose first byte stands at `base` in the file. */
  takeDense(buffer: Buffer, from: number, lf: number, base: number): void {
    if (lf - from > this.#cap) this.#owner.counts.oversized += 1;
    else this.#add(buffer, from, lf, base, base + lf + 1, true);
  }

  /** One ended line that may hold NUL runs. */
  takeSparse(body: Buffer, start: number, end: number): void {
    const { pieces, size, nulRuns } = gapless(body, start, false);
    this.#owner.counts.nulBlocks += nulRuns;
    this.take(pieces, size, end);
  }

  /** One ended line in pieces. `size` counts its bytes even where the pieces were let go for being too long. */
  take(pieces: readonly Piece[], size: number, end: number): void {
    if (size > this.#cap) {
      this.#owner.counts.oversized += 1;
      return;
    }
    for (const [index, { start, bytes }] of pieces.entries()) {
      const last = index === pieces.length - 1;
      this.#add(bytes, 0, bytes.length, start, last ? end : start + bytes.length, last);
    }
  }

  torn(pieces: readonly Piece[]): Line | undefined {
    const piece = pieces.at(-1);
    if (piece === undefined) return undefined;
    const { start, bytes } = piece;
    const from = start === 0 ? bomLength(bytes, 0) : 0;
    return new Line(start + from, start + bytes.length, bytes, from, bytes.length, this.#owner);
  }

  #add(buffer: Buffer, from: number, to: number, base: number, end: number, ended: boolean): void {
    const first = base + from === 0 ? from + bomLength(buffer, from) : from;
    const last = ended && to > first && buffer[to - 1] === CR ? to - 1 : to;
    if (last > first) this.lines.push(new Line(base + first, end, buffer, first, last, this.#owner));
  }
}

/** The stretches between NUL runs. A run that goes on from an earlier chunk is not counted again. */
function gapless(
  bytes: Buffer,
  start: number,
  afterNul: boolean,
): { pieces: Piece[]; size: number; nulRuns: number } {
  const pieces: Piece[] = [];
  let size = 0;
  let nulRuns = 0;
  let at = 0;
  while (at < bytes.length) {
    const nul = bytes.indexOf(0, at);
    const to = nul < 0 ? bytes.length : nul;
    if (to > at) {
      pieces.push({ start: start + at, bytes: bytes.subarray(at, to) });
      size += to - at;
    }
    if (nul < 0) break;
    if (nul > 0 || !afterNul) nulRuns += 1;
    at = endOfNul(bytes, nul);
  }
  return { pieces, size, nulRuns };
}

function endOfNul(bytes: Buffer, from: number): number {
  // NUL blocks can be megabytes of a hole: compared in blocks, then byte by byte at the edge.
  let at = from;
  while (at + ZEROS.length <= bytes.length && ZEROS.compare(bytes, at, at + ZEROS.length) === 0)
    at += ZEROS.length;
  while (at < bytes.length && bytes[at] === 0) at += 1;
  return at;
}

/** Pieces that touch are one: a chunk border is no break. */
function joinPieces(before: readonly Piece[], after: readonly Piece[]): Piece[] {
  const left = before.at(-1);
  const right = after[0];
  if (left === undefined || right === undefined || left.start + left.bytes.length !== right.start) {
    return [...before, ...after];
  }
  const joined = { start: left.start, bytes: Buffer.concat([left.bytes, right.bytes]) };
  return [...before.slice(0, -1), joined, ...after.slice(1)];
}

function bomLength(bytes: Buffer, at: number): number {
  return bytes[at] === 0xef && bytes[at + 1] === 0xbb && bytes[at + 2] === 0xbf ? 3 : 0;
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
