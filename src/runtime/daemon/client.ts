import { CLIENT } from '../limits.ts';
import type { Scheduler } from './clock.ts';
import { systemScheduler } from './clock.ts';
import { endpointOf } from './endpoint.ts';
import { createLineDecoder, encodeLine, type Frame } from './line-codec.ts';

/** What became of one request. Nothing is thrown: whether a service runs is a normal question. */
export type RequestResult =
  | { readonly kind: 'ok'; readonly payload: unknown }
  /** The service has refused it; its own words. */
  | { readonly kind: 'rejected'; readonly error: string }
  /** `none`: nobody listens. `timeout`: somebody does, and did not answer in time; slow is not dead (D10). */
  | { readonly kind: 'unreachable'; readonly reason: 'none' | 'timeout' | 'broken'; readonly detail: string };

/** What a subscription tells. `payload` is a whole snapshot. */
export type SubscriptionEvent =
  | { readonly kind: 'snapshot'; readonly payload: unknown }
  /** The connection was lost, or there was none; it is tried again after `retryMs`. */
  | { readonly kind: 'lost'; readonly detail: string; readonly retryMs: number }
  /** This service can't stream: from now on it is asked again and again instead (S-325). */
  | { readonly kind: 'polling'; readonly error: string };

export interface RequestOptions {
  /** From connecting to the reply; default 2 s. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface SubscribeOptions {
  readonly payload?: unknown;
  readonly signal?: AbortSignal;
  /** Operation to ask when the service can't stream; default `list`. */
  readonly pollOp?: string;
  readonly pollMs?: number;
}

export interface ServiceClient {
  /** One request on a connection of its own. */
  request(service: string, op: string, payload?: unknown, options?: RequestOptions): Promise<RequestResult>;
  /**
   * Snapshots until the signal, reconnecting for ever with a growing wait (K-39, D8). Of snapshots that come faster
   * than they are taken only the newest is kept.
   */
  subscribe(service: string, op: string, options?: SubscribeOptions): AsyncIterable<SubscriptionEvent>;
}

export interface ClientOptions {
  readonly socketPath: string;
  readonly platform?: NodeJS.Platform;
  readonly scheduler?: Scheduler;
  /** A number from 0 to 1, for the jitter. */
  readonly random?: () => number;
}

/** How often a service that can't stream is asked. */
const POLL_MS = 2_000;

/** A client of the service's socket, for commands. `Bun.connect` loads five times faster than `node:net`. */
export function createClient(options: ClientOptions): ServiceClient {
  const address = endpointOf(options.socketPath, options.platform).path;
  const scheduler = options.scheduler ?? systemScheduler;
  const random = options.random ?? Math.random;

  const request: ServiceClient['request'] = async (service, op, payload, how = {}) => {
    const line = encodeLine(requestOf(service, op, payload));
    if (!line) return { kind: 'rejected', error: 'the request is over the line limit' };
    const { promise, resolve } = Promise.withResolvers<RequestResult>();
    const connection = openLine(address, line, {
      frame: (frame) => resolve(replyOf(frame)),
      closed: (detail, opened) =>
        resolve({ kind: 'unreachable', reason: opened ? 'broken' : 'none', detail }),
    });
    const timeoutMs = how.timeoutMs ?? CLIENT.requestMs;
    const late = (): void =>
      resolve({ kind: 'unreachable', reason: 'timeout', detail: `no answer within ${timeoutMs} ms` });
    const cancel = scheduler.after(timeoutMs, late);
    const abort = (): void => resolve({ kind: 'unreachable', reason: 'broken', detail: 'aborted' });
    how.signal?.addEventListener('abort', abort, { once: true });
    if (how.signal?.aborted) abort();
    const result = await promise;
    cancel();
    how.signal?.removeEventListener('abort', abort);
    connection.close();
    return result;
  };

  /** One connection's snapshots; returns why it ended. */
  async function* streamOnce(
    service: string,
    op: string,
    how: SubscribeOptions,
  ): AsyncGenerator<SubscriptionEvent, StreamEnd> {
    const line = encodeLine(requestOf(service, op, how.payload));
    if (!line) return { kind: 'refused', error: 'the request is over the line limit' };
    const box = createBox<RequestResult>();
    const connection = openLine(address, line, {
      frame: (frame) => box.put(replyOf(frame)),
      closed: (detail) => box.close({ kind: 'unreachable', reason: 'broken', detail }),
    });
    const abort = (): void => box.close({ kind: 'unreachable', reason: 'broken', detail: 'aborted' });
    how.signal?.addEventListener('abort', abort, { once: true });
    if (how.signal?.aborted) abort();
    let snapshots = 0;
    try {
      for (;;) {
        const reply = await box.take();
        if (reply.kind === 'rejected') return { kind: 'refused', error: reply.error };
        if (reply.kind === 'unreachable') return { kind: 'lost', detail: reply.detail, snapshots };
        snapshots += 1;
        yield { kind: 'snapshot', payload: reply.payload };
      }
    } finally {
      how.signal?.removeEventListener('abort', abort);
      connection.close();
    }
  }

  /** Asks until the service is gone: when it is back it may be another version, which can stream (S-325). */
  async function* pollOnce(
    service: string,
    how: SubscribeOptions,
  ): AsyncGenerator<SubscriptionEvent, string> {
    let last = '';
    while (!how.signal?.aborted) {
      const reply = await request(
        service,
        how.pollOp ?? 'list',
        undefined,
        how.signal ? { signal: how.signal } : {},
      );
      if (reply.kind === 'unreachable') return reply.detail;
      const print = reply.kind === 'ok' ? JSON.stringify(reply.payload) : last;
      if (print !== last && reply.kind === 'ok') yield { kind: 'snapshot', payload: reply.payload };
      last = print;
      await pause(scheduler, how.pollMs ?? POLL_MS, how.signal);
    }
    return 'aborted';
  }

  return {
    request,
    async *subscribe(service, op, how = {}) {
      let waitMs: number = CLIENT.reconnectFirstMs;
      while (!how.signal?.aborted) {
        const end = yield* streamOnce(service, op, how);
        if (how.signal?.aborted) return;
        if (end.kind === 'refused') yield { kind: 'polling', error: end.error };
        const detail = end.kind === 'refused' ? yield* pollOnce(service, how) : end.detail;
        if (how.signal?.aborted) return;
        if (end.kind === 'refused' || end.snapshots > 0) waitMs = CLIENT.reconnectFirstMs;
        const retryMs = Math.round(waitMs * (1 + random() / 2));
        yield { kind: 'lost', detail, retryMs };
        await pause(scheduler, retryMs, how.signal);
        waitMs = Math.min(waitMs * 2, CLIENT.reconnectCapMs);
      }
    },
  };
}

type StreamEnd =
  | { readonly kind: 'refused'; readonly error: string }
  | { readonly kind: 'lost'; readonly detail: string; readonly snapshots: number };

function requestOf(service: string, op: string, payload: unknown): Record<string, unknown> {
  return { ...(service === 'daemon' ? {} : { service }), op, ...(payload === undefined ? {} : { payload }) };
}

/** A reply as a result; whatever is no reply of ours means that something else listens there. */
function replyOf(frame: Frame): RequestResult {
  const broken = (detail: string): RequestResult => ({ kind: 'unreachable', reason: 'broken', detail });
  if (frame.kind !== 'line')
    return broken(frame.kind === 'tooLong' ? 'a reply over the line limit' : 'a reply that is not UTF-8');
  const value = parse(frame.text);
  if (typeof value !== 'object' || value === null || !('ok' in value))
    return broken('a reply that is none of ours');
  if (value.ok === true) return { kind: 'ok', payload: 'payload' in value ? value.payload : undefined };
  const error =
    'error' in value && typeof value.error === 'string' ? value.error : 'refused without a reason';
  return { kind: 'rejected', error };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not JSON, which the caller takes for "none of ours".
    return undefined;
  }
}

interface LineHandlers {
  frame(frame: Frame): void;
  /** `opened` tells a refused connection from one that was lost. */
  closed(detail: string, opened: boolean): void;
}

/** Connects, writes one line, and hands out what comes back, a megabyte a line at most (S-304). */
function openLine(address: string, line: Buffer, handlers: LineHandlers): { close(): void } {
  const decoder = createLineDecoder();
  const state = { rest: line, opened: false, done: false, end: () => {} };

  const finish = (detail: string): void => {
    if (state.done) return;
    state.done = true;
    handlers.closed(detail, state.opened);
  };
  const push = (socket: { write(bytes: Uint8Array): number }): void => {
    state.rest = state.rest.subarray(Math.max(0, socket.write(state.rest)));
  };

  Bun.connect({
    unix: address,
    socket: {
      open(socket) {
        state.opened = true;
        state.end = () => void socket.end();
        if (state.done) state.end();
        else push(socket);
      },
      drain(socket) {
        if (state.rest.length > 0) push(socket);
      },
      data(_socket, chunk) {
        for (const frame of decoder.push(chunk)) if (!state.done) handlers.frame(frame);
      },
      end: () => finish('the service closed the connection'),
      close: () => finish('the connection was lost'),
      error: (_socket, error) => finish(error.message),
      connectError: (_socket, error) => finish(error.message),
    },
  }).catch((error: unknown) => finish(error instanceof Error ? error.message : String(error)));

  return {
    close() {
      state.done = true;
      state.end();
    },
  };
}

/** Holds the newest item for a slow taker, and the closing one behind it. */
function createBox<T>(): { put(item: T): void; close(item: T): void; take(): Promise<T> } {
  const state = {
    item: undefined as { readonly value: T } | undefined,
    last: undefined as { readonly value: T } | undefined,
  };
  const waiting = { wake: () => {} };
  return {
    put(value) {
      state.item = { value };
      waiting.wake();
    },
    close(value) {
      state.last ??= { value };
      waiting.wake();
    },
    async take() {
      for (;;) {
        const next = state.item ?? state.last;
        state.item = undefined;
        if (next) return next.value;
        const { promise, resolve } = Promise.withResolvers<void>();
        waiting.wake = resolve;
        await promise;
      }
    },
  };
}

function pause(scheduler: Scheduler, ms: number, signal: AbortSignal | undefined): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const cancel = scheduler.after(ms, resolve);
  const abort = (): void => {
    cancel();
    resolve();
  };
  if (signal?.aborted) abort();
  signal?.addEventListener('abort', abort, { once: true });
  return promise.finally(() => signal?.removeEventListener('abort', abort));
}
