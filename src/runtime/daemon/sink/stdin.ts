import { HOOK } from '../../limits.ts';

/** What came on stdin. */
export interface StdinText {
  readonly text: string;
  /** More came than is kept; the rest was read and dropped. */
  readonly cut: boolean;
  /** Its end came in time. */
  readonly ended: boolean;
}

/**
 * Reads a stream to its end, so that the writer never meets a closed pipe, and keeps the first bytes. A
 * stream whose end does not come is left after some seconds. Never rejects.
 */
export async function readBounded(
  stream: ReadableStream<Uint8Array>,
  options: { readonly keepBytes?: number; readonly waitMs?: number } = {},
): Promise<StdinText> {
  const keep = options.keepBytes ?? HOOK.stdinBytes;
  const { promise: late, resolve } = Promise.withResolvers<'late'>();
  const timer = setTimeout(() => resolve('late'), options.waitMs ?? HOOK.stdinMs);
  const chunks: Uint8Array[] = [];
  const state = { size: 0, kept: 0 };
  const reader = stream.getReader();

  const drain = async (): Promise<'ended' | 'failed'> => {
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return 'ended';
        state.size += value.length;
        if (state.kept >= keep) continue;
        // A stream may hand out the same memory again.
        const part = value.slice(0, keep - state.kept);
        state.kept += part.length;
        chunks.push(part);
      }
    } catch {
      // Stdin is closed, a folder, or gone: there is nothing to report.
      return 'failed';
    }
  };

  const outcome = await Promise.race([drain(), late]);
  clearTimeout(timer);
  const text = Buffer.concat(chunks).toString('utf8');
  return { text, cut: state.size > keep, ended: outcome === 'ended' };
}
