import { chmodSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { InstallationHost } from '../../../src/adapters/installation/scan.ts';
import { memoryCache } from '../../../src/runtime/process/probe-cache.ts';
import { run } from '../../../src/runtime/process/spawn.ts';
import { withFolder } from '../../runtime/process/helpers.ts';

/** A program that `/usr/bin/env` or another interpreter has to start. */
export function installScript(home: string, name: string, text: string, folder = '.local/bin'): string {
  const path = join(home, folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  chmodSync(path, 0o755);
  return path;
}

/** A sh program at `<home>/.local/bin/<name>`, or at another place below the home. */
export function install(home: string, name: string, script: string, folder = '.local/bin'): string {
  return installScript(home, name, `#!/bin/sh\n${script}\n`, folder);
}

/** A computer with a home of its own, a bare PATH and no login shell; remembers what was started. */
export function computer(
  home: string,
  more: Partial<InstallationHost> = {},
): InstallationHost & { started: string[] } {
  const started: string[] = [];
  return {
    platform: process.platform,
    env: { HOME: home, PATH: '/usr/bin:/bin:/usr/sbin:/sbin', SHADOWOB_CONNECTOR_SKIP_LOGIN_SHELL: '1' },
    home,
    connectorHome: join(home, '.shadowob', 'connector'),
    cache: memoryCache(),
    now: Date.now,
    cores: 2,
    started,
    run: (options) => {
      started.push(options.argv.join(' '));
      return run(options);
    },
    ...more,
  };
}

/** Runs a test in a home of its own. */
export async function inHome(body: (home: string) => Promise<void>): Promise<void> {
  await withFolder((folder) => body(realpathSync(folder)));
}
