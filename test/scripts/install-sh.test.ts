import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { currentHost } from '../../scripts/lib/host.ts';
import { assetName, TARGETS } from '../../scripts/lib/targets.ts';
import { compiledBinary } from '../helpers/binary.ts';
import {
  elfHead,
  INSTALLER,
  linkTools,
  namesIn,
  runInstaller,
  SHELLS,
  startInstaller,
  writeTool,
} from './installer.ts';
import { type Release, startRelease } from './release-server.ts';
import { tempFolders, until } from './temp.ts';

const NAME = 'shadowob-connector';
const ASSET = 'shadowob-connector-linux-x64';
const POSIX_ASSETS = TARGETS.filter((target) => target.os !== 'windows').map(assetName);
const GLIBC_LDD = 'echo "ldd (GNU libc) 2.36"';
const MUSL_LDD = 'echo "musl libc (x86_64)" >&2; echo "Version 1.2.5" >&2; exit 1';
/** What install.sh may call, apart from a downloader and a checksum tool. */
const BASICS = [
  'sh',
  'dd',
  'od',
  'tr',
  'grep',
  'head',
  'mkdir',
  'rm',
  'rmdir',
  'mv',
  'chmod',
  'cat',
  'sleep',
];

const newFolder = tempFolders('install-sh');

/** A small program that stands for an asset: `--version` answers with this line. */
const printing = (line: string) => `#!/bin/sh\necho '${line}'\n`;

describe.skipIf(process.platform === 'win32')('install.sh', () => {
  let release: Release;
  let home = '';
  let tools = '';

  beforeAll(async () => {
    release = await startRelease();
  });
  afterAll(() => release.close());

  beforeEach(() => {
    home = newFolder();
    tools = join(home, 'tools');
    release.requests.length = 0;
    for (const asset of POSIX_ASSETS) release.put(asset, printing(`0.1.0 ${asset}`));
    release.sum();
    machine({});
  });

  /** Makes the tools say that this is another machine. */
  function machine(like: {
    os?: string;
    arch?: string;
    ldd?: string;
    sysctl?: string;
    shell?: Uint8Array;
  }): void {
    const { os = 'Linux', arch = 'x86_64', ldd = GLIBC_LDD, sysctl = 'exit 1' } = like;
    writeTool(tools, 'uname', `case "$1" in -s) echo '${os}' ;; -m) echo '${arch}' ;; esac`);
    writeTool(tools, 'ldd', ldd);
    writeTool(tools, 'sysctl', sysctl);
    writeFileSync(join(tools, 'probe'), like.shell ?? elfHead(2, '/lib64/ld-linux-x86-64.so.2'));
  }

  const bin = () => join(home, '.local', 'bin');
  const installed = () => join(bin(), NAME);
  const env = (more: Record<string, string> = {}) => ({
    SHADOWOB_CONNECTOR_DOWNLOAD_URL: release.url,
    SHADOWOB_CONNECTOR_PROBE: join(tools, 'probe'),
    ...more,
  });
  const install = (more: Record<string, string> = {}, shell: readonly string[] = ['sh']) =>
    runInstaller({ home, tools, shell, env: env(more) });

  /** An older version is in place, and must be just so after a failure. */
  function placeOld(): void {
    mkdirSync(bin(), { recursive: true });
    writeFileSync(installed(), printing('0.0.1'));
    chmodSync(installed(), 0o755);
  }
  function expectOldIntact(): void {
    expect(readFileSync(installed(), 'utf8')).toBe(printing('0.0.1'));
    expect(namesIn(bin())).toEqual([NAME]);
  }

  describe('picks the build by what the machine is', () => {
    type Row = [what: string, like: Parameters<typeof machine>[0], asset: string];
    const musl = elfHead(2, '/lib/ld-musl-x86_64.so.1');
    const rows: Row[] = [
      ['glibc by ldd', {}, 'linux-x64'],
      [
        'musl by an ldd that exits 1 and writes to stderr (I1)',
        { ldd: MUSL_LDD, shell: musl },
        'linux-x64-musl',
      ],
      ['musl by ldd alone', { ldd: MUSL_LDD, shell: new Uint8Array(64) }, 'linux-x64-musl'],
      ['musl by the loader of /bin/sh, ldd being absent', { ldd: 'exit 127', shell: musl }, 'linux-x64-musl'],
      ['glibc by the loader of /bin/sh, ldd being absent', { ldd: 'exit 127' }, 'linux-x64'],
      ['glibc whatever lies in /lib, ldd and /bin/sh saying so (I1)', { ldd: GLIBC_LDD }, 'linux-x64'],
      ['arm64', { arch: 'aarch64' }, 'linux-arm64'],
      ['arm64 with musl', { arch: 'aarch64', ldd: MUSL_LDD, shell: musl }, 'linux-arm64-musl'],
      ['amd64 as another word for x64', { arch: 'amd64' }, 'linux-x64'],
      ['Apple silicon', { os: 'Darwin', arch: 'arm64' }, 'darwin-arm64'],
      ['an Intel Mac', { os: 'Darwin' }, 'darwin-x64'],
      [
        'Apple silicon seen through Rosetta',
        { os: 'Darwin', sysctl: 'case "$2" in sysctl.proc_translated) echo 1 ;; *) exit 1 ;; esac' },
        'darwin-arm64',
      ],
      [
        'Apple silicon by its own flag',
        { os: 'Darwin', sysctl: 'case "$2" in hw.optional.arm64) echo 1 ;; *) echo 0 ;; esac' },
        'darwin-arm64',
      ],
    ];
    test.each(rows)('%s', async (_what, like, asset) => {
      machine(like);
      const outcome = await install();
      expect(outcome.err).toBe('');
      expect(outcome.code).toBe(0);
      expect(readFileSync(installed(), 'utf8')).toBe(printing(`0.1.0 ${NAME}-${asset}`));
      expect(release.requests).toEqual(['SHA256SUMS', `${NAME}-${asset}`]);
    });

    test('SHADOWOB_CONNECTOR_LIBC overrides the guess', async () => {
      await install({ SHADOWOB_CONNECTOR_LIBC: 'musl' });
      expect(release.requests).toContain('shadowob-connector-linux-x64-musl');
      expect((await install({ SHADOWOB_CONNECTOR_LIBC: 'uclibc' })).code).toBe(1);
    });

    test('a contradiction between ldd and /bin/sh is told, with the way to decide it', async () => {
      machine({ ldd: MUSL_LDD });
      const outcome = await install();
      expect(outcome.out).toContain('ldd says musl, /bin/sh says glibc');
      expect(outcome.out).toContain('SHADOWOB_CONNECTOR_LIBC');
    });

    const refusals: [what: string, like: Parameters<typeof machine>[0], words: string][] = [
      ['a 32-bit processor', { arch: 'armv7l' }, 'armv7l'],
      ['i686', { arch: 'i686' }, 'i686'],
      ['a 32-bit system on a 64-bit kernel', { shell: elfHead(1, '/lib/ld-linux.so.2') }, '32-bit system'],
      [
        'a 32-bit system on an arm64 kernel',
        { arch: 'aarch64', shell: elfHead(1, '/lib/ld-linux-armhf.so.3') },
        '32-bit system',
      ],
      ['another system', { os: 'FreeBSD' }, 'FreeBSD'],
      ['a Windows shell', { os: 'MINGW64_NT-10.0' }, 'install.ps1'],
    ];
    test.each(refusals)('refuses %s', async (_what, like, words) => {
      machine(like);
      const outcome = await install();
      expect(outcome.code).toBe(1);
      expect(outcome.err).toContain(words);
      expect(release.requests).toEqual([]);
      expect(existsSync(bin())).toBe(false);
    });
  });

  describe.each(SHELLS.map((shell) => [shell.join(' '), shell] as const))('under %s', (_name, shell) => {
    test('installs with mode 0755, runs it, and says how to reach it without touching a profile', async () => {
      writeFileSync(join(home, '.zshrc'), '# mine\n');
      const outcome = await install({}, shell);
      expect(outcome.err).toBe('');
      expect(outcome.code).toBe(0);
      expect(statSync(installed()).mode & 0o777).toBe(0o755);
      expect(namesIn(bin())).toEqual([NAME]);
      expect(outcome.out).toContain(`Installed ${installed()}: 0.1.0 ${ASSET}\nNext: ${installed()} setup\n`);
      expect(outcome.out).toContain(`export PATH="${bin()}:$PATH"`);
      expect(readFileSync(join(home, '.zshrc'), 'utf8')).toBe('# mine\n');
      expect(namesIn(home)).toEqual(['.local', '.zshrc', 'tools']);
    });

    test('works when piped into the shell', async () => {
      const outcome = await runInstaller({
        home,
        tools,
        shell,
        env: env(),
        piped: readFileSync(INSTALLER, 'utf8'),
      });
      expect(outcome.err).toBe('');
      expect(outcome.code).toBe(0);
      expect(existsSync(installed())).toBe(true);
    });

    test('refuses a wrong checksum and leaves the old executable', async () => {
      placeOld();
      release.sum([ASSET]);
      const outcome = await install({}, shell);
      expect(outcome.code).toBe(1);
      expect(outcome.err).toContain('checksum');
      expectOldIntact();
    });
  });

  describe('a second run', () => {
    test('replaces an older version', async () => {
      placeOld();
      expect((await install()).code).toBe(0);
      expect(readFileSync(installed(), 'utf8')).toBe(printing(`0.1.0 ${ASSET}`));
      expect(namesIn(bin())).toEqual([NAME]);
    });

    test('does not download what is there already', async () => {
      await install();
      const before = statSync(installed());
      release.requests.length = 0;
      const outcome = await install();
      expect(outcome.code).toBe(0);
      expect(outcome.out).toContain('already there');
      expect(release.requests).toEqual(['SHA256SUMS']);
      expect(statSync(installed()).ino).toBe(before.ino);
      expect(statSync(installed()).mtimeMs).toBe(before.mtimeMs);
    });

    test('replaces a link, not the file that it points to', async () => {
      mkdirSync(bin(), { recursive: true });
      const other = join(home, 'other');
      writeFileSync(other, 'not ours');
      symlinkSync(other, installed());
      expect((await install()).code).toBe(0);
      expect(readFileSync(other, 'utf8')).toBe('not ours');
      expect(readFileSync(installed(), 'utf8')).toBe(printing(`0.1.0 ${ASSET}`));
    });

    test('sweeps what a killed run left, and not what a living one uses', async () => {
      placeOld();
      const dead = Bun.spawnSync(['sh', '-c', 'echo $$']).stdout.toString().trim();
      mkdirSync(join(bin(), `.${NAME}-install.${dead}`));
      const alive = `.${NAME}-install.${process.pid}`;
      mkdirSync(join(bin(), alive));
      expect((await install()).code).toBe(0);
      expect(namesIn(bin())).toEqual([alive, NAME]);
    });
  });

  describe('the destination', () => {
    test('may have spaces and quotes', async () => {
      const dir = join(home, `a b's "c" $d`);
      const outcome = await install({ SHADOWOB_CONNECTOR_INSTALL_DIR: dir });
      expect(outcome.err).toBe('');
      expect(outcome.code).toBe(0);
      expect(namesIn(dir)).toEqual([NAME]);
    });

    test('may be relative', async () => {
      expect((await install({ SHADOWOB_CONNECTOR_INSTALL_DIR: 'here' })).code).toBe(0);
      expect(namesIn(join(home, 'here'))).toEqual([NAME]);
    });

    test('on PATH already needs no advice', async () => {
      const outcome = await runInstaller({
        home,
        tools,
        env: env({ PATH: `${bin()}:${tools}:${process.env['PATH'] ?? ''}` }),
      });
      expect(outcome.code).toBe(0);
      expect(outcome.out).not.toContain('PATH');
    });

    test('says when another one comes first on PATH', async () => {
      writeTool(tools, NAME, 'echo other');
      const outcome = await runInstaller({
        home,
        tools,
        env: env({ PATH: `${tools}:${process.env['PATH'] ?? ''}:${bin()}` }),
      });
      expect(outcome.out).toContain(`${join(tools, NAME)} comes first on your PATH`);
    });

    test('is refused when a folder has its name', async () => {
      mkdirSync(installed(), { recursive: true });
      const outcome = await install();
      expect(outcome.code).toBe(1);
      expect(outcome.err).toContain('is a folder');
      expect(readdirSync(installed())).toEqual([]);
    });

    test('without HOME and without a setting is refused', async () => {
      const outcome = await install({ HOME: '' });
      expect(outcome.code).toBe(1);
      expect(outcome.err).toContain('SHADOWOB_CONNECTOR_INSTALL_DIR');
    });
  });

  describe('a failure leaves no trace', () => {
    const failures: [what: string, arrange: () => void, words: string][] = [
      ['no SHA256SUMS', () => release.remove('SHA256SUMS'), 'SHA256SUMS'],
      ['no such asset', () => release.remove(ASSET), `cannot download`],
      [
        'no sum for our asset',
        () => release.put('SHA256SUMS', `${'0'.repeat(64)}  something-else\n`),
        'names no checksum',
      ],
      ['a sum that is none', () => release.put('SHA256SUMS', `<html>  ${ASSET}\n`), 'names no checksum'],
      [
        'a truncated download',
        () => release.put(ASSET, printing('0.1.0').repeat(50), 'truncated'),
        'cannot download',
      ],
      [
        'an executable that does not run',
        () => {
          release.put(ASSET, '#!/bin/sh\necho "cannot start" >&2\nexit 3\n');
          release.sum();
        },
        'exit 3',
      ],
      [
        'a processor without the instructions (B6)',
        () => {
          release.put(ASSET, '#!/bin/sh\nexit 132\n');
          release.sum();
        },
        'SSE4.2',
      ],
    ];
    test.each(failures)('%s, with an old version in place', async (_what, arrange, words) => {
      placeOld();
      arrange();
      const outcome = await install();
      expect(outcome.code).toBe(1);
      expect(outcome.err).toContain(words);
      expect(outcome.out).not.toContain('Installed');
      expectOldIntact();
    });

    test.each(failures)('%s, with nothing there before', async (_what, arrange) => {
      arrange();
      expect((await install()).code).toBe(1);
      expect(existsSync(bin())).toBe(false);
    });

    test('a musl build that lacks its libraries names their packages (B8)', async () => {
      machine({ ldd: MUSL_LDD, shell: elfHead(2, '/lib/ld-musl-x86_64.so.1') });
      const words = 'Error loading shared library libstdc++.so.6: No such file or directory';
      release.put(`${ASSET}-musl`, `#!/bin/sh\necho '${words}' >&2\nexit 127\n`);
      release.sum();
      const outcome = await install();
      expect(outcome.code).toBe(1);
      expect(outcome.err).toContain(words);
      expect(outcome.err).toContain('apk add libstdc++ libgcc');
      expect(existsSync(bin())).toBe(false);
    });

    const signals: [NodeJS.Signals, number][] = [
      ['SIGTERM', 143],
      ['SIGINT', 130],
      ['SIGHUP', 129],
    ];
    test.each(signals)('%s in the middle of a download', async (signal, code) => {
      placeOld();
      release.put(ASSET, new Uint8Array(4_000_000), 'stalled');
      release.sum();
      const abortedBefore = release.aborted();
      const child = startInstaller({ home, tools, env: env() });
      const part = join(bin(), `.${NAME}-install.${child.pid}`, NAME);
      await until('the download has begun', () => existsSync(part) && statSync(part).size > 0);
      child.kill(signal);
      expect(await child.exited).toBe(code);
      expectOldIntact();
      // The downloader is gone too, not left behind with its connection.
      await until('the connection is closed', () => release.aborted() > abortedBefore);
    });

    test('the script cut short at any line does nothing', async () => {
      const script = readFileSync(INSTALLER, 'utf8');
      const lines = script.split('\n');
      const cuts = lines
        .map((_line, index) => lines.slice(0, index).join('\n').length)
        .filter((_, i) => i % 12 === 0);
      const last = script.lastIndexOf('main "$@"');
      for (const cut of [...cuts, last, last + 2]) {
        await runInstaller({ home, tools, env: env(), piped: script.slice(0, cut) });
      }
      expect(release.requests).toEqual([]);
      expect(namesIn(home)).toEqual(['tools']);
    });
  });

  describe('its tools', () => {
    const onlyWith = (more: readonly string[]) => {
      linkTools(tools, [...BASICS, ...more]);
      return runInstaller({ home, tools, onlyTools: true, env: env() });
    };

    test.skipIf(!Bun.which('wget'))('wget does when curl is absent', async () => {
      const outcome = await onlyWith(['wget', 'sha256sum']);
      expect(outcome.err).toBe('');
      expect(outcome.code).toBe(0);
      expect(existsSync(installed())).toBe(true);
    });

    test.skipIf(!Bun.which('wget'))('wget fails on a truncated download and a missing file too', async () => {
      placeOld();
      release.put(ASSET, printing('0.1.0').repeat(50), 'truncated');
      expect((await onlyWith(['wget', 'sha256sum'])).code).toBe(1);
      expectOldIntact();
      release.remove(ASSET);
      expect((await runInstaller({ home, tools, onlyTools: true, env: env() })).code).toBe(1);
      expectOldIntact();
    });

    test.skipIf(!Bun.which('busybox'))(
      "BusyBox's wget does, whatever options it was built with",
      async () => {
        writeTool(tools, 'wget', `exec ${Bun.which('busybox')} wget "$@"`);
        const outcome = await onlyWith(['sha256sum']);
        expect(outcome.err).toBe('');
        expect(outcome.code).toBe(0);
      },
    );

    test('neither curl nor wget is refused', async () => {
      const outcome = await onlyWith(['sha256sum']);
      expect(outcome.code).toBe(1);
      expect(outcome.err).toContain('curl or wget');
    });

    for (const hasher of ['sha256sum', 'shasum', 'openssl']) {
      test.skipIf(!Bun.which(hasher))(`${hasher} alone verifies, and refuses`, async () => {
        const helpers = hasher === 'shasum' ? ['perl'] : [];
        const outcome = await onlyWith(['curl', hasher, ...helpers]);
        expect(outcome.err).toBe('');
        expect(outcome.code).toBe(0);
        release.put(ASSET, printing('0.2.0'));
        release.sum([ASSET]);
        const second = await runInstaller({ home, tools, onlyTools: true, env: env() });
        expect(second.code).toBe(1);
        expect(second.err).toContain('checksum');
      });
    }

    test('no checksum tool is refused before anything is downloaded', async () => {
      const outcome = await onlyWith(['curl']);
      expect(outcome.code).toBe(1);
      expect(outcome.err).toContain('sha256sum');
      expect(release.requests).toEqual([]);
      expect(existsSync(bin())).toBe(false);
    });
  });

  describe('the version', () => {
    test('that was asked for must be the one that answers', async () => {
      expect((await install({ SHADOWOB_CONNECTOR_VERSION: 'v0.1.0' })).code).toBe(0);
      placeOld();
      const outcome = await install({ SHADOWOB_CONNECTOR_VERSION: '1.0' });
      expect(outcome.code).toBe(1);
      expect(outcome.err).toContain('asked for version 1.0');
      expectOldIntact();
    });

    test('must look like one', async () => {
      const outcome = await install({ SHADOWOB_CONNECTOR_VERSION: '../../evil' });
      expect(outcome.code).toBe(1);
      expect(release.requests).toEqual([]);
    });

    test.each([
      ['', 'https://github.com/shadowob/shadowob-connector/releases/latest/download/SHA256SUMS'],
      ['latest', 'https://github.com/shadowob/shadowob-connector/releases/latest/download/SHA256SUMS'],
      ['1.2.3', 'https://github.com/shadowob/shadowob-connector/releases/download/v1.2.3/SHA256SUMS'],
    ])('"%s" decides the address, over https only', async (version, url) => {
      writeTool(tools, 'curl', `printf '%s\\n' "$@" > '${join(home, 'curl-args')}'; exit 22`);
      const outcome = await install({
        SHADOWOB_CONNECTOR_DOWNLOAD_URL: '',
        SHADOWOB_CONNECTOR_VERSION: version,
      });
      expect(outcome.code).toBe(1);
      const args = readFileSync(join(home, 'curl-args'), 'utf8').trim().split('\n');
      expect(args.at(-1)).toBe(url);
      expect(args.join(' ')).toContain('--proto =https');
    });
  });

  test('the really compiled executable is installed, with the real tools of this machine', async () => {
    const binary = readFileSync(await compiledBinary());
    release.put(assetName(currentHost()), binary);
    release.sum();
    const empty = join(home, 'no-tools');
    mkdirSync(empty);
    const outcome = await runInstaller({
      home,
      tools: empty,
      env: { SHADOWOB_CONNECTOR_DOWNLOAD_URL: release.url },
    });
    expect(outcome.err).toBe('');
    expect(outcome.code).toBe(0);
    const version = Bun.spawnSync([installed(), '--version']).stdout.toString().split('\n')[0] ?? '';
    expect(version).toMatch(/^\d+\.\d+\.\d+$/);
    expect(outcome.out).toContain(`Installed ${installed()}: ${version}`);
    expect(readFileSync(installed()).equals(binary)).toBe(true);
  }, 120_000);
});
