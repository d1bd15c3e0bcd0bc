/**
 * Puts the model's family before the terminal titles that Claude Code sets (S-720 … S-723). Bytes in, bytes out; it
 * holds back at most an unfinished title, and never more than 8 KiB of it.
 */

/** Longest part of a title that is held back until its end comes (K-33). */
export const HOLD_BYTES = 8 * 1024;

const ESC = 0x1b;
const BEL = 0x07;
const LF = 0x0a;
const BRACKET = 0x5d;
const SEMICOLON = 0x3b;
const BACKSLASH = 0x5c;
const ZERO = 0x30;
const TWO = 0x32;

const FAMILIES = [
  ['fable', '🟠 Fable'],
  ['opus', '🟡 Opus'],
  ['sonnet', '🟢 Sonnet'],
  ['haiku', '🔵 Haiku'],
] as const;

/** What stands before a title for a model id (S-720). */
export function titlePrefix(model: string): string {
  const id = model.toLowerCase();
  const family = FAMILIES.find(([word]) => id.includes(word));
  return `${family?.[1] ?? '⚪ Claude'} · `;
}

/** A complete title as it came: `ESC ] code ;`, its text, and its end. */
interface Title {
  readonly head: Buffer;
  readonly text: Buffer;
  readonly end: Buffer;
}

export interface TitleRewriter {
  /** What to write for these bytes of Claude's. */
  push(chunk: Uint8Array): Uint8Array;
  /**
   * Names the model from now on. Returns the last title again, with the new prefix, if it may stand here; it never
   * stands within a line, where it would break a JSON text, and otherwise follows with the next end of a line.
   */
  setModel(model: string): Uint8Array;
  /** What is still held back, at the end of the stream (S-723). */
  flush(): Uint8Array;
}

const NOTHING = Buffer.alloc(0);

export function createTitleRewriter(): TitleRewriter {
  const state = {
    held: NOTHING as Buffer,
    prefix: undefined as string | undefined,
    last: undefined as Title | undefined,
    atLineStart: true,
    due: false,
  };

  /** The last title again, if one is due and nothing of a line has been written yet. */
  function dueTitle(): Buffer {
    if (!state.due || !state.atLineStart || !state.last || state.prefix === undefined) return NOTHING;
    state.due = false;
    return shown(state.last, state.prefix);
  }

  /** Bytes that are not of a title, with a due title behind the first end of a line in them. */
  function plain(bytes: Buffer): Buffer[] {
    if (bytes.length === 0) return [];
    const first = dueTitle();
    const lineEnd = state.due ? bytes.indexOf(LF) : -1;
    if (lineEnd < 0) {
      state.atLineStart = bytes.at(-1) === LF;
      return [first, bytes];
    }
    state.atLineStart = true;
    const again = dueTitle();
    state.atLineStart = bytes.at(-1) === LF;
    return [first, bytes.subarray(0, lineEnd + 1), again, bytes.subarray(lineEnd + 1)];
  }

  function title(found: Title): Buffer {
    state.last = found;
    // Whatever was due is what this title says, too.
    state.due = state.prefix === undefined && state.due;
    return state.prefix === undefined ? whole(found) : shown(found, state.prefix);
  }

  return {
    push(chunk) {
      if (state.held.length === 0 && chunk.indexOf(ESC) < 0 && !state.due) {
        if (chunk.length > 0) state.atLineStart = chunk.at(-1) === LF;
        return chunk;
      }
      const bytes = state.held.length === 0 ? bufferOf(chunk) : Buffer.concat([state.held, chunk]);
      state.held = NOTHING;
      const out: Buffer[] = [];
      for (let at = 0; at < bytes.length; ) {
        const mark = bytes.indexOf(ESC, at);
        out.push(...plain(bytes.subarray(at, mark < 0 ? bytes.length : mark)));
        if (mark < 0) break;
        const read = readTitle(bytes, mark);
        if (read.kind === 'title') out.push(title(read.title));
        else if (read.kind === 'none') out.push(...plain(bytes.subarray(mark, read.next)));
        // A copy, so that a title that never ends does not keep a whole chunk.
        else state.held = Buffer.from(bytes.subarray(mark));
        at = read.kind === 'unfinished' ? bytes.length : read.next;
      }
      return Buffer.concat(out);
    },
    setModel(model) {
      const prefix = titlePrefix(model);
      if (prefix === state.prefix) return NOTHING;
      state.prefix = prefix;
      state.due = state.last !== undefined;
      return dueTitle();
    },
    flush() {
      const rest = state.held;
      state.held = NOTHING;
      return Buffer.concat(plain(rest));
    },
  };
}

type TitleRead =
  | { readonly kind: 'title'; readonly title: Title; readonly next: number }
  /** No title: these bytes pass as they are. */
  | { readonly kind: 'none'; readonly next: number }
  | { readonly kind: 'unfinished' };

/** Reads one sequence at an ESC. */
function readTitle(bytes: Buffer, start: number): TitleRead {
  const opening = [BRACKET, undefined, SEMICOLON];
  for (const [index, wanted] of opening.entries()) {
    const byte = bytes[start + 1 + index];
    if (byte === undefined) return { kind: 'unfinished' };
    const fits = wanted === undefined ? byte === ZERO || byte === TWO : byte === wanted;
    // An ESC here may begin a title of its own.
    if (!fits) return { kind: 'none', next: start + 1 + (byte === ESC ? index : index + 1) };
  }
  const textAt = start + 4;
  const end = endOf(bytes, textAt);
  if ((end ?? bytes.length) - textAt > HOLD_BYTES) return { kind: 'none', next: textAt + HOLD_BYTES };
  if (end === undefined) return { kind: 'unfinished' };
  const byBell = bytes[end] === BEL;
  const second = bytes[end + 1];
  if (!byBell && second === undefined) return { kind: 'unfinished' };
  if (!byBell && second !== BACKSLASH) return { kind: 'none', next: end };
  const text = bytes.subarray(textAt, end);
  const next = end + (byBell ? 1 : 2);
  if (!isUtf8(text)) return { kind: 'none', next };
  const copied = Buffer.from(bytes.subarray(start, next));
  const textLength = text.length;
  return {
    kind: 'title',
    next,
    title: {
      head: copied.subarray(0, 4),
      text: copied.subarray(4, 4 + textLength),
      end: copied.subarray(4 + textLength),
    },
  };
}

/** Where BEL or the next ESC stands; only so far as a title may reach. */
function endOf(bytes: Buffer, from: number): number | undefined {
  const limit = Math.min(bytes.length, from + HOLD_BYTES + 1);
  for (let at = from; at < limit; at += 1) if (bytes[at] === BEL || bytes[at] === ESC) return at;
  return undefined;
}

function isUtf8(bytes: Buffer): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return true;
  } catch {
    // Not UTF-8: no text that a prefix could stand before (S-721).
    return false;
  }
}

function whole({ head, text, end }: Title): Buffer {
  return Buffer.concat([head, text, end]);
}

function shown({ head, text, end }: Title, prefix: string): Buffer {
  return Buffer.concat([head, Buffer.from(prefix), text, end]);
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
