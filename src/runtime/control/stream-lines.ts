import { CONTROL } from '../limits.ts';

/** Splits what a program writes into its lines. */
export interface LineSplitter {
  /** The lines that this chunk completes, without their ends. */
  push(chunk: Uint8Array): readonly string[];
  /** A last line without an end, once the stream is over. */
  rest(): string | undefined;
  /** Lines that were longer than the limit: skipped, and what follows them is read. */
  readonly skipped: number;
}

const LF = 10;
const CR = 13;

/**
 * A splitter for newline-delimited UTF-8 of a program that we started ourselves. Unlike the codec of the socket it
 * goes on after a line that is too long, and lets broken UTF-8 be U+FFFD: one odd line must not end a session.
 * LF alone ends a line, never U+2028; one CR before it is dropped.
 */
export function createLineSplitter(limit: number = CONTROL.streamLineBytes): LineSplitter {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const state = { parts: [] as Buffer[], size: 0, tooLong: false, skipped: 0 };

  const keep = (bytes: Buffer): void => {
    state.size += bytes.length;
    state.tooLong ||= state.size > limit;
    // A line that is given up is not kept, however long it gets.
    if (state.tooLong) state.parts = [];
    else if (bytes.length > 0) state.parts.push(Buffer.from(bytes));
  };

  const finish = (): string | undefined => {
    const { tooLong } = state;
    const line = Buffer.concat(state.parts);
    state.parts = [];
    state.size = 0;
    state.tooLong = false;
    if (tooLong) {
      state.skipped += 1;
      return undefined;
    }
    return decoder.decode(line.at(-1) === CR ? line.subarray(0, -1) : line);
  };

  return {
    push(chunk) {
      const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      const lines: string[] = [];
      let at = 0;
      for (let lf = bytes.indexOf(LF); lf >= 0; lf = bytes.indexOf(LF, at)) {
        keep(bytes.subarray(at, lf));
        at = lf + 1;
        const line = finish();
        if (line !== undefined) lines.push(line);
      }
      keep(bytes.subarray(at));
      return lines;
    },
    rest() {
      return state.size > 0 ? finish() : undefined;
    },
    get skipped() {
      return state.skipped;
    },
  };
}

/** Hands on every line of a child until its output ends. */
export async function readLines(
  stdout: AsyncIterable<Uint8Array>,
  take: (line: string) => void,
): Promise<void> {
  const lines = createLineSplitter();
  try {
    for await (const chunk of stdout) for (const line of lines.push(chunk)) take(line);
  } catch {
    // The pipe broke: the exit tells the rest.
  }
  const rest = lines.rest();
  if (rest !== undefined) take(rest);
}

/** The value, or undefined when it takes longer: something may hold a pipe open after the program's end. */
export async function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), ms);
  const first = await Promise.race([promise, late]);
  clearTimeout(timer);
  return first;
}

/** A step that is taken once, however often it is asked for. */
export function once<T>(run: () => Promise<T>): () => Promise<T> {
  const state: { promise?: Promise<T> } = {};
  return () => {
    state.promise ??= run();
    return state.promise;
  };
}
