import { afterEach, describe, expect, test } from 'bun:test';
import { createServer, type Server, type Socket } from 'node:net';
import { errorWords, post } from '../../../../src/adapters/opencode/control/post.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** A server that answers every request with these bytes; `undefined` never answers. */
async function raw(answer: string | undefined, cut = true): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const server = createServer((socket: Socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      if (answer === undefined) return;
      if (cut) socket.end(answer);
      else socket.write(answer);
    });
  });
  servers.push(server);
  server.listen({ host: '127.0.0.1', port: 0 }, () => {
    const address = server.address();
    resolve(`http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`);
  });
  return promise;
}

const head = (status: string, type: string, body: string, more = ''): string =>
  `HTTP/1.1 ${status}\r\ncontent-type: ${type}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${more}\r\n${body}`;
const ask = (url: string, timeoutMs = 2_000) => post({ url }, { path: '/x', body: { a: 1 }, timeoutMs });

describe('what came of a POST', () => {
  test.each([
    ['an answer', head('200 OK', 'application/json', 'true'), 200, true],
    ['an empty one', 'HTTP/1.1 204 No Content\r\n\r\n', 204, undefined],
    ['401 with an empty body', 'HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n', 401, undefined],
    [
      'an error',
      head('404 Not Found', 'application/json', '{"name":"NotFoundError"}'),
      404,
      { name: 'NotFoundError' },
    ],
  ] as const)('%s', async (_name, bytes, status, value) => {
    expect(await ask(await raw(bytes))).toEqual({ kind: 'answer', status, value });
  });

  test.each([
    ['the web app’s HTML: the route is unknown', head('200 OK', 'text/html', '<!doctype html>')],
    [
      'a redirect, which is not followed',
      head('302 Found', 'text/plain', '', 'location: http://example.com/\r\n'),
    ],
  ])('%s is no answer, and nothing was done', async (_name, bytes) => {
    expect(await ask(await raw(bytes))).toMatchObject({ kind: 'failed', sent: false });
  });

  test('nobody there: nothing was sent', async () => {
    expect(await ask('http://127.0.0.1:1')).toEqual({
      kind: 'failed',
      reason: 'nothing listens there',
      sent: false,
    });
  });

  test.each([
    ['a connection that ends before the answer', '', true],
    [
      'one that ends in the middle of it',
      'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 4\r\n\r\nt',
      true,
    ],
    ['an answer that never comes', undefined, false],
    [
      'one that never ends',
      'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 4\r\n\r\nt',
      false,
    ],
  ] as const)('A1: %s may have arrived', async (_name, bytes, cut) => {
    expect(await ask(await raw(bytes, cut), 300)).toMatchObject({ kind: 'failed', sent: true });
  });

  test('an answer over the limit is given up', async () => {
    const body = 'x'.repeat(2 * 1024 * 1024);
    expect(await ask(await raw(head('200 OK', 'application/json', body)))).toMatchObject({
      kind: 'failed',
      sent: true,
    });
  });
});

describe('the server’s own words', () => {
  test.each([
    [{ name: 'BadRequest', data: { message: 'Missing key\n  at ["parts"]' } }, 'Missing key'],
    [
      { _tag: 'PermissionNotFoundError', message: 'Permission request not found: per_1' },
      'Permission request not found: per_1',
    ],
    [undefined, 'it answers with status 500'],
    ['text', 'it answers with status 500'],
  ])('%p', (value, words) => {
    expect(errorWords({ status: 500, value })).toBe(words);
  });
});
