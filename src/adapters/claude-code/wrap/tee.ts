import { WRAP } from '../../../runtime/limits.ts';

/**
 * The wrapper's ear: cuts a copy of the bytes into lines and hands them on later, so that nothing here can hold up
 * the bytes themselves (S-702, S-704). Lines that are too long, not UTF-8, or too many are left out and counted.
 */

/** Who said a line. */
export type Side = 'editor' | 'claude';

/** What was not looked at (S-741). */
export interface TeeCounts {
  full: number;
  oversize: number;
  nonUtf8: number;
  /** Lines that came after the end. */
  closed: number;
}

export interface Tee {
  readonly counts: Readonly<TeeCounts>;
  /** Takes a copy of what it needs; returns at once. */
  push(side: Side, chunk: Uint8Array): void;
  /** Hands on what waits, with the last line of each side also without its end; then hears nothing more. */
  close(): void;
}

export interface TeeOptions {
  line(side: Side, text: string): void;
  /** True for a line that can't change anything now, told by its first bytes: it is not even decoded. */
  idle?(side: Side, start: Uint8Array): boolean;
  /** Runs a function soon; default: after what the event loop has at hand. */
  readonly soon?: (run: () => void) => void;
}

const LF = 0x0a;
/** Lines handed on in one go; the bytes of the stream get their turn in between. */
const AT_ONCE = 32;
/** How much of a line `idle` sees. */
const GLANCE_BYTES = 32;

interface Held {
  readonly side: Side;
  readonly bytes: Buffer;
}

export function createTee(options: TeeOptions): Tee {
  const counts: TeeCounts = { full: 0, oversize: 0, nonUtf8: 0, closed: 0 };
  const parts: Record<Side, Splitter> = { editor: createSplitter(), claude: createSplitter() };
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false });
  const queue: Held[] = [];
  const state = { bytes: 0, planned: false, closed: false };
  const soon = options.soon ?? ((run: () => void) => void setImmediate(run));

  function hand({ side, bytes }: Held): void {
    state.bytes -= bytes.length;
    const text = decode(bytes);
    if (text === undefined) counts.nonUtf8 += 1;
    else options.line(side, text);
  }

  function decode(bytes: Buffer): string | undefined {
    try {
      return decoder.decode(bytes);
    } catch {
      // Not UTF-8: forwarded like everything, and counted (S-704).
      return undefined;
    }
  }

  function work(): void {
    state.planned = false;
    for (const held of queue.splice(0, AT_ONCE)) hand(held);
    plan();
  }

  function plan(): void {
    if (state.planned || queue.length === 0) return;
    state.planned = true;
    soon(work);
  }

  function take(side: Side, line: Line): void {
    if (line.kind === 'oversize') {
      counts.oversize += 1;
      return;
    }
    if (line.bytes.length === 0) return;
    // Only when nothing waits: what waits may change what a line means.
    if (queue.length === 0 && options.idle?.(side, line.bytes.subarray(0, GLANCE_BYTES))) return;
    if (queue.length >= WRAP.teeLines || state.bytes + line.bytes.length > WRAP.teeBytes) {
      counts.full += 1;
      return;
    }
    state.bytes += line.bytes.length;
    // A copy: the stream's buffer may be used again.
    queue.push({ side, bytes: line.copied ? line.bytes : Buffer.from(line.bytes) });
  }

  return {
    counts,
    push(side, chunk) {
      if (state.closed) {
        counts.closed += 1;
        return;
      }
      for (const line of parts[side].push(chunk)) take(side, line);
      plan();
    },
    close() {
      if (state.closed) return;
      state.closed = true;
      for (const side of ['editor', 'claude'] as const) {
        const rest = parts[side].end();
        if (rest) take(side, rest);
      }
      for (const held of queue.splice(0)) hand(held);
    },
  };
}

type Line =
  /** `copied`: the bytes are ours already. Without the LF; a CR before it stays, JSON takes it for a blank. */
  { readonly kind: 'line'; readonly bytes: Buffer; readonly copied: boolean } | { readonly kind: 'oversize' };

interface Splitter {
  push(chunk: Uint8Array): Generator<Line>;
  end(): Line | undefined;
}

/** Cuts at LF; of a line that reaches the limit nothing is kept, however long it gets. */
function createSplitter(): Splitter {
  const state = { parts: [] as Buffer[], bytes: 0 };

  function finish(last: Buffer): Line {
    const { parts, bytes } = state;
    state.parts = [];
    state.bytes = 0;
    if (bytes + last.length >= WRAP.lineBytes) return { kind: 'oversize' };
    if (parts.length === 0) return { kind: 'line', bytes: last, copied: false };
    return { kind: 'line', bytes: Buffer.concat([...parts, last]), copied: true };
  }

  return {
    *push(chunk) {
      const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      let from = 0;
      for (let at = bytes.indexOf(LF); at >= 0; at = bytes.indexOf(LF, from)) {
        yield finish(bytes.subarray(from, at));
        from = at + 1;
      }
      const rest = bytes.length - from;
      if (rest === 0) return;
      state.bytes += rest;
      if (state.bytes >= WRAP.lineBytes) state.parts = [];
      else state.parts.push(Buffer.from(bytes.subarray(from)));
    },
    end: () => (state.bytes === 0 ? undefined : finish(Buffer.alloc(0))),
  };
}
