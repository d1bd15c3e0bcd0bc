import { describe, expect, test } from 'bun:test';
import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  forgetServer,
  isMine,
  isOwned,
  listServers,
  type OwnServer,
  ownServersOf,
  seemsAlive,
  serversFolder,
  writeServer,
} from '../../../../src/adapters/opencode/control/own-servers.ts';
import { findEndpoints } from '../../../../src/adapters/opencode/endpoints.ts';
import { identityFromProc } from '../../../../src/runtime/process/identity.ts';
import { inFolder } from '../world.ts';

const me = identityFromProc(process.pid) ?? { pid: process.pid, startToken: null };
const server = (more: Partial<OwnServer> = {}): OwnServer => ({
  life: 'managed',
  process: me,
  url: 'http://127.0.0.1:40001',
  credentials: { user: 'opencode', password: 'generated' },
  startedAt: 1,
  usedAt: 2,
  ...more,
});

describe('records of servers of ours', () => {
  test('C1: private from birth, also under a folder that was open', async () => {
    await inFolder((home) => {
      mkdirSync(serversFolder(home), { recursive: true });
      expect(writeServer(home, server()).kind).toBe('written');
      chmodSync(join(serversFolder(home), 'managed.json'), 0o644);
      writeServer(home, server({ usedAt: 3 }));
      expect(statSync(join(serversFolder(home), 'managed.json')).mode & 0o777).toBe(0o600);
      expect(listServers(home)).toEqual([server({ usedAt: 3 })]);
    });
  });

  test('one managed server, and as many for a turn as there are', async () => {
    await inFolder((home) => {
      writeServer(home, server());
      writeServer(home, server({ life: 'turn', process: { pid: 4_000_001, startToken: '1' }, owner: me }));
      writeServer(home, server({ life: 'turn', process: { pid: 4_000_002, startToken: '1' } }));
      expect(readdirSync(serversFolder(home)).sort()).toEqual([
        'managed.json',
        'turn-4000001.json',
        'turn-4000002.json',
      ]);
    });
  });

  test('what is no record is skipped, and an address elsewhere never gets our password', async () => {
    await inFolder((home) => {
      const folder = serversFolder(home);
      mkdirSync(folder, { recursive: true });
      const put = (name: string, content: unknown): void =>
        writeFileSync(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content));
      const good = { version: 1, ...server() };
      put('turn-2.json', '{"version":1');
      put('turn-3.json', { ...good, version: 2 });
      put('turn-4.json', { ...good, url: 'http://192.0.2.1:80' });
      put('turn-5.json', { ...good, url: 'http://127.0.0.1:80@example.com' });
      put('turn-6.json', { ...good, process: { pid: 1 } });
      put('turn-7.json', { ...good, credentials: { user: 'opencode' } });
      put('other.json', good);
      expect(listServers(home)).toEqual([]);
    });
  });

  test('D1: a pid counts with its start, so another process under it is not ours', async () => {
    await inFolder((home) => {
      expect(seemsAlive(server(), process.platform)).toBe(true);
      const stranger = server({ process: { pid: process.pid, startToken: '1' } });
      expect(seemsAlive(stranger, 'linux')).toBe(false);
      writeServer(home, stranger);
      const env = { SHADOWOB_CONNECTOR_HOME: home };
      expect(ownServersOf({ env, home: '/nonexistent', platform: 'linux' })).toEqual([]);
    });
  });

  test('forgetting one leaves another that has taken its name', async () => {
    await inFolder((home) => {
      writeServer(home, server());
      forgetServer(home, server({ process: { pid: 4_000_001, startToken: '1' } }));
      expect(listServers(home)).toHaveLength(1);
      forgetServer(home, server());
      expect(listServers(home)).toEqual([]);
    });
  });

  test('a server for a turn is owned while the process of ours lives that ends it', () => {
    expect(isOwned(server({ owner: me }), process.platform)).toBe(true);
    expect(isOwned(server({ owner: { pid: 4_000_001, startToken: '1' } }), process.platform)).toBe(false);
    expect([isMine(server({ owner: me })), isMine(server())]).toEqual([true, false]);
  });
});

describe('the feed asks them with their own passwords', () => {
  test('each server its own: the user’s password goes to the others only', () => {
    const own = [{ url: 'http://127.0.0.1:40001', credentials: { user: 'opencode', password: 'generated' } }];
    const running = (pid: number, url: string) => ({ pid, serves: true, urls: [url] });
    const { endpoints } = findEndpoints({ env: { OPENCODE_SERVER_PASSWORD: 'theirs' } }, undefined, {
      servers: [running(7, 'http://127.0.0.1:40001'), running(8, 'http://127.0.0.1:40002')],
      listeners: [],
      own,
    });
    expect(endpoints.map(({ url, pid, credentials }) => [url, pid, credentials?.password])).toEqual([
      ['http://127.0.0.1:40001', 7, 'generated'],
      ['http://127.0.0.1:40002', 8, 'theirs'],
    ]);
  });
});
