import { describe, expect, test } from 'bun:test';
import { chmodSync, mkdirSync, realpathSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { memoryCache } from '../../../src/runtime/process/probe-cache.ts';
import {
  createProgramSearch,
  inheritedFolders,
  type SearchHost,
} from '../../../src/runtime/process/search-path.ts';
import { run } from '../../../src/runtime/process/spawn.ts';
import type { CommandRunner, Environment } from '../../../src/runtime/process/types.ts';
import { compareVersions, wellKnownFolders } from '../../../src/runtime/process/well-known-folders.ts';
import { captured, exitedWith, withFolder } from './helpers.ts';

const onPosix = test.skipIf(process.platform === 'win32');
const BARE = '/usr/bin:/bin:/usr/sbin:/sbin';

/** Writes a program that prints `says`. */
function program(path: string, says: string, mode = 0o755): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `#!/bin/sh\necho "${says}"\n`);
  chmodSync(path, mode);
  return path;
}

/** A home of its own, as launchd or systemd give it to us: `env -i HOME=… PATH=/usr/bin:/bin` (R1). */
function hostAt(
  home: string,
  env: Environment = {},
  runner: CommandRunner = run,
): SearchHost & { asked: string[][] } {
  const asked: string[][] = [];
  return {
    platform: process.platform,
    env: { HOME: home, PATH: BARE, SHELL: '/bin/sh', ...env },
    home,
    connectorHome: join(home, '.shadowob', 'connector'),
    cache: memoryCache(),
    now: Date.now,
    asked,
    run: (options) => {
      asked.push([...options.argv]);
      return runner(options);
    },
  };
}

const SKIP = { SHADOWOB_CONNECTOR_SKIP_LOGIN_SHELL: '1' };

async function pathsOf(name: string, host: SearchHost): Promise<string[]> {
  return (await createProgramSearch(host).find(name)).map(({ path }) => path);
}

async function inHome(body: (home: string) => Promise<void>): Promise<void> {
  await withFolder((folder) => body(realpathSync(folder)));
}

describe('R1, R5: a bare PATH, as service managers give it', () => {
  const places: [string, string][] = [
    ['~/.local/bin', '.local/bin'],
    ['Claude’s own folder', '.claude/local'],
    ['OpenCode’s own folder', '.opencode/bin'],
    ['volta', '.volta/bin'],
    ['asdf', '.asdf/shims'],
    ['mise', '.local/share/mise/shims'],
    ['nvm', '.nvm/versions/node/v22.1.0/bin'],
    ['fnm', '.local/share/fnm/node-versions/v22.1.0/installation/bin'],
    ['bun', '.bun/bin'],
    ['deno', '.deno/bin'],
    ['cargo', '.cargo/bin'],
    ['npm’s usual global prefix', '.npm-global/bin'],
    ['our own packages', '.shadowob/connector/node-global/bin'],
    ['our own Node', '.shadowob/connector/node/v22.16.0/bin'],
  ];
  for (const [what, folder] of places) {
    onPosix(`finds a program of ${what}`, async () => {
      await inHome(async (home) => {
        const path = program(join(home, folder, 'tool-x'), 'x');
        const [found] = await createProgramSearch(hostAt(home, SKIP)).find('tool-x');
        expect(found).toMatchObject({ path, realPath: path, origin: 'wellKnown' });
      });
    });
  }

  onPosix('nvm: all versions, newest by number and not by letter, its present choice first', async () => {
    await inHome(async (home) => {
      const at = (version: string) =>
        program(join(home, '.nvm/versions/node', version, 'bin/tool-x'), version);
      for (const version of ['v9.11.2', 'v22.3.0', 'v22.12.0', 'v18.20.0', 'system']) at(version);
      const versionsOf = (paths: string[]) => paths.map((path) => path.split('/').at(-3));
      expect(versionsOf(await pathsOf('tool-x', hostAt(home, SKIP)))).toEqual([
        'v22.12.0',
        'v22.3.0',
        'v18.20.0',
        'v9.11.2',
      ]);
      const NVM_BIN = join(home, '.nvm/versions/node/v18.20.0/bin');
      expect(versionsOf(await pathsOf('tool-x', hostAt(home, { ...SKIP, NVM_BIN })))[0]).toBe('v18.20.0');
    });
  });

  onPosix('the managers’ variables move their folders', async () => {
    await inHome(async (home) => {
      const folders: [string, string][] = [
        ['NVM_DIR', 'versions/node/v20.0.0/bin'],
        ['FNM_DIR', 'node-versions/v20.0.0/installation/bin'],
        ['VOLTA_HOME', 'bin'],
        ['ASDF_DATA_DIR', 'shims'],
        ['MISE_DATA_DIR', 'shims'],
        ['BUN_INSTALL', 'bin'],
        ['PNPM_HOME', ''],
        ['NPM_CONFIG_PREFIX', 'bin'],
      ];
      for (const [variable, folder] of folders) {
        const path = program(join(home, variable, folder, `tool-${variable}`), variable);
        expect(
          await pathsOf(`tool-${variable}`, hostAt(home, { ...SKIP, [variable]: join(home, variable) })),
        ).toEqual([path]);
      }
    });
  });
});

describe('the order of places', () => {
  onPosix('a user’s own PATH wins over every folder that we know', async () => {
    await inHome(async (home) => {
      const mine = program(join(home, 'my own/bin/tool-x'), 'mine');
      const known = program(join(home, '.local/bin/tool-x'), 'known');
      const host = hostAt(home, { ...SKIP, PATH: `${join(home, 'my own/bin')}:${BARE}` });
      expect(await pathsOf('tool-x', host)).toEqual([mine, known]);
    });
  });

  onPosix('one real file is one candidate, under the name that was found first', async () => {
    await inHome(async (home) => {
      const real = program(join(home, 'versions/1/tool-x'), 'x');
      for (const folder of ['.local/bin', '.cargo/bin']) {
        mkdirSync(join(home, folder), { recursive: true });
        symlinkSync(real, join(home, folder, 'tool-x'));
      }
      const found = await createProgramSearch(hostAt(home, SKIP)).find('tool-x');
      expect(found).toMatchObject([{ path: join(home, '.local/bin/tool-x'), realPath: real }]);
    });
  });

  onPosix(
    'folders, files without the executable bit, dangling and circular links are no candidates',
    async () => {
      await inHome(async (home) => {
        mkdirSync(join(home, '.local/bin/tool-x'), { recursive: true });
        program(join(home, '.bun/bin/tool-x'), 'no', 0o644);
        for (const folder of ['.deno/bin', '.cargo/bin', '.volta/bin'])
          mkdirSync(join(home, folder), { recursive: true });
        symlinkSync(join(home, 'absent'), join(home, '.deno/bin/tool-x'));
        symlinkSync(join(home, '.cargo/bin/tool-x'), join(home, '.cargo/bin/tool-x'));
        Bun.spawnSync(['mkfifo', join(home, '.volta/bin/tool-x')]);
        chmodSync(join(home, '.volta/bin/tool-x'), 0o755);
        expect(await pathsOf('tool-x', hostAt(home, SKIP))).toEqual([]);
      });
    },
  );

  test('relative entries would mean the folder that we are started in: they are no places', () => {
    expect(inheritedFolders({ PATH: '.::bin:/a:/b/:/a:../c' }, 'linux')).toEqual(['/a', '/b/']);
    expect(inheritedFolders({ Path: 'C:\\a;"C:\\b c";.;d;\\\\srv\\e' }, 'win32')).toEqual([
      'C:\\a',
      'C:\\b c',
      '\\\\srv\\e',
    ]);
    expect(inheritedFolders({}, 'linux')).toEqual([]);
  });

  test('versions are ordered as versions', () => {
    const sorted = ['v9.0.0', 'v22.0.0', 'v10.2.0', 'v22.0.0-rc.1', '22.10.1'].sort(compareVersions);
    expect(sorted).toEqual(['v9.0.0', 'v10.2.0', 'v22.0.0-rc.1', 'v22.0.0', '22.10.1']);
  });
});

describe('the login shell’s PATH', () => {
  onPosix(
    'a folder that only a start-up file names is found; the shell is asked once, and then remembered',
    async () => {
      await inHome(async (home) => {
        const path = program(join(home, 'odd place/tool-x'), 'x');
        writeFileSync(
          join(home, '.profile'),
          `echo "Welcome back"; PATH="${join(home, 'odd place')}:.:$PATH"; export PATH\n`,
        );
        const host = hostAt(home, { SHELL: '/bin/bash' });
        const search = createProgramSearch(host);
        expect(await search.find('tool-x')).toMatchObject([{ path, origin: 'loginShell' }]);
        await search.find('tool-y');
        expect(search.spawned()).toBe(1);
        const later = createProgramSearch(host);
        expect((await later.find('tool-x'))[0]?.path).toBe(path);
        expect(later.spawned()).toBe(0);
        expect(host.asked).toHaveLength(1);
      });
    },
  );

  onPosix('it comes after the inherited PATH and before the well-known folders', async () => {
    await inHome(async (home) => {
      const inherited = program(join(home, 'inherited/tool-x'), '1');
      const login = program(join(home, 'login/tool-x'), '2');
      const known = program(join(home, '.local/bin/tool-x'), '3');
      const host = hostAt(home, { PATH: join(home, 'inherited') }, async (options) => {
        const mark = /echo (path-\w+)/.exec(options.argv.at(-1) ?? '')?.[1];
        return exitedWith(`hello\n\n${mark}\n${join(home, 'login')}\n${mark}\n`);
      });
      await createProgramSearch(host).find('not-there');
      expect(await pathsOf('tool-x', host)).toEqual([inherited, login, known]);
    });
  });

  onPosix('with a PATH of the user’s and everything found, no shell is started', async () => {
    await inHome(async (home) => {
      program(join(home, 'bin/tool-x'), 'x');
      const host = hostAt(home, { PATH: `${join(home, 'bin')}:${BARE}` });
      await createProgramSearch(host).find('tool-x');
      expect(host.asked).toEqual([]);
    });
  });

  onPosix('a changed start-up file is asked again', async () => {
    await inHome(async (home) => {
      const profile = join(home, '.profile');
      writeFileSync(profile, 'export PATH="$PATH"\n');
      const host = hostAt(home);
      await createProgramSearch(host).find('tool-x');
      const before = host.asked.length;
      program(join(home, 'new/tool-x'), 'x');
      writeFileSync(profile, `export PATH="${join(home, 'new')}:$PATH"\n`);
      utimesSync(profile, new Date(), new Date(Date.now() + 5_000));
      expect((await createProgramSearch(host).find('tool-x'))[0]?.origin).toBe('loginShell');
      expect(host.asked.length).toBeGreaterThan(before);
    });
  });

  onPosix(
    'start-up files that hang cost their limit once, and the well-known folders still answer',
    async () => {
      await inHome(async (home) => {
        const path = program(join(home, '.local/bin/tool-x'), 'x');
        // Nobody ever writes to it, so the shell itself hangs; a hanging child would be ended and the shell go on.
        Bun.spawnSync(['mkfifo', join(home, 'never')]);
        writeFileSync(join(home, '.profile'), `: <"${join(home, 'never')}"\n`);
        const host = hostAt(home, { SHELL: '/bin/bash' });
        expect(await pathsOf('tool-x', host)).toEqual([path]);
        expect(host.asked.map(([, flags]) => flags)).toEqual(['-ilc', '-lc']);
        await pathsOf('tool-y', host);
        expect(host.asked).toHaveLength(2);
      });
    },
    15_000,
  );

  onPosix('an interactive file that hangs or replaces the shell leaves the plain login', async () => {
    await inHome(async (home) => {
      const path = program(join(home, 'odd/tool-x'), 'x');
      writeFileSync(
        join(home, '.bash_profile'),
        `export PATH="${join(home, 'odd')}:$PATH"; case $- in *i*) exec cat;; esac\n`,
      );
      const host = hostAt(home, { SHELL: '/bin/bash' });
      expect(await pathsOf('tool-x', host)).toEqual([path]);
      expect(host.asked).toHaveLength(2);
    });
  });

  onPosix('a shell that does not exist, or prints nonsense, is no error', async () => {
    await inHome(async (home) => {
      expect(await pathsOf('tool-x', hostAt(home, { SHELL: join(home, 'absent') }))).toEqual([]);
      const odd = program(join(home, 'odd-shell'), 'path-1 /evil path-1');
      expect(await pathsOf('tool-x', hostAt(home, { SHELL: odd }))).toEqual([]);
    });
  });

  onPosix('its children know not to ask again, and nothing of a session around us reaches it', async () => {
    await inHome(async (home) => {
      const { run: answer, calls } = captured(() => exitedWith(''));
      await createProgramSearch(hostAt(home, { CLAUDECODE: '1', NODE_OPTIONS: '--inspect' }, answer)).find(
        'tool-x',
      );
      expect(calls[0]?.env).toMatchObject({ SHADOWOB_CONNECTOR_SKIP_LOGIN_SHELL: '1', HOME: home });
      expect(calls[0]?.env).not.toHaveProperty('CLAUDECODE');
      expect(calls[0]?.env).not.toHaveProperty('NODE_OPTIONS');
      expect(calls[0]?.stdin).toBeUndefined();
    });
  });

  onPosix('SHADOWOB_CONNECTOR_SKIP_LOGIN_SHELL=1 starts none', async () => {
    await inHome(async (home) => {
      const host = hostAt(home, SKIP);
      expect(await pathsOf('tool-x', host)).toEqual([]);
      expect(host.asked).toEqual([]);
    });
  });
});

describe('R2: the PATH of a child', () => {
  onPosix('`#!/usr/bin/env node` finds the node beside it, although ours is bare', async () => {
    await inHome(async (home) => {
      const bin = join(home, '.nvm/versions/node/v22.1.0/bin');
      program(join(bin, 'node-x'), 'this is the right one');
      const script = join(home, '.nvm/versions/node/v22.1.0/lib/node_modules/tool/cli.js');
      mkdirSync(dirname(script), { recursive: true });
      writeFileSync(script, '#!/usr/bin/env node-x\n');
      chmodSync(script, 0o755);
      symlinkSync(script, join(bin, 'tool-x'));
      const host = hostAt(home, SKIP);
      const search = createProgramSearch(host);
      const [found] = await search.find('tool-x');
      if (found === undefined) throw new Error('not found');
      const PATH = await search.pathFor(found);
      expect(PATH.split(':')[0]).toBe(bin);
      expect(await run({ argv: [found.path], env: { PATH: BARE }, timeoutMs: 20_000 })).toMatchObject({
        code: 127,
      });
      expect(await run({ argv: [found.path], env: { PATH }, timeoutMs: 20_000 })).toMatchObject({
        code: 0,
        stdout: 'this is the right one\n',
      });
    });
  });

  onPosix('a link elsewhere still gets the node of its package’s prefix', async () => {
    await inHome(async (home) => {
      const prefix = join(home, '.nvm/versions/node/v22.1.0');
      program(join(prefix, 'bin/node'), 'right');
      program(join(home, '.nvm/versions/node/v24.0.0/bin/node'), 'wrong');
      const script = join(prefix, 'lib/node_modules/tool/cli.js');
      mkdirSync(dirname(script), { recursive: true });
      writeFileSync(script, '#!/usr/bin/env -S node --no-warnings\n');
      chmodSync(script, 0o755);
      mkdirSync(join(home, '.local/bin'), { recursive: true });
      symlinkSync(script, join(home, '.local/bin/tool-x'));
      const search = createProgramSearch(hostAt(home, SKIP));
      const [found] = await search.find('tool-x');
      const folders = found ? (await search.pathFor(found)).split(':') : [];
      expect(folders.slice(0, 2)).toEqual([join(home, '.local/bin'), join(prefix, 'bin')]);
    });
  });
});

describe('Windows', () => {
  const windows = (files: Record<string, number>, env: Environment = {}): SearchHost => ({
    ...hostAt('C:\\Users\\First Last'),
    platform: 'win32',
    connectorHome: 'C:\\Users\\First Last\\.shadowob\\connector',
    env: {
      Path: 'C:\\Windows;"D:\\my tools"',
      USERPROFILE: 'C:\\Users\\First Last',
      APPDATA: 'C:\\Users\\First Last\\AppData\\Roaming',
      LOCALAPPDATA: 'C:\\Users\\First Last\\AppData\\Local',
      ...env,
    },
    lookAt: (path) => (files[path] === undefined ? null : { realPath: path, size: files[path], mtimeMs: 1 }),
  });

  test('npm’s shims, WinGet’s links, scoop and the vendors’ folders', async () => {
    const places = [
      'C:\\Users\\First Last\\AppData\\Roaming\\npm\\tool.cmd',
      'C:\\Users\\First Last\\AppData\\Local\\agy\\bin\\tool.exe',
      'C:\\Users\\First Last\\AppData\\Local\\Microsoft\\WinGet\\Links\\tool.exe',
      'C:\\Users\\First Last\\AppData\\Local\\Microsoft\\WindowsApps\\tool.exe',
      'C:\\Users\\First Last\\scoop\\shims\\tool.exe',
      'C:\\Users\\First Last\\AppData\\Local\\Volta\\bin\\tool.exe',
      'C:\\Users\\First Last\\.local\\bin\\tool.exe',
      'D:\\my tools\\tool.exe',
    ];
    for (const place of places) {
      const host = windows({ [place]: 1 });
      expect((await createProgramSearch(host).find('tool')).map(({ path }) => path)).toEqual([place]);
    }
  });

  test('extensions by PATHEXT; the sh script that npm puts beside its .cmd is none', async () => {
    const files = { 'D:\\my tools\\codex': 1, 'D:\\my tools\\codex.cmd': 2, 'D:\\my tools\\codex.exe': 3 };
    const found = async (env: Environment) =>
      (await createProgramSearch(windows(files, env)).find('codex')).map(({ path }) => path);
    expect(await found({ PATHEXT: '.CMD;.EXE;.VBS' })).toEqual([
      'D:\\my tools\\codex.cmd',
      'D:\\my tools\\codex.exe',
    ]);
    expect(await found({})).toEqual(['D:\\my tools\\codex.exe', 'D:\\my tools\\codex.cmd']);
  });

  test('no login shell is asked; a child’s PATH is joined by semicolons, its own folder first', async () => {
    const host = { ...windows({ 'D:\\my tools\\tool.exe': 1 }), asked: [] };
    const search = createProgramSearch(host);
    await search.find('absent');
    const [found] = await search.find('tool');
    expect(found ? (await search.pathFor(found)).split(';').slice(0, 2) : []).toEqual([
      'D:\\my tools',
      'C:\\Windows',
    ]);
    expect(search.spawned()).toBe(0);
  });
});

describe('macOS', () => {
  test('Homebrew on both processors, MacPorts, pnpm’s Library folder', () => {
    const folders = wellKnownFolders({
      platform: 'darwin',
      env: {},
      home: '/Users/u',
      connectorHome: '/Users/u/c',
    });
    for (const folder of ['/opt/homebrew/bin', '/usr/local/bin', '/opt/local/bin', '/Users/u/Library/pnpm']) {
      expect(folders).toContain(folder);
    }
    expect(folders.indexOf('/Users/u/.local/bin')).toBeLessThan(folders.indexOf('/opt/homebrew/bin'));
    expect(new Set(folders).size).toBe(folders.length);
  });
});
