import { type RequestOptions, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { errorCode } from '../../../runtime/files/file-system.ts';
import type { Endpoint } from '../endpoints.ts';
import { objectOf, parseJson, textOf } from '../values.ts';

/** What came of a `POST`. */
export type Posted =
  /** The server has answered; `value` is undefined for an empty body. */
  | { readonly kind: 'answer'; readonly status: number; readonly value: unknown }
  /** No answer. `sent`: the request may have arrived, so nothing may be concluded, or sent again (A1). */
  | { readonly kind: 'failed'; readonly reason: string; readonly sent: boolean };

export interface PostOptions {
  /** Path with its leading slash, and what is asked with it. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
  /** Until the whole answer is there, milliseconds. */
  readonly timeoutMs: number;
}

/** Largest answer that is read, bytes: the largest that is wanted is a session. */
const ANSWER_BYTES = 1024 * 1024;

/** Codes of failures before any byte was sent. */
const NOT_SENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);

/**
 * Posts JSON. Redirects are not followed, and the web app's HTML, which OpenCode answers unknown routes with, is no
 * answer. Never throws. `node:http` and not `fetch`: see `../http.ts`.
 */
export function post(endpoint: Pick<Endpoint, 'url' | 'credentials'>, options: PostOptions): Promise<Posted> {
  const { promise, resolve } = Promise.withResolvers<Posted>();
  const url = new URL(`${endpoint.url}${options.path}${searchOf(options.query)}`);
  const body = Buffer.from(options.body === undefined ? '' : JSON.stringify(options.body), 'utf8');
  const send = url.protocol === 'https:' ? requestHttps : requestHttp;
  const asked = send(url, requestOptions(endpoint, body));
  const failed = (reason: string, sent: boolean): void => {
    resolve({ kind: 'failed', reason, sent });
    asked.destroy();
  };
  const clock = setTimeout(() => failed(`no answer within ${options.timeoutMs} ms`, true), options.timeoutMs);
  asked.on('error', (error) => {
    const code = errorCode(error);
    failed(wordsOf(code, error), !NOT_SENT.has(code));
  });
  asked.on('response', (response) => {
    const chunks: Uint8Array[] = [];
    const state = { size: 0 };
    response.on('data', (chunk: Uint8Array) => {
      state.size += chunk.byteLength;
      if (state.size <= ANSWER_BYTES) chunks.push(chunk);
      else failed('its answer is too large', true);
    });
    response.on('error', (error) => failed(wordsOf(errorCode(error), error), true));
    response.on('aborted', () => failed('the connection was cut in the middle of the answer', true));
    response.on('end', () => {
      const text = Buffer.concat(chunks).toString('utf8');
      resolve(readAnswer(response.statusCode ?? 0, response.headers['content-type'] ?? '', text));
    });
  });
  asked.end(body);
  return promise.finally(() => clearTimeout(clock));
}

function requestOptions({ credentials }: Pick<Endpoint, 'credentials'>, body: Buffer): RequestOptions {
  const token = credentials && Buffer.from(`${credentials.user}:${credentials.password}`).toString('base64');
  return {
    method: 'POST',
    agent: false,
    headers: {
      accept: 'application/json',
      'content-length': body.byteLength,
      ...(body.byteLength > 0 ? { 'content-type': 'application/json' } : {}),
      ...(token ? { authorization: `Basic ${token}` } : {}),
    },
  };
}

function searchOf(query: PostOptions['query']): string {
  const given = Object.entries(query ?? {}).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
}

function readAnswer(status: number, type: string, text: string): Posted {
  const html = status === 200 && text !== '' && !type.startsWith('application/json');
  if (html || (status >= 300 && status < 400)) {
    return { kind: 'failed', reason: 'its answer is not OpenCode’s', sent: false };
  }
  return { kind: 'answer', status, value: text === '' ? undefined : parseJson(text) };
}

function wordsOf(code: string, error: Error): string {
  if (code === 'ECONNREFUSED') return 'nothing listens there';
  if (code !== 'unknown') return `the connection failed (${code})`;
  return error.message.split('\n', 1)[0] ?? 'the connection failed';
}

/** One line of an error answer of OpenCode's: `{name, data:{message}}`, or `{_tag, message}`. */
export function errorWords({ status, value }: { readonly status: number; readonly value: unknown }): string {
  const raw = objectOf(value);
  const said = textOf(objectOf(raw?.['data'])?.['message']) ?? textOf(raw?.['message']);
  const [line = ''] = said?.split('\n', 1) ?? [];
  return line.slice(0, 300) || `it answers with status ${status}`;
}
