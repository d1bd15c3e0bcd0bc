import { afterEach, describe, expect, test } from 'bun:test';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { serviceWords, specOf } from '../../src/commands/daemon-reach.ts';
import type { World } from '../../src/commands/world.ts';
import { launchdManager } from '../../src/install/service/launchd.ts';
import { systemdManager } from '../../src/install/service/systemd.ts';
import type { ServiceSystem } from '../../src/install/service/types.ts';
import { configPathIn } from '../../src/runtime/config/path.ts';
import type { RunResult } from '../../src/runtime/process/types.ts';
import { createCleanup, tempFolder } from '../runtime/daemon/harness.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());

const exited: RunResult = {
  kind: 'exited',
  code: 0,
  signal: null,
  stdout: 'yes',
  stderr: '',
  stdoutBytes: new Uint8Array(),
  bytesSeen: 0,
  timedOut: false,
  truncated: false,
  survivors: [],
};

function system(platform: NodeJS.Platform, userHome: string): ServiceSystem {
  return { platform, env: {}, userHome, uid: 7, run: async () => exited, pause: async () => {} };
}

function place(platform: NodeJS.Platform) {
  const folder = tempFolder(cleanup);
  const home = join(folder, 'connector');
  mkdirSync(home);
  const world = { self: ['/opt/shadowob-connector'] } as unknown as World;
  const notifications = (enabled: boolean) =>
    writeFileSync(configPathIn(home), JSON.stringify({ notifications: { enabled } }));
  const spec = () => specOf(world, join(home, 'daemon.sock'), home);
  const fake = system(platform, folder);
  const manager = platform === 'darwin' ? launchdManager(fake) : systemdManager(fake);
  return { notifications, spec, manager };
}

describe('which of the two the service is (R-34)', () => {
  for (const [platform, name] of [
    ['linux', 'systemd --user'],
    ['darwin', 'launchd'],
  ] as const) {
    test(`${name}: activation alone at first, also at login with notifications on, and back`, async () => {
      const { notifications, spec, manager } = place(platform);
      expect(spec().always).toBe(false);
      await manager.install(spec());
      expect(serviceWords(manager, spec())).toBe(`${name} (started by the first client)`);
      notifications(true);
      expect(spec().always).toBe(true);
      // The words tell what is installed, not what is wanted.
      expect(serviceWords(manager, spec())).toBe(`${name} (started by the first client)`);
      await manager.install(spec());
      expect(serviceWords(manager, spec())).toBe(`${name} (starts at login and after a failure)`);
      notifications(false);
      await manager.install(spec());
      expect(serviceWords(manager, spec())).toBe(`${name} (started by the first client)`);
    });
  }

  test('files of another build, or of another hand, are said to be that', async () => {
    const { spec, manager } = place('linux');
    await manager.install(spec());
    const [first] = manager.files(spec());
    writeFileSync(first?.path ?? '', 'changed');
    expect(serviceWords(manager, spec())).toContain('not those of this build');
  });
});
