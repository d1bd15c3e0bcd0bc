import { WIRE } from '../limits.ts';

/**
 * What the bytes of a connection turned into. `tooLong` and `invalidUtf8` are the last frame of their
 * connection: where the next line begins is no longer known, or not worth trusting (S-304).
 */
export type Frame =
  | { readonly kind: 'line'; readonly text: string }
  | { readonly kind: 'tooLong' }
  | { readonly kind: 'invalidUtf8' };

/** Turns the chunks of one connection into frames. */
export interface LineDecoder {
  /** The frames that this chunk completes. The chunk may be reused afterwards. Empty after the last frame. */
  push(chunk: Uint8Array): readonly Frame[];
  /** Bytes kept of a line that has not ended; never more than the ceiling and a CR. */
  readonly pending: number;
}

const LF = 10;
const CR = 13;
/** Buffer that a connection may keep between two lines. */
const KEPT_BYTES = 64 * 1024;
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * A decoder for newline-delimited UTF-8 (S-301): LF ends a line, one CR before it is dropped, and a line of
 * more than `ceiling` bytes is refused as soon as that is certain, without keeping it (S-304).
 */
export function createLineDecoder(ceiling: number = WIRE.lineBytes): LineDecoder {
  const state = { kept: Buffer.alloc(0), pending: 0, done: false };

  const finish = (frame: Frame): Frame => {
    state.kept = Buffer.alloc(0);
    state.pending = 0;
    state.done = true;
    return frame;
  };

  // One growing buffer: a sender of single bytes must not cost an object a byte.
  const append = (bytes: Buffer): void => {
    if (state.pending + bytes.length > state.kept.length) {
      const grown = Buffer.allocUnsafe(Math.min(ceiling + 2, 2 * (state.pending + bytes.length)));
      state.kept.copy(grown, 0, 0, state.pending);
      state.kept = grown;
    }
    bytes.copy(state.kept, state.pending);
    state.pending += bytes.length;
  };

  const complete = (rest: Buffer): Frame => {
    if (state.pending + rest.length > ceiling + 1) return finish({ kind: 'tooLong' });
    if (state.pending > 0) append(rest);
    const bytes = state.pending > 0 ? state.kept.subarray(0, state.pending) : rest;
    const line = bytes.at(-1) === CR ? bytes.subarray(0, -1) : bytes;
    if (line.length > ceiling) return finish({ kind: 'tooLong' });
    state.pending = 0;
    // One long line must not hold its memory for as long as its connection lives.
    if (state.kept.length > KEPT_BYTES) state.kept = Buffer.alloc(0);
    try {
      return { kind: 'line', text: strict.decode(line) };
    } catch {
      // A fatal decoder throws for nothing else than bytes that are not UTF-8.
      return finish({ kind: 'invalidUtf8' });
    }
  };

  const keep = (rest: Buffer): Frame | undefined => {
    const total = state.pending + rest.length;
    const mayBeCr = total === ceiling + 1 && rest.at(-1) === CR;
    if (total > ceiling && !mayBeCr) return finish({ kind: 'tooLong' });
    append(rest);
    return undefined;
  };

  return {
    push(chunk) {
      const frames: Frame[] = [];
      const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      let at = 0;
      while (!state.done) {
        const lf = bytes.indexOf(LF, at);
        const frame = lf < 0 ? keep(bytes.subarray(at)) : complete(bytes.subarray(at, lf));
        if (frame) frames.push(frame);
        if (lf < 0) break;
        at = lf + 1;
      }
      return frames;
    },
    get pending() {
      return state.pending;
    },
  };
}

/** One value as a line with its LF, or `undefined` when it is over the ceiling (S-304). */
export function encodeLine(value: unknown, ceiling: number = WIRE.lineBytes): Buffer | undefined {
  const line = Buffer.from(`${JSON.stringify(value)}\n`, 'utf8');
  return line.length - 1 > ceiling ? undefined : line;
}
