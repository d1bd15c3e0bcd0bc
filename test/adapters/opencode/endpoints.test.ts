import { describe, expect, test } from 'bun:test';
import { DEFAULT_URL, findEndpoints, isLoopback } from '../../../src/adapters/opencode/endpoints.ts';
import { isListening, loopbackUrl, parseListeners } from '../../../src/adapters/opencode/listeners.ts';
import type { OpencodeProcess } from '../../../src/adapters/opencode/owners.ts';

const PASSWORD = { OPENCODE_SERVER_PASSWORD: 'secret' };
const LOGIN = { user: 'opencode', password: 'secret' };
const server = (pid: number, ...urls: readonly string[]): OpencodeProcess => ({ pid, serves: true, urls });
const find = (
  env: Record<string, string> = {},
  option?: string,
  found: Partial<Parameters<typeof findEndpoints>[2]> = {},
) => findEndpoints({ env }, option, { servers: [], ...found });

describe('which servers are asked', () => {
  test('without any word of the user: the default port', () => {
    expect(find()).toEqual({ endpoints: [{ url: DEFAULT_URL, named: false }] });
  });

  test('the option beats our variable, ours beats OpenCode’s, and none of them is joined by the default', () => {
    const env = {
      SHADOWOB_CONNECTOR_OPENCODE_URL: 'http://127.0.0.1:2',
      OPENCODE_SERVER_URL: 'http://127.0.0.1:3',
    };
    const urls = (option?: string, some: Record<string, string> = env) =>
      find(some, option).endpoints.map(({ url }) => url);
    expect(urls('http://127.0.0.1:1')).toEqual(['http://127.0.0.1:1']);
    expect(urls()).toEqual(['http://127.0.0.1:2']);
    expect(urls(undefined, { OPENCODE_SERVER_URL: 'http://127.0.0.1:3/' })).toEqual(['http://127.0.0.1:3']);
  });

  test('user and password come from the environment; the user’s name has a default', () => {
    expect(find(PASSWORD).endpoints[0]?.credentials).toEqual(LOGIN);
    const other = find({ ...PASSWORD, OPENCODE_SERVER_USERNAME: 'me' });
    expect(other.endpoints[0]?.credentials).toEqual({ user: 'me', password: 'secret' });
  });

  test('user and password inside a given address are for that server alone', () => {
    const { endpoints } = find(PASSWORD, 'http://me:p%40ss@127.0.0.1:9', {
      servers: [server(7, 'http://127.0.0.1:10')],
    });
    expect(endpoints).toEqual([
      { url: 'http://127.0.0.1:9', named: true, credentials: { user: 'me', password: 'p@ss' } },
      { url: 'http://127.0.0.1:10', named: false, credentials: LOGIN, pid: 7 },
    ]);
  });

  test('every port that an OpenCode of this user listens on is asked once, under the name the user gave', () => {
    const { endpoints } = find({}, 'http://localhost:4100', {
      servers: [server(7, 'http://127.0.0.1:4100', 'http://127.0.0.1:4101')],
    });
    expect(endpoints).toEqual([
      { url: 'http://localhost:4100', named: true, pid: 7 },
      { url: 'http://127.0.0.1:4101', named: false, pid: 7 },
    ]);
  });

  test('an address of another computer is asked because the user named it', () => {
    expect(find({ OPENCODE_SERVER_URL: 'https://build.example.org/opencode/' }).endpoints[0]?.url).toBe(
      'https://build.example.org/opencode',
    );
  });

  test('what is no address is said, and nothing else is asked in its place', () => {
    for (const text of ['http://', 'ftp://127.0.0.1', 'file:///etc/passwd', 'http://a b']) {
      expect(find({}, text)).toEqual({ endpoints: [], invalid: text });
    }
  });

  test('the default port of another user gets no question and no password', () => {
    const listeners = (uid: number) => [{ port: 4096, address: '127.0.0.1', uid, inode: '1' }];
    const urls = (uid: number) =>
      find(PASSWORD, undefined, { listeners: listeners(uid), uid: 1_000 }).endpoints.map(({ url }) => url);
    expect(urls(1_000)).toEqual([DEFAULT_URL]);
    expect(urls(0)).toEqual([DEFAULT_URL]);
    expect(urls(1_001)).toEqual([]);
  });

  test('where all listening sockets are known and none is on the default port, nobody is asked', () => {
    expect(find({}, undefined, { listeners: [] }).endpoints).toEqual([]);
  });
});

describe('addresses', () => {
  test('loopback is 127/8, ::1 and localhost', () => {
    const urls = ['http://127.0.0.1:1', 'http://127.9.9.9:1', 'http://[::1]:1', 'http://localhost:1'];
    expect(urls.map(isLoopback)).toEqual([true, true, true, true]);
    expect(
      ['http://10.0.0.1:1', 'http://example.org', 'http://127.0.0.1.example.org'].map(isLoopback),
    ).toEqual([false, false, false]);
  });

  test('the kernel’s table of sockets: IPv4, any, IPv6, mapped; other states and rests of lines are left out', () => {
    const text = [
      '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode',
      '   0: 0100007F:1000 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 111 1 0 100 0 0 10 0',
      '   1: 00000000:1001 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 222 1 0 100 0 0 10 0',
      '   2: 0100007F:1002 0100007F:1000 01 00000000:00000000 00:00000000 00000000  1000        0 333 1 0 100 0 0 10 0',
      '   3: 00000000000000000000000001000000:1003 00000000000000000000000000000000:0000 0A 0:0 00:0 0 1000 0 444 1',
      '   4: 0000000000000000FFFF00000100007F:1004 00000000000000000000000000000000:0000 0A 0:0 00:0 0 1000 0 555 1',
      '   5: B80D0120000000000000000001000000:1005 00000000000000000000000000000000:0000 0A 0:0 00:0 0 1000 0 666 1',
      '   6: 0100',
      '',
    ].join('\n');
    const found = parseListeners(text);
    expect(found.map(({ inode }) => inode)).toEqual(['111', '222', '444', '555', '666']);
    expect(found.map(loopbackUrl)).toEqual([
      'http://127.0.0.1:4096',
      'http://127.0.0.1:4097',
      'http://[::1]:4099',
      'http://127.0.0.1:4100',
      undefined,
    ]);
  });

  test('a port that nobody listens on is told without sending anything', async () => {
    const asked: string[] = [];
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch(request) {
        asked.push(request.url);
        return new Response('');
      },
    });
    const port = server.port ?? 0;
    expect(await isListening(port)).toBe(true);
    await server.stop(true);
    expect(await isListening(port)).toBe(false);
    expect(asked).toEqual([]);
  });
});
