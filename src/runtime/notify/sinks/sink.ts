import type { Notice } from '../notice.ts';

/** What became of one delivery. `reason` is one line for the log, without what was told. */
export type SinkResult =
  | { readonly kind: 'delivered' }
  | { readonly kind: 'failed'; readonly reason: string };

/** A way to the owner. */
export interface Sink {
  readonly name: 'desktop' | 'command' | 'webhook';
  /** Where it goes, for `daemon status` and `notify test`; never a secret part of an address. */
  readonly words: string;
  /** Bounded in time; never throws. */
  send(notice: Notice, signal: AbortSignal): Promise<SinkResult>;
}

export const DELIVERED: SinkResult = { kind: 'delivered' };

/** A failure with its reason. */
export function failed(reason: string): SinkResult {
  return { kind: 'failed', reason };
}
