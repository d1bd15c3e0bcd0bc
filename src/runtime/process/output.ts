/** Reads a child's output to its end, keeping a bounded part of it. */

/** One stream of a child, while it is read and afterwards. */
export interface Collected {
  /** Resolves when the stream has ended or `stop` was called; never rejects. */
  readonly done: Promise<void>;
  /** Gives up on the rest: a process that we can't end may hold the pipe open. */
  readonly stop: () => void;
  readonly bytes: () => Uint8Array;
  readonly seen: () => number;
}

/**
 * Reads `stream` all the way, so that the child never blocks on a full pipe, and keeps the first (`head`) or the
 * last (`tail`) `limit` bytes. Memory stays under `limit` plus two chunks.
 */
export function collect(
  stream: ReadableStream<Uint8Array>,
  limit: number,
  keep: 'head' | 'tail',
  onChunk?: (chunk: Uint8Array) => void,
): Collected {
  const reader = stream.getReader();
  const chunks: Uint8Array[] = [];
  let kept = 0;
  let seen = 0;
  const take = (chunk: Uint8Array): void => {
    seen += chunk.byteLength;
    onChunk?.(chunk);
    if (keep === 'head') {
      const part = chunk.subarray(0, Math.max(0, limit - kept));
      if (part.byteLength > 0) chunks.push(part.slice());
      kept += part.byteLength;
      return;
    }
    chunks.push(chunk.slice());
    kept += chunk.byteLength;
    for (let first = chunks[0]; first && kept - first.byteLength >= limit; first = chunks[0]) {
      kept -= first.byteLength;
      chunks.shift();
    }
  };
  const read = async (): Promise<void> => {
    try {
      for (let next = await reader.read(); !next.done; next = await reader.read()) take(next.value);
    } catch {
      // The pipe broke: what was read stands, and the exit code tells the rest.
    }
  };
  return {
    done: read(),
    stop: () => {
      reader.cancel().catch(() => {
        // Already closed, which is what was wanted.
      });
    },
    bytes: () => {
      const all = Buffer.concat(chunks);
      return keep === 'head' ? all : all.subarray(Math.max(0, all.byteLength - limit));
    },
    seen: () => seen,
  };
}

/** Text of a child's output; bytes that are no UTF-8 become U+FFFD. */
export function decode(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { ignoreBOM: false }).decode(bytes);
}
