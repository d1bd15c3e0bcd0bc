/** What was skipped or repaired. One object may be shared by many readers to sum up. */
export interface LineCounts {
  /** Lines over the cap. */
  oversized: number;
  /** Lines whose bytes were not valid UTF-8; counted when their text is first taken. */
  invalidUtf8: number;
  /** Runs of NUL bytes in lines that have ended. */
  nulBlocks: number;
  /** Whole lines that {@link parseRecord} could not parse. */
  malformed: number;
}

/** Fresh counts, all zero. */
export function noCounts(): LineCounts {
  return { oversized: 0, invalidUtf8: 0, nulBlocks: 0, malformed: 0 };
}

/** Says whether the bytes under a line are still its own; a reader that reuses its buffer ends the lease. */
export interface Lease {
  live: boolean;
}

const decoders: { strict?: TextDecoder } = {};
const unparsed = Symbol('unparsed');
const patterns = new Map<string, Buffer>();

/**
 * One line. It is a view: text and record are made when asked for, so that a reader of many lines pays only
 * for those that it looks at. A text that was taken stays; taking it after the lease has ended throws, since
 * the bytes are then another file's.
 */
export class Line {
  /** Offset in the file of the first byte of the text. */
  readonly start: number;
  /** Offset just past the line end (past the text, where a NUL block or the end of the file follows). */
  readonly end: number;
  // The buffer and a range in it, not a view of its own: a view for each line costs more than splitting does.
  readonly #buffer: Buffer;
  readonly #from: number;
  readonly #to: number;
  readonly #owner: LineOwner;
  /** What the line's reader has made of it; kept here, since a map of all lines costs more than reading them. */
  memo: unknown = undefined;
  #text: string | undefined;
  #record: unknown = unparsed;

  constructor(start: number, end: number, buffer: Buffer, from: number, to: number, owner: LineOwner) {
    this.start = start;
    this.end = end;
    this.#buffer = buffer;
    this.#from = from;
    this.#to = to;
    this.#owner = owner;
  }

  /** Number of bytes of the text. */
  get size(): number {
    return this.#to - this.#from;
  }

  /** The text, without BOM and line end. */
  get text(): string {
    if (this.#text !== undefined) return this.#text;
    this.#check();
    const text = this.#buffer.toString('utf8', this.#from, this.#to);
    if (text.includes('\ufffd') && !isValidUtf8(this.#bytes())) this.#owner.counts.invalidUtf8 += 1;
    this.#text = text;
    return text;
  }

  /**
   * Whether the raw bytes hold these ASCII characters: a cheap test before parsing. Meant for constants, which
   * are encoded once for all lines.
   */
  has(ascii: string): boolean {
    this.#check();
    return this.#bytes().includes(encoded(ascii));
  }

  /** One byte of the text; `undefined` past its end. The cheapest look of all. */
  byteAt(index: number): number | undefined {
    this.#check();
    const at = this.#from + index;
    return at < this.#to ? this.#buffer[at] : undefined;
  }

  /** The first bytes as Latin-1, at most `length`: a cheap look at a line that may not be worth decoding. */
  prefix(length: number): string {
    this.#check();
    return this.#buffer.toString('latin1', this.#from, Math.min(this.#to, this.#from + length));
  }

  /** The parsed JSON value; `undefined` if malformed, which is counted once. Parsed at most once. */
  get record(): unknown {
    if (this.#record === unparsed) this.#record = parseJson(this.text, this.#owner.counts);
    return this.#record;
  }

  #bytes(): Buffer {
    return this.#buffer.subarray(this.#from, this.#to);
  }

  #check(): void {
    if (!this.#owner.lease.live) throw new Error('a line was read after its buffer was given back');
  }
}

/** What the lines of one source share. */
export interface LineOwner {
  readonly counts: LineCounts;
  readonly lease: Lease;
}

function isValidUtf8(bytes: Buffer): boolean {
  try {
    // Made when first needed: it takes 1 to 2 ms, and most files hold no replacement character.
    decoders.strict ??= new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    decoders.strict.decode(bytes);
    return true;
  } catch {
    // The strict decoder's only answer to invalid bytes is to throw.
    return false;
  }
}

function parseJson(text: string, counts: LineCounts): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // A malformed whole line is skipped: the count is all that a reader of thousands of files can do with it.
    counts.malformed += 1;
    return undefined;
  }
}

function encoded(ascii: string): Buffer {
  const known = patterns.get(ascii);
  if (known !== undefined) return known;
  const bytes = Buffer.from(ascii, 'latin1');
  // Not for texts that vary: those must not pile up in a process that lives for weeks.
  if (patterns.size < 256) patterns.set(ascii, bytes);
  return bytes;
}
