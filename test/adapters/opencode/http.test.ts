import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { getJson } from '../../../src/adapters/opencode/http.ts';
import { createServerApi } from '../../../src/adapters/opencode/server-api.ts';

const CREDENTIALS = { user: 'opencode', password: 'secret' };
const seen: { path: string; authorization: string | null }[] = [];
const elsewhere: string[] = [];

function answer(path: string): Response | Promise<Response> {
  switch (path) {
    case '/session/status':
      return Response.json({
        ses_busy: { type: 'busy' },
        ses_retry: { type: 'retry', attempt: 1, message: 'Overloaded\u001b[31m', next: 5 },
        ses_idle: { type: 'idle' },
        ses_new: { type: 'dancing' },
        bogus: { type: 'busy' },
      });
    case '/html':
      return new Response('<!doctype html>', { headers: { 'content-type': 'text/html' } });
    case '/experimental/session':
      return new Response('<!doctype html>', { headers: { 'content-type': 'text/html;charset=utf-8' } });
    case '/session':
      return Response.json([{ id: 'ses_a', title: 'A', directory: '/x' }, { id: 7 }, 'junk', null]);
    case '/garbage':
      return new Response('{"healthy":tr', { headers: { 'content-type': 'application/json' } });
    case '/redirect':
      return new Response(null, {
        status: 302,
        headers: { location: `http://127.0.0.1:${other?.port}/stolen` },
      });
    case '/broken':
      return Response.json({ name: 'UnknownError' }, { status: 500 });
    case '/large':
      return new Response(`"${'x'.repeat(200_000)}"`, { headers: { 'content-type': 'application/json' } });
    case '/never':
      return new Promise<Response>(() => {});
    case '/slow-body':
      return new Response(
        new ReadableStream({ start: (out) => out.enqueue(new TextEncoder().encode('{"a":')) }),
        {
          headers: { 'content-type': 'application/json' },
        },
      );
    default:
      return Response.json({ healthy: true, version: '1.18.33' });
  }
}

let server: ReturnType<typeof Bun.serve> | undefined;
let other: ReturnType<typeof Bun.serve> | undefined;

beforeAll(() => {
  server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      const authorization = request.headers.get('authorization');
      const { pathname } = new URL(request.url);
      seen.push({ path: pathname, authorization });
      const token = Buffer.from('opencode:secret').toString('base64');
      if (authorization !== `Basic ${token}`) {
        return new Response(null, {
          status: 401,
          headers: { 'www-authenticate': 'Basic realm="Secure Area"' },
        });
      }
      return answer(pathname);
    },
  });
  other = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      elsewhere.push(request.url);
      return Response.json({ healthy: true, version: 'stolen' });
    },
  });
});
afterAll(async () => {
  await server?.stop(true);
  await other?.stop(true);
});
afterEach(() => {
  elsewhere.length = 0;
});

const url = (path: string): string => `http://127.0.0.1:${server?.port}${path}`;
const get = (path: string, more: { timeoutMs?: number; maxBytes?: number } = {}) =>
  getJson({ url: url(path), credentials: CREDENTIALS, timeoutMs: 2_000, maxBytes: 100_000, ...more });
const api = () =>
  createServerApi({ url: url(''), named: true, credentials: CREDENTIALS }, () => 1_796_069_000_000);

describe('one HTTP exchange', () => {
  test('Basic authentication carries user and password', async () => {
    expect(await api().health()).toEqual({ kind: 'ok', value: '1.18.33', skipped: 0 });
    expect(seen.at(-1)?.authorization).toBe(`Basic ${Buffer.from('opencode:secret').toString('base64')}`);
  });

  test('without or with a wrong password: needs-password', async () => {
    const bare = createServerApi({ url: url(''), named: true }, Date.now);
    const wrong = createServerApi(
      { url: url(''), named: true, credentials: { user: 'opencode', password: 'x' } },
      Date.now,
    );
    expect((await bare.health()).kind).toBe('needs-password');
    expect((await wrong.health()).kind).toBe('needs-password');
  });

  test('an unknown route answers 200 with the web app: not OpenCode’s answer', async () => {
    expect((await get('/html')).kind).toBe('not-opencode');
  });

  test('half a JSON, a server error, and a status are said, never thrown', async () => {
    expect((await get('/garbage')).kind).toBe('not-opencode');
    expect(await get('/broken')).toMatchObject({ kind: 'status', status: 500 });
  });

  test('a redirect is not followed, and the password stays here', async () => {
    expect((await get('/redirect')).kind).toBe('not-opencode');
    expect(elsewhere).toEqual([]);
  });

  test('a server that accepts and never answers costs the timeout and no more', async () => {
    expect(await get('/never', { timeoutMs: 50 })).toMatchObject({ kind: 'timeout' });
    expect(await get('/slow-body', { timeoutMs: 50 })).toMatchObject({ kind: 'timeout' });
  });

  test('an answer beyond the limit is given up', async () => {
    expect((await get('/large')).kind).toBe('too-large');
    expect((await get('/large', { maxBytes: 300_000 })).kind).toBe('json');
  });

  test('nothing listens: unreachable, with a reason a user understands', async () => {
    const closed = await getJson({ url: 'http://127.0.0.1:1/global/health', timeoutMs: 2_000, maxBytes: 10 });
    expect(closed).toEqual({ kind: 'unreachable', reason: 'nothing listens there' });
  });

  test('no proxy of the environment sees a request or its password', async () => {
    const before = { HTTP_PROXY: process.env['HTTP_PROXY'], http_proxy: process.env['http_proxy'] };
    const proxy = `http://127.0.0.1:${other?.port}`;
    Object.assign(process.env, { HTTP_PROXY: proxy, http_proxy: proxy });
    try {
      expect(await api().health()).toMatchObject({ value: '1.18.33' });
      expect(elsewhere).toEqual([]);
    } finally {
      for (const [name, value] of Object.entries(before)) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
    }
  });

  test('aborting ends it at once', async () => {
    const ending = new AbortController();
    const asked = getJson({
      url: url('/never'),
      credentials: CREDENTIALS,
      timeoutMs: 60_000,
      maxBytes: 10,
      signal: ending.signal,
    });
    ending.abort();
    expect((await asked).kind).toBe('unreachable');
  });

  test('a signal that is aborted already asks nothing', async () => {
    const before = seen.length;
    const answer = await getJson({
      url: url('/late'),
      timeoutMs: 60_000,
      maxBytes: 10,
      signal: AbortSignal.abort(),
    });
    expect(answer.kind).toBe('unreachable');
    expect(seen.length).toBe(before);
  });
});

describe('what the answers become', () => {
  test('busy and retry count, idle is left out, anything else is counted as skipped', async () => {
    const answer = await api().statuses();
    if (answer.kind !== 'ok') throw new Error(answer.reason);
    expect([...answer.value]).toEqual([
      ['ses_busy', { type: 'busy' }],
      ['ses_retry', { type: 'retry', message: 'Overloaded' }],
    ]);
    expect(answer.skipped).toBe(2);
  });

  test('a server without the list of all projects gives that of its own, elements that do not fit skipped', async () => {
    const answer = await api().sessions(100);
    if (answer.kind !== 'ok') throw new Error(answer.reason);
    expect(answer.value.map(({ id }) => id)).toEqual(['ses_a']);
    expect(answer.skipped).toBe(3);
    expect(seen.slice(-2).map(({ path }) => path)).toEqual(['/experimental/session', '/session']);
  });
});
