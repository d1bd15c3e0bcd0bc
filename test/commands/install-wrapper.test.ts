import { afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { installWrapperCommand } from '../../src/commands/install-wrapper.ts';
import type { World } from '../../src/commands/world.ts';
import { compiledBinary } from '../helpers/binary.ts';
import { cli } from '../helpers/cli.ts';
import { createCleanup } from '../runtime/daemon/harness.ts';
import { wrapHome } from './wrap-bench.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());
beforeAll(async () => void (await compiledBinary()), 120_000);

const SETTING = 'claudeCode.claudeProcessWrapper';

/** VS Code's settings in a home, for this system. */
function settingsIn(home: string): string {
  const root = process.platform === 'darwin' ? ['Library', 'Application Support'] : ['.config'];
  const path = join(home, ...root, 'Code', 'User', 'settings.json');
  mkdirSync(dirname(path), { recursive: true });
  return path;
}

describe.skipIf(process.platform === 'win32')('install-wrapper and uninstall-wrapper', () => {
  test('S-840 S-843: the installed shim starts this program, and without it the program alone', async () => {
    const home = wrapHome(cleanup);
    const path = settingsIn(home);
    writeFileSync(path, '{\n  // mine\n}\n');
    const installed = await cli(['install-wrapper', '--json'], { home });
    const shim = join(home, '.shadowob', 'connector', 'claude-wrap');
    expect([installed.code, JSON.parse(installed.stdout)]).toMatchObject([
      0,
      {
        dryRun: false,
        shim: { path: shim, result: 'written' },
        settings: [{ path, label: 'VS Code', result: 'changed' }],
      },
    ]);
    expect(readFileSync(path, 'utf8')).toContain(`// mine\n  "${SETTING}": ${JSON.stringify(shim)}`);
    const script = 'ps -o args= -p $PPID; exit 6';
    const run = () =>
      Bun.spawnSync([shim, 'sh', '-c', script], {
        env: { HOME: home, PATH: '/usr/bin:/bin' },
        stdin: 'ignore',
      });
    const wrapped = run();
    expect([wrapped.exitCode, wrapped.stdout.toString()]).toEqual([
      6,
      expect.stringContaining(' claude-wrap -- sh -c '),
    ]);
    const text = readFileSync(shim, 'utf8');
    writeFileSync(shim, text.replace(/^program=.*$/m, "program='/nowhere/shadowob-connector'"));
    const alone = run();
    expect([alone.exitCode, alone.stdout.toString()]).toEqual([
      6,
      expect.not.stringContaining(' claude-wrap -- '),
    ]);
    const removed = await cli(['uninstall-wrapper'], { home });
    expect([removed.code, readFileSync(path, 'utf8'), existsSync(shim)]).toEqual([
      0,
      '{\n  // mine\n}\n',
      false,
    ]);
    expect(removed.stdout).toContain('Reload the editor');
  });

  test('S-840: a connector home of its own is written into the shim; the editor does not know it', async () => {
    const home = wrapHome(cleanup);
    settingsIn(home);
    const env = { SHADOWOB_CONNECTOR_HOME: join(home, 'my home') };
    await cli(['install-wrapper'], { home, env });
    const shim = readFileSync(join(home, 'my home', 'claude-wrap'), 'utf8');
    expect(shim).toContain(`--socket '${join(home, 'my home', 'daemon.sock')}' -- "$@"`);
  });

  test('S-841: what can’t be edited is exit code 50, with the line to add', async () => {
    const home = wrapHome(cleanup);
    const path = settingsIn(home);
    writeFileSync(path, '{ "broken": ');
    const answer = await cli(['install-wrapper'], { home });
    expect([answer.code, answer.stdout, readFileSync(path, 'utf8')]).toEqual([50, '', '{ "broken": ']);
    expect(answer.stderr).toContain(`Add this line by hand: "${SETTING}": `);
  });

  test('--dry-run prints the change and writes nothing at all', async () => {
    const home = wrapHome(cleanup);
    const path = settingsIn(home);
    const answer = await cli(['install-wrapper', '--dry-run'], { home });
    expect([answer.code, existsSync(path), existsSync(join(home, '.shadowob'))]).toEqual([0, false, false]);
    expect(answer.stdout).toContain(`+  "${SETTING}"`);
  });

  for (const name of ['claude-wrap', 'codex-wrap', 'install-wrapper', 'uninstall-wrapper']) {
    test(`${name} --help has examples`, async () => {
      const answer = await cli([name, '--help'], { home: wrapHome(cleanup) });
      expect([answer.code, answer.stdout.includes('Examples')]).toEqual([0, true]);
    });
  }
});

test('on Windows install-wrapper says that it can’t, before it touches anything', async () => {
  const world = { platform: 'win32' } as World;
  const run = async () => installWrapperCommand.run({ _: [] } as never, world);
  await expect(run()).rejects.toMatchObject({ kind: 'unsupported' });
});
