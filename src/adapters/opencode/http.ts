import type { IncomingMessage, RequestOptions } from 'node:http';
import { errorCode } from '../../runtime/files/file-system.ts';
import { nobodyListens } from './listening.ts';
import { parseJson } from './values.ts';

/** User and password of Basic authentication. */
export interface Credentials {
  readonly user: string;
  readonly password: string;
}

/** A `GET`. Times are milliseconds, sizes bytes. */
export interface HttpGet {
  readonly url: string;
  readonly credentials?: Credentials;
  /** Until the whole answer is there; for a stream, until its head is. */
  readonly timeoutMs: number;
  /** A longer answer is given up. */
  readonly maxBytes: number;
  readonly signal?: AbortSignal;
}

/** Why there is no answer to use; `reason` is one line for the user. */
export interface HttpFailure {
  readonly kind: 'unreachable' | 'timeout' | 'needs-password' | 'not-opencode' | 'too-large' | 'status';
  readonly reason: string;
  readonly status?: number;
}

export type HttpJson =
  | { readonly kind: 'json'; readonly value: unknown; readonly headers: IncomingMessage['headers'] }
  | HttpFailure;

/** An answer whose body is still coming. */
export interface HttpStream {
  readonly kind: 'stream';
  readonly chunks: AsyncIterable<Uint8Array>;
  close(): void;
}

/**
 * Asks for JSON. A redirect is not followed, and HTML is refused: OpenCode answers unknown routes with its web
 * app and status 200. Never throws.
 *
 * `node:http` and not `fetch`: Bun 1.4.5's `fetch` sends even loopback requests, password and all, to the proxy
 * that `HTTP_PROXY` names.
 */
export async function getJson(get: HttpGet): Promise<HttpJson> {
  const opened = await open(get, 'application/json');
  if ('reason' in opened) return opened;
  const { response, finish, late } = opened;
  const body = await readBody(response, get.maxBytes);
  finish();
  if (late()) return tooLate(get);
  if (body === undefined)
    return { kind: 'too-large', reason: `its answer is larger than ${get.maxBytes} bytes` };
  if (typeof body !== 'string') return body;
  const value = parseJson(body);
  if (value === undefined) return { kind: 'not-opencode', reason: 'its answer is not JSON' };
  return { kind: 'json', value, headers: response.headers };
}

/** Opens an event stream; its body has no limit and no time limit. Never throws, but its chunks may end in an error. */
export async function openStream(get: HttpGet): Promise<HttpStream | HttpFailure> {
  const opened = await open(get, 'text/event-stream');
  if ('reason' in opened) return opened;
  const { response, finish, stopClock } = opened;
  stopClock();
  return { kind: 'stream', chunks: response, close: finish };
}

const NOTHING_LISTENS = 'nothing listens there';

interface Opened {
  readonly response: IncomingMessage;
  /** Ends the exchange, whatever is left of it. */
  finish(): void;
  stopClock(): void;
  /** Whether the time ran out. */
  late(): boolean;
}

function tooLate(get: HttpGet): HttpFailure {
  return { kind: 'timeout', reason: `no answer within ${get.timeoutMs} ms` };
}

async function open(
  get: HttpGet,
  type: 'application/json' | 'text/event-stream',
): Promise<Opened | HttpFailure> {
  const url = new URL(get.url);
  if (await nobodyListens(url)) return { kind: 'unreachable', reason: NOTHING_LISTENS };
  // Imported when there is somebody to ask: `node:http` takes 16 ms, and most lists find no server.
  const { request } = url.protocol === 'https:' ? await import('node:https') : await import('node:http');
  if (get.signal?.aborted) return { kind: 'unreachable', reason: 'it was not asked' };
  return new Promise((resolve) => {
    const asked = request(url, requestOptions(get, type));
    const state = { late: false };
    const clock = setTimeout(() => {
      state.late = true;
      resolve(tooLate(get));
      asked.destroy(new Error('timed out'));
    }, get.timeoutMs);
    const abort = (): void => void asked.destroy(new Error('aborted'));
    get.signal?.addEventListener('abort', abort, { once: true });
    const stopClock = (): void => clearTimeout(clock);
    const finish = (): void => {
      stopClock();
      get.signal?.removeEventListener('abort', abort);
      asked.destroy();
    };
    asked.on('error', (error) => {
      // After the answer has begun this settles nothing any more: the body's reader sees the same error.
      resolve({ kind: 'unreachable', reason: reasonOf(error) });
      finish();
    });
    asked.on('response', (response) => {
      const failure = refuse(response, type);
      if (failure) finish();
      resolve(failure ?? { response, finish, stopClock, late: () => state.late });
    });
    asked.end();
  });
}

function requestOptions(get: HttpGet, type: string): RequestOptions {
  const { credentials } = get;
  const token = credentials && Buffer.from(`${credentials.user}:${credentials.password}`).toString('base64');
  return {
    method: 'GET',
    agent: false,
    headers: { accept: type, ...(token ? { authorization: `Basic ${token}` } : {}) },
  };
}

function refuse(response: IncomingMessage, type: string): HttpFailure | undefined {
  const status = response.statusCode ?? 0;
  if (status === 401) return { kind: 'needs-password', reason: 'it asks for a password', status };
  if (status >= 300 && status < 400) {
    return { kind: 'not-opencode', reason: 'it sends on to another address, which is not followed', status };
  }
  if (status !== 200) return { kind: 'status', reason: `it answers with status ${status}`, status };
  const given = response.headers['content-type'] ?? '';
  return given.startsWith(type)
    ? undefined
    : { kind: 'not-opencode', reason: 'its answer is not OpenCode’s' };
}

/** The body as text; `undefined` when it is too large. */
async function readBody(
  response: IncomingMessage,
  maxBytes: number,
): Promise<string | HttpFailure | undefined> {
  const chunks: Uint8Array[] = [];
  const sizes = { total: 0 };
  try {
    for await (const chunk of response as AsyncIterable<Uint8Array>) {
      sizes.total += chunk.byteLength;
      if (sizes.total > maxBytes) return undefined;
      chunks.push(chunk);
    }
  } catch (error) {
    return { kind: 'unreachable', reason: reasonOf(error) };
  }
  return Buffer.concat(chunks).toString('utf8');
}

function reasonOf(error: unknown): string {
  const code = errorCode(error);
  if (code === 'ECONNREFUSED') return NOTHING_LISTENS;
  if (code !== 'unknown') return `the connection failed (${code})`;
  return error instanceof Error
    ? (error.message.split('\n', 1)[0] ?? 'the connection failed')
    : 'the connection failed';
}
