import { describe, expect, test } from 'bun:test';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
} from 'node:fs';
import { join } from 'node:path';
import { BRIDGES, CATALOG } from '../../../src/adapters/catalog.ts';
import type { InstallationReport, InstallationScan } from '../../../src/adapters/installation/report.ts';
import { scanInstallations } from '../../../src/adapters/installation/scan.ts';
import { isAlive } from '../../../src/runtime/process/identity.ts';
import type { run } from '../../../src/runtime/process/spawn.ts';
import { eventually, exitedWith } from '../../runtime/process/helpers.ts';
import { computer, inHome, install, installScript } from './helpers.ts';

const onPosix = test.skipIf(process.platform === 'win32');

function reportOf(scan: InstallationScan, id: string): InstallationReport {
  const report = scan.reports.find(({ runtimeId }) => runtimeId === id);
  if (report === undefined) throw new Error(`no report on ${id}`);
  return report;
}

describe('scanInstallations', () => {
  onPosix('an empty computer: ten times missing, in the order of the catalog, nothing started', async () => {
    await inHome(async (home) => {
      const host = computer(home);
      const scan = await scanInstallations(host);
      expect(scan.reports.map(({ runtimeId, status }) => [runtimeId, status])).toEqual(
        CATALOG.map(({ id }) => [id, 'missing']),
      );
      expect(reportOf(scan, 'cursor')).toMatchObject({
        installState: 'missing',
        command: 'cursor-agent',
        path: null,
        version: null,
        scanError: null,
      });
      expect(scan.spawned).toBe(0);
      expect(host.started).toEqual([]);
    });
  });

  onPosix('a program and its version', async () => {
    await inHome(async (home) => {
      const path = install(home, 'codex', 'echo "codex-cli 0.171.0"');
      const scan = await scanInstallations(computer(home));
      expect(reportOf(scan, 'codex')).toMatchObject({
        status: 'available',
        installState: 'installed',
        command: 'codex',
        path,
        version: 'codex-cli 0.171.0',
        versionState: 'known',
        scanError: null,
        others: [],
      });
      expect(scan.spawned).toBe(1);
    });
  });

  onPosix('the bridge is scanned like a runtime, from its own place too', async () => {
    await inHome(async (home) => {
      const path = install(
        home,
        'cc-connect',
        'echo "cc-connect v1.5.0-beta.2-shadow.3 398af9c"',
        '.shadowob/connector/cc-connect/398af9c/bin',
      );
      const scan = await scanInstallations(computer(home), { entries: BRIDGES });
      expect(reportOf(scan, 'cc-connect')).toMatchObject({
        status: 'available',
        path,
        versionState: 'known',
      });
    });
  });

  onPosix(
    'V2: the probe has no stdin, no marks of a session around us, no secrets, and the user’s home as folder',
    async () => {
      await inHome(async (home) => {
        const seen = join(home, 'seen');
        install(home, 'claude', `{ cat; pwd; env; echo "$@"; } >"${seen}"; echo 2.1.332`);
        const host = computer(home);
        await scanInstallations({
          ...host,
          env: {
            ...host.env,
            CLAUDECODE: '1',
            CLAUDE_CODE_SESSION_ID: 'x',
            NODE_OPTIONS: '--bad',
            SHADOWOB_TOKEN: 's',
            HTTPS_PROXY: 'http://p',
          },
        });
        const [folder, ...rest] = readFileSync(seen, 'utf8').trim().split('\n');
        expect(folder).toBe(home);
        expect(rest.at(-1)).toBe('--version');
        const names = rest.slice(0, -1).map((line) => line.split('=')[0]);
        for (const name of ['CLAUDECODE', 'CLAUDE_CODE_SESSION_ID', 'NODE_OPTIONS', 'SHADOWOB_TOKEN'])
          expect(names).not.toContain(name);
        for (const name of ['HOME', 'HTTPS_PROXY', 'NO_COLOR', 'DISABLE_AUTOUPDATER'])
          expect(names).toContain(name);
      });
    },
  );

  onPosix('R2: a script that needs its own node gets it', async () => {
    await inHome(async (home) => {
      const bin = '.nvm/versions/node/v24.0.0/bin';
      install(home, 'node', 'echo "1.6.0"', bin);
      installScript(home, 'pi', '#!/usr/bin/env node\n', bin);
      expect(reportOf(await scanInstallations(computer(home)), 'pi')).toMatchObject({ version: '1.6.0' });
    });
  });
});

describe('V1, V3: programs that hang', () => {
  onPosix(
    'eleven runtimes, one of them hanging: one deadline, ten versions, the eleventh installed',
    async () => {
      await inHome(async (home) => {
        for (const { id, binaries } of [...CATALOG, ...BRIDGES]) {
          const name = binaries[0]?.name ?? id;
          install(
            home,
            name,
            id === 'claude-code' ? `sleep 1000 & echo $$ $! >>"${home}/pids"; wait` : `echo "${id} 1.2.3"`,
          );
        }
        const host = computer(home);
        const deadlineAt = Date.now() + 3_000;
        const scan = await scanInstallations(host, { entries: [...CATALOG, ...BRIDGES], deadlineAt });
        expect(scan.reports.filter(({ versionState }) => versionState === 'known')).toHaveLength(10);
        expect(reportOf(scan, 'claude-code')).toMatchObject({
          status: 'available',
          installState: 'installed',
          version: null,
          versionState: 'slow',
        });
        expect(reportOf(scan, 'claude-code').scanError).toContain('installed, version unknown (slow)');
        const pids = readFileSync(join(home, 'pids'), 'utf8').match(/\d+/g) ?? [];
        expect(pids).toHaveLength(2);
        // On a busy machine the report doesn't wait for the last of an ending; the ending itself goes on.
        await eventually(() => !pids.some((pid) => isAlive(Number(pid))), 'the hanging tree has ended');
      });
    },
  );

  onPosix('R-29: one that ignores TERM is reported too', async () => {
    await inHome(async (home) => {
      install(home, 'codex', 'trap "" TERM; while :; do sleep 0.05; done');
      const deadlineAt = Date.now() + 400;
      const scan = await scanInstallations(computer(home), { deadlineAt });
      expect(reportOf(scan, 'codex').versionState).toBe('slow');
    });
  });

  onPosix('V4: at most max(4, cores) at a time, whatever waits', async () => {
    await inHome(async (home) => {
      for (const { id, binaries } of CATALOG) install(home, binaries[0]?.name ?? id, 'echo 1.0');
      for (const [cores, most] of [
        [2, 4],
        [6, 6],
      ] as const) {
        const now = { running: 0, most: 0 };
        const gate = Promise.withResolvers<void>();
        const scan = scanInstallations(
          computer(home, {
            cores,
            run: async () => {
              now.running += 1;
              now.most = Math.max(now.most, now.running);
              if (now.running === most) gate.resolve();
              await gate.promise;
              now.running -= 1;
              return exitedWith('1.0\n');
            },
          }),
        );
        expect((await scan).reports.every(({ versionState }) => versionState === 'known')).toBe(true);
        expect(now.most).toBe(most);
      }
    });
  });

  onPosix('what was never asked goes first, what was slow the last time goes last', async () => {
    await inHome(async (home) => {
      const order: string[] = [];
      const host = computer(home, {
        run: async ({ argv, timeoutMs }) => {
          order.push(argv[0]?.split('/').at(-1) ?? '');
          if (argv[0]?.endsWith('hermes'))
            return { ...exitedWith(''), kind: 'timedOut', timedOut: true, code: null };
          return timeoutMs > 0 ? exitedWith('1.0\n') : exitedWith('');
        },
      });
      install(home, 'hermes', '');
      install(home, 'codex', '');
      await scanInstallations(host);
      install(home, 'kimi', '');
      order.length = 0;
      await scanInstallations(host, { refresh: true });
      expect(order).toEqual(['kimi', 'codex', 'hermes']);
    });
  });
});

describe('what is remembered (R-41, design §7)', () => {
  onPosix('an unchanged computer is scanned without starting a process; --refresh asks again', async () => {
    await inHome(async (home) => {
      install(home, 'codex', 'echo "codex-cli 0.171.0"');
      install(home, 'claude', 'echo "2.1.332 (Claude Code)"');
      install(home, 'pi', 'exit 3');
      const host = computer(home);
      const first = await scanInstallations(host);
      expect(first.spawned).toBe(3);
      host.started.length = 0;
      const second = await scanInstallations(host);
      expect(host.started).toEqual([]);
      expect(second.spawned).toBe(0);
      const facts = ({ detectedAt: _at, ...rest }: InstallationReport) => rest;
      expect(second.reports.map(facts)).toEqual(first.reports.map(facts));
      expect((await scanInstallations(host, { refresh: true })).spawned).toBe(3);
    });
  });

  onPosix('a slow one is not waited for again until it changes, or somebody has more patience', async () => {
    await inHome(async (home) => {
      const path = install(home, 'pi', 'sleep 1000');
      const host = computer(home);
      const hurried = () => scanInstallations(host, { deadlineAt: Date.now() + 300 });
      await hurried();
      const again = await hurried();
      expect(again).toMatchObject({ spawned: 0 });
      expect(reportOf(again, 'pi').versionState).toBe('slow');
      const patient = await scanInstallations(host, { deadlineAt: Date.now() + 1_200 });
      expect(patient).toMatchObject({ spawned: 1 });
      install(home, 'pi', 'echo 1.6.0 ');
      utimesSync(path, new Date(), new Date(Date.now() + 5_000));
      expect(reportOf(await scanInstallations(host), 'pi')).toMatchObject({
        version: '1.6.0',
        versionState: 'known',
      });
    });
  });

  onPosix('a new size or time, and another real file behind the link, are asked again', async () => {
    await inHome(async (home) => {
      const path = install(home, 'codex', 'echo 0.1.0');
      const host = computer(home);
      const version = async () => reportOf(await scanInstallations(host), 'codex').version;
      expect(await version()).toBe('0.1.0');
      appendFileSync(path, '\necho later\n');
      expect([await version(), host.started.length]).toEqual(['0.1.0', 2]);
      utimesSync(path, 1, 1);
      expect([await version(), host.started.length]).toEqual(['0.1.0', 3]);
      const other = install(home, 'codex-2', 'echo 0.2.0', 'versions');
      rmSync(path);
      symlinkSync(other, path);
      expect(await version()).toBe('0.2.0');
    });
  });

  onPosix('one shim for many programs keeps them apart, and is believed for ten minutes only', async () => {
    await inHome(async (home) => {
      const shim = install(home, 'volta-shim', 'echo "$(basename "$0") 1.0"', '.volta/bin');
      for (const name of ['codex', 'claude']) symlinkSync(shim, join(home, '.volta/bin', name));
      const clock = { now: Date.now() };
      const host = computer(home, { now: () => clock.now });
      const versions = async () => {
        const scan = await scanInstallations(host);
        return [reportOf(scan, 'codex').version, reportOf(scan, 'claude-code').version, scan.spawned];
      };
      expect(await versions()).toEqual(['codex 1.0', 'claude 1.0', 2]);
      expect(await versions()).toEqual(['codex 1.0', 'claude 1.0', 0]);
      clock.now += 10 * 60_000 + 1;
      expect(await versions()).toEqual(['codex 1.0', 'claude 1.0', 2]);
      clock.now -= 60 * 60_000;
      expect(await versions()).toEqual(['codex 1.0', 'claude 1.0', 2]);
    });
  });

  onPosix('a cache with anything in it is no error', async () => {
    await inHome(async (home) => {
      install(home, 'codex', 'echo 0.1.0');
      for (const junk of [
        null,
        7,
        'x',
        {},
        { at: 1 },
        { at: Date.now(), file: 'x', versionState: 'known' },
      ]) {
        const host = computer(home, { cache: { get: async () => junk, set: async () => {} } });
        expect(reportOf(await scanInstallations(host), 'codex').version).toBe('0.1.0');
      }
    });
  });
});

describe('lying binaries', () => {
  onPosix('a version without any digit: installed, not recognised, with the reason', async () => {
    await inHome(async (home) => {
      install(home, 'codex', 'echo "hello there"');
      const report = reportOf(await scanInstallations(computer(home)), 'codex');
      expect(report).toMatchObject({
        status: 'available',
        installState: 'installError',
        versionState: 'unrecognised',
        version: null,
      });
      expect(report.scanError).toContain('“hello there”');
    });
  });

  onPosix('the error of a program that is too new for its Node, and not the place it came from', async () => {
    await inHome(async (home) => {
      const words =
        'file:///opt/pi/cli.js:2\\nimport x\\n^^^\\nSyntaxError: no such export\\n    at ModuleJob.run\\n';
      install(home, 'pi', `printf '${words}' >&2; exit 1`);
      const scan = await scanInstallations(computer(home));
      expect(reportOf(scan, 'pi').scanError).toEndWith('ended with code 1: SyntaxError: no such export');
    });
  });

  onPosix('silence, a crash, a broken interpreter, an endless output, a lone NUL', async () => {
    await inHome(async (home) => {
      install(home, 'codex', 'exit 0');
      install(home, 'claude', 'echo "Error: bad thing at line 7" >&2; exit 1');
      install(home, 'opencode', 'kill -SEGV $$');
      installScript(home, 'kimi', '#!/no/such/interpreter\n');
      install(home, 'copilot', 'echo "1.0.102"; yes | head -c 20000000');
      install(home, 'pi', "printf '\\000\\001'");
      install(home, 'hermes', 'echo "Hermes v0.21.5"; exit 1');
      const scan = await scanInstallations(computer(home));
      const seen = (id: string) => {
        const { installState, versionState, version } = reportOf(scan, id);
        return [installState, versionState, version];
      };
      expect(seen('codex')).toEqual(['installError', 'unrecognised', null]);
      expect(seen('claude-code')).toEqual(['installError', 'failed', null]);
      expect(reportOf(scan, 'claude-code').scanError).toContain(
        'ended with code 1: Error: bad thing at line 7',
      );
      expect(seen('opencode')).toEqual(['installError', 'failed', null]);
      expect(reportOf(scan, 'opencode').scanError).toContain('SIGSEGV');
      expect(seen('kimi')).toEqual(['installError', 'failed', null]);
      expect(seen('copilot')).toEqual(['installed', 'known', '1.0.102']);
      expect(seen('pi')).toEqual(['installError', 'unrecognised', null]);
      expect(seen('hermes')).toEqual(['installed', 'known', 'Hermes v0.21.5']);
    });
  });

  onPosix('npm’s cursor-agent is another author’s: never started, and Cursor CLI stays missing', async () => {
    await inHome(async (home) => {
      const real = install(
        home,
        'cli.js',
        `echo started >"${home}/started"; echo 1.0.3`,
        '.npm-global/lib/node_modules/cursor-agent',
      );
      mkdirSync(join(home, '.npm-global/bin'), { recursive: true });
      symlinkSync(real, join(home, '.npm-global/bin/cursor-agent'));
      const report = reportOf(await scanInstallations(computer(home)), 'cursor');
      expect(report).toMatchObject({
        status: 'missing',
        installState: 'installError',
        path: null,
        versionState: 'unrecognised',
      });
      expect(report.scanError).toContain('is not Cursor CLI');
      expect(report.others).toHaveLength(1);
      expect(existsSync(join(home, 'started'))).toBe(false);
    });
  });

  onPosix('`agent` counts only as Cursor’s own', async () => {
    await inHome(async (home) => {
      install(home, 'agent', `echo started >"${home}/started"; echo 9.9`);
      expect(reportOf(await scanInstallations(computer(home)), 'cursor').status).toBe('missing');
      expect(existsSync(join(home, 'started'))).toBe(false);
      rmSync(join(home, '.local/bin/agent'));
      const own = install(home, 'agent', 'echo 2026.10.28-0a91dc2', '.local/share/cursor-agent/versions/1');
      symlinkSync(own, join(home, '.local/bin/agent'));
      expect(reportOf(await scanInstallations(computer(home)), 'cursor')).toMatchObject({
        command: 'agent',
        version: '2026.10.28-0a91dc2',
      });
    });
  });

  onPosix('only the editor is there: it is never started', async () => {
    await inHome(async (home) => {
      for (const name of ['cursor', 'antigravity'])
        install(home, name, `echo started >"${home}/started"; echo 3.0`);
      const scan = await scanInstallations(computer(home));
      for (const id of ['cursor', 'antigravity']) {
        expect(reportOf(scan, id)).toMatchObject({
          status: 'available',
          installState: 'installed',
          command: id,
          versionState: 'editor',
          version: null,
          scanError: null,
        });
      }
      expect(existsSync(join(home, 'started'))).toBe(false);
    });
  });
});

describe('several programs of one name', () => {
  onPosix('the first that answers is used, the others are named and not asked', async () => {
    await inHome(async (home) => {
      const first = install(home, 'codex', 'echo 0.2.0', '.local/bin');
      const second = install(home, 'codex', 'echo 0.1.0', '.bun/bin');
      const host = computer(home);
      expect(reportOf(await scanInstallations(host), 'codex')).toMatchObject({
        path: first,
        version: '0.2.0',
        others: [{ command: 'codex', path: second, problem: null }],
      });
      expect(host.started).toHaveLength(1);
    });
  });

  onPosix('one that fails is passed over, and says why', async () => {
    await inHome(async (home) => {
      install(home, 'codex', 'echo broken >&2; exit 1', '.local/bin');
      const second = install(home, 'codex', 'echo 0.1.0', '.bun/bin');
      const report = reportOf(await scanInstallations(computer(home)), 'codex');
      expect(report).toMatchObject({
        path: second,
        version: '0.1.0',
        installState: 'installed',
        scanError: null,
      });
      expect(report.others[0]?.problem).toContain('broken');
    });
  });

  onPosix('the CLI beside its editor: the CLI', async () => {
    await inHome(async (home) => {
      install(home, 'antigravity', 'echo 3.0');
      install(home, 'agy', 'echo 1.4.0');
      const report = reportOf(await scanInstallations(computer(home)), 'antigravity');
      expect(report).toMatchObject({ command: 'agy', version: '1.4.0', versionState: 'known' });
    });
  });
});

describe('Windows', () => {
  test('npm’s shims are asked through the one helper; UTF-16 answers are read; Path is set once', async () => {
    const npm = 'C:\\U\\AppData\\Roaming\\npm';
    const host = {
      ...computer('C:\\U'),
      platform: 'win32' as const,
      env: { Path: 'C:\\Windows', APPDATA: 'C:\\U\\AppData\\Roaming', USERPROFILE: 'C:\\U' },
      lookAt: (path: string) =>
        path === `${npm}\\codex.cmd` ? { realPath: path, size: 1, mtimeMs: 1 } : null,
    };
    const asked: Parameters<typeof run>[0][] = [];
    const scan = await scanInstallations({
      ...host,
      run: async (options) => {
        asked.push(options);
        const wide = new Uint8Array(Buffer.from('codex-cli 0.171.0\r\n', 'utf16le'));
        return { ...exitedWith(''), stdoutBytes: wide };
      },
    });
    expect(reportOf(scan, 'codex')).toMatchObject({
      version: 'codex-cli 0.171.0',
      path: `${npm}\\codex.cmd`,
    });
    expect(asked.map(({ argv }) => argv)).toEqual([[`${npm}\\codex.cmd`, '--version']]);
    expect(Object.keys(asked[0]?.env ?? {}).filter((key) => key.toUpperCase() === 'PATH')).toEqual(['PATH']);
    expect(asked[0]?.env?.['PATH']?.startsWith(`${npm};C:\\Windows`)).toBe(true);
  });
});
