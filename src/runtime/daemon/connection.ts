import type { Socket } from 'node:net';
import type { WIRE } from '../limits.ts';
import type { Scheduler } from './clock.ts';
import { createLineDecoder, encodeLine, type Frame } from './line-codec.ts';
import type { ServiceLog } from './log.ts';
import { chainOf, failure, parseEnvelope, type Reply, RequestError, success } from './protocol.ts';
import type { RequestContext, SnapshotSource } from './service.ts';
import { type EndReason, type FrameSink, startSubscription } from './subscription.ts';

/** How long one connection's requests may run before the others have their turn, milliseconds. */
const SLICE_MS = 3;

/** A refusal names what was asked for, which may be a megabyte of anything; the log gets its beginning. */
const LOGGED_CHARS = 200;

/** What answers the requests of a connection. */
export interface Router {
  /** The payload of the reply, or a subscription that takes the connection over. Throws the error to send. */
  route(service: string, op: string, payload: unknown, context: RequestContext): Promise<Routed>;
}

export type Routed =
  | { readonly kind: 'reply'; readonly payload: unknown; readonly afterwards?: () => void }
  | { readonly kind: 'subscribe'; readonly source: SnapshotSource };

export interface ConnectionOptions {
  readonly socket: Socket;
  readonly router: Router;
  readonly scheduler: Scheduler;
  readonly log: ServiceLog;
  readonly limits: ConnectionLimits;
  readonly tickMs: number;
  readonly onClosed: () => void;
}

export type ConnectionLimits = Pick<Record<keyof typeof WIRE, number>, 'idleMs' | 'stalledMs' | 'pipelined'>;

export interface Connection {
  /** Waits for nothing and may be closed to free its descriptor (S-337). */
  readonly idle: boolean;
  /** Reads no more; closes at once when idle, else after the accepted requests; ends a subscription (S-336). */
  finish(): void;
  /** Cuts the connection and aborts what it still does. */
  abort(): void;
  readonly closed: Promise<void>;
}

/**
 * Serves one client: requests one after the other, each with one reply in order (S-301), until it leaves, breaks
 * the framing (S-304), asks nothing for a minute (S-337), takes no reply (S-323), or subscribes (S-319).
 */
export function serveConnection(options: ConnectionOptions): Connection {
  const { socket, router, scheduler, log, limits } = options;
  const decoder = createLineDecoder();
  const aborter = new AbortController();
  const { promise: closed, resolve: markClosed } = Promise.withResolvers<void>();
  const queue: Frame[] = [];
  const state = {
    busy: false,
    /** The client has said all, or we read no more. */
    ended: false,
    gone: false,
    subscription: undefined as (() => void) | undefined,
  };
  const cancels = { idle: () => {} };

  const sink: FrameSink = {
    write: (frame) => !state.gone && socket.write(frame),
    onceWritable: (run) => socket.once('drain', run),
  };

  const restartIdle = (): void => {
    cancels.idle();
    if (!state.gone) cancels.idle = scheduler.after(limits.idleMs, () => connection.idle && hangUp());
  };

  const hangUp = (): void => {
    if (state.gone) return;
    // A client that never closes its half must not keep the descriptor, nor one that never reads.
    socket.end(() => socket.destroy());
    cancels.idle();
    cancels.idle = scheduler.after(limits.stalledMs, () => socket.destroy());
  };

  /** Resolves once the client has room for more, false when it takes nothing for too long (S-323). */
  const send = async (reply: Reply): Promise<boolean> => {
    const line =
      encodeLine(reply) ?? encodeLine(failure(new RequestError('the reply is over the line limit')));
    if (!line || sink.write(line)) return !state.gone;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const cancel = scheduler.after(limits.stalledMs, () => resolve(false));
    sink.onceWritable(() => resolve(true));
    closed.then(() => resolve(false));
    const drained = await promise;
    cancel();
    if (!drained && !state.gone) {
      log('warn', 'connection_stalled');
      socket.destroy();
    }
    return drained;
  };

  const answer = async (line: string): Promise<void> => {
    const routed = await routeLine(line);
    if (routed.kind === 'subscribe') return subscribe(routed.source);
    await send(routed.kind === 'rejected' ? routed.reply : success(routed.payload));
    if (routed.kind === 'reply') routed.afterwards?.();
  };

  const routeLine = async (line: string): Promise<Routed | { kind: 'rejected'; reply: Reply }> => {
    try {
      const { service, op, payload } = parseEnvelope(line);
      return await router.route(service, op, payload, { signal: aborter.signal });
    } catch (thrown) {
      log('warn', 'request_rejected', { error: chainOf(thrown).slice(0, LOGGED_CHARS) });
      return { kind: 'rejected', reply: failure(thrown) };
    }
  };

  const refuse = async (frame: Exclude<Frame, { kind: 'line' }>): Promise<void> => {
    const text = frame.kind === 'tooLong' ? 'the line is over 1 MiB' : 'the line is not UTF-8';
    state.ended = true;
    await send(failure(new RequestError(text)));
  };

  const work = async (): Promise<void> => {
    if (state.busy) return;
    state.busy = true;
    let sliceEnd = performance.now() + SLICE_MS;
    while (!state.gone && !state.subscription) {
      const frame = queue.shift();
      if (!frame) break;
      await (frame.kind === 'line' ? answer(frame.text) : refuse(frame));
      if (performance.now() > sliceEnd) {
        // Answers that are ready never leave the microtasks by themselves: a flood would silence the others.
        await new Promise((resume) => setImmediate(resume));
        sliceEnd = performance.now() + SLICE_MS;
      }
      if (socket.isPaused() && queue.length < limits.pipelined) socket.resume();
    }
    state.busy = false;
    if (state.subscription && (queue.length > 0 || state.ended)) return endSubscription(subscriptionEnd());
    if (state.ended) return hangUp();
    restartIdle();
  };

  /** Any further line cancels; so does the end of the client's half (S-322). */
  const subscriptionEnd = (): EndReason => {
    const first = queue[0];
    if (first) return first.kind === 'line' ? 'ClientCancel' : 'ReadDecodeError';
    return 'ClientEof';
  };

  const subscribe = (source: SnapshotSource): void => {
    if (state.gone) return;
    cancels.idle();
    // Held before the first sample is written, because writing may already find the client gone.
    state.subscription = () => {};
    const stop = startSubscription({
      source,
      sink,
      scheduler,
      log,
      tickMs: options.tickMs,
      stalledMs: limits.stalledMs,
      onStalled: () => endSubscription('WriteFailure'),
    });
    state.subscription = stop;
    if (state.gone) stop();
  };

  const endSubscription = (reason: EndReason): void => {
    const stop = state.subscription;
    if (!stop) return;
    state.subscription = undefined;
    state.ended = true;
    stop();
    log(reason === 'WriteFailure' ? 'warn' : 'debug', 'subscription_ended', { reason });
    if (reason === 'WriteFailure') socket.destroy();
    else hangUp();
  };

  const take = (frames: readonly Frame[]): void => {
    if (state.ended || frames.length === 0) return;
    queue.push(...frames);
    if (queue.length >= limits.pipelined) socket.pause();
    if (state.subscription) endSubscription(subscriptionEnd());
    else work();
  };

  socket.on('data', (chunk) => take(decoder.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk)));
  socket.on('end', () => {
    state.ended = true;
    if (state.subscription) endSubscription('ClientEof');
    else work();
  });
  socket.on('error', (error) => {
    // A reset by the client; `close` follows and does the rest.
    log('debug', 'connection_error', { error: error.message });
    endSubscription('code' in error && error.code === 'EPIPE' ? 'WriteFailure' : 'ReadDecodeError');
  });
  socket.on('close', () => {
    if (state.gone) return;
    endSubscription('ClientEof');
    state.gone = true;
    cancels.idle();
    aborter.abort();
    markClosed();
    options.onClosed();
  });

  const connection: Connection = {
    get idle() {
      return !state.busy && !state.subscription && queue.length === 0;
    },
    finish() {
      state.ended = true;
      if (state.subscription) endSubscription('DaemonShutdown');
      else if (connection.idle) hangUp();
    },
    abort() {
      aborter.abort();
      socket.destroy();
    },
    closed,
  };
  restartIdle();
  return connection;
}
