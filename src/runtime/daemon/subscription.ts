import { WIRE } from '../limits.ts';
import type { Scheduler } from './clock.ts';
import { every } from './clock.ts';
import { encodeLine } from './line-codec.ts';
import type { ServiceLog } from './log.ts';
import { success } from './protocol.ts';
import type { SnapshotSource } from './service.ts';

/** Why a subscription ended (S-935). */
export type EndReason = 'ClientCancel' | 'ClientEof' | 'ReadDecodeError' | 'DaemonShutdown' | 'WriteFailure';

/** The writing half of a connection, as a subscription sees it. */
export interface FrameSink {
  /** Takes one frame; false when the next one must wait for `onceWritable`. */
  write(frame: Uint8Array): boolean;
  /** Calls back once all that was written has left. */
  onceWritable(run: () => void): void;
}

export interface SubscriptionOptions {
  readonly source: SnapshotSource;
  readonly sink: FrameSink;
  readonly scheduler: Scheduler;
  readonly log: ServiceLog;
  /** Called when the reader has taken nothing for `stalledMs`. */
  readonly onStalled: () => void;
  readonly tickMs?: number;
  readonly stalledMs?: number;
}

type Trigger = 'initial' | 'change_notification' | 'periodic_tick';

/**
 * Feeds one subscriber (S-319 … S-323): a snapshot at once, then a fresh one after each change and each tick, sent
 * only when it differs from the last one sent. Any number of changes before the subscriber is served is one
 * sample (S-122); while it does not read, later samples replace the one that waits, because only the fact that
 * one is due is kept. Returns the function that ends it; it never delays anything (S-322).
 */
export function startSubscription(options: SubscriptionOptions): () => void {
  const { source, sink, scheduler, log } = options;
  const state = {
    ended: false,
    blocked: false,
    due: undefined as Trigger | undefined,
    scheduled: false,
    last: '',
  };
  const seen = { version: source.version() };
  const cancels = { stalled: () => {} };

  const send = (trigger: Trigger): void => {
    seen.version = source.version();
    const frame = encodeLine(success(source.sample()));
    if (!frame) {
      log('warn', 'subscription_sample', { trigger, result: 'too_large' });
      return;
    }
    const print = fingerprint(frame);
    const result = print === state.last ? 'suppressed_identical' : 'pushed';
    log('trace', 'subscription_sample', { trigger, result });
    if (result === 'suppressed_identical') return;
    state.last = print;
    if (sink.write(frame)) return;
    state.blocked = true;
    cancels.stalled = scheduler.after(options.stalledMs ?? WIRE.stalledMs, options.onStalled);
    sink.onceWritable(() => {
      state.blocked = false;
      cancels.stalled();
      serve();
    });
  };

  const serve = (): void => {
    const { due } = state;
    if (state.ended || state.blocked || due === undefined) return;
    state.due = undefined;
    if (due === 'change_notification' && source.version() === seen.version) return;
    send(due);
  };

  const want = (trigger: Trigger): void => {
    // A tick samples whatever the version is, so it is never replaced by a change that waits with it.
    if (state.due !== 'periodic_tick') state.due = trigger;
    if (state.scheduled || state.blocked) return;
    state.scheduled = true;
    setImmediate(() => {
      state.scheduled = false;
      serve();
    });
  };

  const unsubscribe = source.onChange(() => want('change_notification'));
  const cancelTick = every(scheduler, options.tickMs ?? WIRE.tickMs, () => want('periodic_tick'));
  send('initial');

  return () => {
    state.ended = true;
    unsubscribe();
    cancelTick();
    cancels.stalled();
  };
}

/** What a frame is recognised by: keeping a megabyte per subscriber for that would be too much. */
function fingerprint(frame: Uint8Array): string {
  return new Bun.CryptoHasher('sha256').update(frame).digest('base64');
}

/**
 * The tick of subscriptions from `SHADOWOB_CONNECTOR_DAEMON_STREAM_TICK`: whole seconds above zero, else the
 * default (K-28, C-122). Milliseconds.
 */
export function streamTickMs(text: string | undefined): number {
  const seconds = /^\s*\d{1,6}\s*$/.test(text ?? '') ? Number(text) : 0;
  return seconds > 0 ? seconds * 1_000 : WIRE.tickMs;
}
