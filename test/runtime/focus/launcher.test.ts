import { afterEach, describe, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { launcherOf, openWindow } from '../../../src/runtime/focus/launcher.ts';
import { run } from '../../../src/runtime/process/spawn.ts';
import type { RunOptions } from '../../../src/runtime/process/types.ts';
import { createCleanup, tempFolder } from '../daemon/harness.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());

describe('focus (S-208, S-855)', () => {
  test('C-356: relative, missing, a file, and anything that begins with `-` are refused and nothing runs', async () => {
    const folder = tempFolder(cleanup);
    writeFileSync(join(folder, 'file'), '');
    const calls: RunOptions[] = [];
    const options = {
      platform: 'linux',
      env: {},
      run: (how: RunOptions) => {
        calls.push(how);
        return run(how);
      },
    } as const;
    for (const target of ['work', './work', '-', '--goto', '', join(folder, 'none'), join(folder, 'file')])
      expect([target, (await openWindow(target, options)).kind]).toEqual([target, 'refused']);
    expect(calls).toEqual([]);
  });

  test.skipIf(process.platform === 'win32')(
    'C-356: a valid one is opened, by the command that is named',
    async () => {
      const folder = tempFolder(cleanup);
      const env = { SHADOWOB_CONNECTOR_VSCODE_BIN: '/bin/true', CLAUDECODE: '1' };
      const calls: RunOptions[] = [];
      const opened = await openWindow(folder, {
        platform: process.platform,
        env,
        run: (how) => {
          calls.push(how);
          return run({ ...how, argv: ['/bin/sh', '-c', 'exit 0'] });
        },
      });
      expect(opened).toEqual({ kind: 'opened' });
      expect(calls[0]?.argv).toEqual(['/bin/true', folder]);
      expect(calls[0]?.env).not.toHaveProperty('CLAUDECODE');
      const failing = { ...env, SHADOWOB_CONNECTOR_VSCODE_BIN: '/nowhere/code' };
      expect(await openWindow(folder, { platform: process.platform, env: failing, run })).toEqual({
        kind: 'refused',
        reason: '/nowhere/code could not be started: notFound',
      });
    },
  );

  test('R-46: where VS Code puts its command, by system', () => {
    const find = (platform: NodeJS.Platform, env: Record<string, string>, there: string) =>
      launcherOf({ platform, env, exists: (path) => path === there });
    const mac = '/Applications/Visual Studio Code.app/Contents/Resources/app/bin/code';
    expect(find('darwin', { HOME: '/Users/me' }, mac)).toBe(mac);
    expect(find('darwin', { HOME: '/Users/me' }, `/Users/me${mac}`)).toBe(`/Users/me${mac}`);
    const windows = 'C:\\Users\\me\\AppData\\Local\\Programs\\Microsoft VS Code\\bin\\code.cmd';
    expect(find('win32', { LOCALAPPDATA: 'C:\\Users\\me\\AppData\\Local' }, windows)).toBe(windows);
    expect(find('linux', {}, '/snap/bin/code')).toBe('/snap/bin/code');
    expect(find('linux', {}, 'none')).toBe('code');
    expect(find('win32', {}, 'none')).toBe('code.cmd');
  });
});
