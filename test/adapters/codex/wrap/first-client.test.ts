import { describe, expect, test } from 'bun:test';
import { utimesSync } from 'node:fs';
import { codexHome } from '../../../../src/adapters/codex/homes.ts';
import { hasThread } from '../../../../src/adapters/codex/wrap/first-client.ts';
import { systemFiles } from '../../../../src/runtime/files/file-system.ts';
import { systemHost } from '../../../../src/runtime/process/spawn.ts';
import { showServer } from '../fake-server.ts';
import { ID, inHome, T0, type TestHome } from '../home.ts';

const SOCKET = '/run/codex-wrap-1.sock';

/** Whether we may connect, on a computer whose `/proc` lies in the test's home. */
function may(home: TestHome, platform: NodeJS.Platform): boolean {
  const place = codexHome({ env: { CODEX_HOME: home.path('.') }, home: home.folder, platform });
  const host = { ...systemHost, platform, procRoot: `${home.folder}/proc`, now: () => T0 };
  return hasThread(place, SOCKET, T0, systemFiles, host);
}

describe('when the wrapper may become a client of its own server (R-22)', () => {
  test('Linux: when the server behind this socket holds a thread’s lock', () =>
    inHome(async (home) => {
      showServer(home, SOCKET, []);
      expect(may(home, 'linux')).toBe(false);
      showServer(home, SOCKET, [ID]);
      expect(may(home, 'linux')).toBe(true);
      showServer(home, '/run/another.sock', [ID]);
      expect(may(home, 'linux')).toBe(false);
    }));

  test('elsewhere: when a record of the newest day was written since the server’s start', () =>
    inHome(async (home) => {
      expect(may(home, 'darwin')).toBe(false);
      const put = (path: string, at: number) => utimesSync(home.write(path, ''), at / 1_000, at / 1_000);
      put('sessions/2026/11/30/rollout-a.jsonl', T0 - 1_000);
      expect(may(home, 'darwin')).toBe(false);
      put('sessions/2026/12/01/rollout-b.jsonl', T0 + 1_000);
      expect(may(home, 'darwin')).toBe(true);
    }));
});
