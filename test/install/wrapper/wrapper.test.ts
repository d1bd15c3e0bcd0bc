import { afterEach, describe, expect, test } from 'bun:test';
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { createEditor } from '../../../src/install/edit/editor.ts';
import { editorPlaces } from '../../../src/install/wrapper/places.ts';
import { shimAt, shimText } from '../../../src/install/wrapper/shim.ts';
import { SETTING } from '../../../src/install/wrapper/wiring.ts';
import {
  installWrapper,
  uninstallWrapper,
  type WrapperContext,
} from '../../../src/install/wrapper/wrapper.ts';
import { createCleanup, tempFolder } from '../../runtime/daemon/harness.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());

interface Bench {
  readonly home: string;
  readonly context: WrapperContext;
  readonly shim: string;
  /** Path of an editor's settings, or of a file below its `User` folder. */
  path(editor: string, file?: string): string;
  write(path: string, text: string): string;
  install(more?: Partial<WrapperContext>, replace?: boolean): ReturnType<typeof installWrapper>;
  uninstall(more?: Partial<WrapperContext>): ReturnType<typeof uninstallWrapper>;
}

function bench(): Bench {
  const home = tempFolder(cleanup);
  const connector = join(home, '.shadowob', 'connector');
  const shim = join(connector, 'claude-wrap');
  const context: WrapperContext = {
    env: {},
    home,
    platform: 'linux',
    editor: createEditor({ home: connector, now: () => new Date(0) }),
    shim,
    dryRun: false,
  };
  return {
    home,
    context,
    shim,
    path: (editor, file = 'settings.json') => join(home, '.config', editor, 'User', file),
    write(path, text) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
      return path;
    },
    install: (more = {}, replace = false) =>
      installWrapper({ ...context, ...more }, { self: ['/opt/shadowob-connector'], replace }),
    uninstall: (more = {}) => uninstallWrapper({ ...context, ...more }),
  };
}

const text = (path: string): string => readFileSync(path, 'utf8');
const results = (done: { readonly settings: readonly { readonly result: string }[] }) =>
  done.settings.map(({ result }) => result);

describe('where editors keep their settings (S-840)', () => {
  test.each([
    ['linux', {}, '/home/me', '/home/me/.config/Code/User/settings.json'],
    ['linux', { XDG_CONFIG_HOME: '/x' }, '/home/me', '/x/Code/User/settings.json'],
    ['darwin', {}, '/Users/me', '/Users/me/Library/Application Support/Code/User/settings.json'],
    ['win32', { APPDATA: 'C:\\A' }, 'C:\\me', 'C:\\A\\Code\\User\\settings.json'],
    ['win32', {}, 'C:\\me', 'C:\\me\\AppData\\Roaming\\Code\\User\\settings.json'],
  ] as const)('%s %j', (platform, env, home, settings) => {
    const places = editorPlaces({ platform, env, home });
    expect(places[0].settings).toBe(settings);
    expect(places.map(({ folder }) => folder.split(/[\\/]/).at(-2))).toEqual([
      'Code',
      'Code - Insiders',
      'Cursor',
      'VSCodium',
    ]);
  });
});

describe('install-wrapper', () => {
  test('C-340: without any editor, stable VS Code’s settings are made; the second time nothing changes', () => {
    const b = bench();
    expect(b.install()).toMatchObject({ shim: { result: 'written' }, settings: [{ result: 'changed' }] });
    expect(JSON.parse(text(b.path('Code')))).toEqual({ [SETTING]: b.shim });
    const before = statSync(b.path('Code')).mtimeMs;
    expect(b.install()).toMatchObject({ shim: { result: 'unchanged' }, settings: [{ result: 'unchanged' }] });
    expect(statSync(b.path('Code')).mtimeMs).toBe(before);
  });

  test('C-340 R-23: comments, commas at ends, order and indentation stay, and the inverse is exact', () => {
    const b = bench();
    const before = '{\n\t// mine\n\t"editor.fontSize": 14, /* big */\n\t"z": [1, 2,],\n}\n';
    const path = b.write(b.path('Code'), before);
    b.install();
    expect(text(path)).toBe(before.replace('2,],\n', `2,],\n\t"${SETTING}": ${JSON.stringify(b.shim)},\n`));
    expect(b.uninstall()).toMatchObject({ shim: { result: 'removed' }, settings: [{ result: 'changed' }] });
    expect([text(path), existsSync(b.shim)]).toEqual([before, false]);
  });

  test('S-840: every editor of the family that is there, and no other', () => {
    const b = bench();
    b.write(b.path('Cursor'), '{}');
    b.write(b.path('Code - Insiders', 'keybindings.json'), '[]');
    expect(b.install().settings.map(({ label }) => label)).toEqual(['VS Code Insiders', 'Cursor']);
    expect(existsSync(b.path('Code'))).toBe(false);
    b.uninstall();
    expect([text(b.path('Cursor')), existsSync(b.path('Code - Insiders'))]).toEqual(['{}', false]);
  });

  test('S-840: --settings names one file, --shim another place', () => {
    const b = bench();
    b.write(b.path('Code'), '{}');
    const [settings, shim] = [join(b.home, 'machine.json'), join(b.home, 'bin', 'wrap')];
    b.install({ settings, shim });
    expect([JSON.parse(text(settings)), text(b.path('Code')), shimAt(shim)]).toEqual([
      { [SETTING]: shim },
      '{}',
      'ours',
    ]);
  });

  test('--dry-run shows the change and makes none', () => {
    const b = bench();
    b.write(b.path('Code'), '{}');
    const done = b.install({ dryRun: true });
    expect(done).toMatchObject({ shim: { result: 'wouldWrite' }, settings: [{ result: 'wouldChange' }] });
    expect(done.settings[0]?.diff).toContain(`+  "${SETTING}"`);
    expect([text(b.path('Code')), existsSync(b.shim)]).toEqual(['{}', false]);
  });

  test.each([
    ['{ "a": ', 'broken'],
    ['[1]', 'a list'],
    ['"x"', 'a text'],
  ])('C-341 S-841: %s is refused with the exact line to add; the shim is there already', (before) => {
    const b = bench();
    const path = b.write(b.path('Code'), before);
    const done = b.install();
    const line = `"${SETTING}": ${JSON.stringify(b.shim)}`;
    expect(done.settings[0]).toMatchObject({ result: 'refused', byHand: [line] });
    expect(done.settings[0]?.message).toContain(`Add this line by hand: ${line}`);
    expect([text(path), shimAt(b.shim)]).toEqual([before, 'ours']);
  });

  test('C-342 S-841: the same file at uninstall says which line to remove, and the shim stays', () => {
    const b = bench();
    b.install();
    b.write(b.path('Code'), '{ "broken": ');
    const done = b.uninstall();
    expect(done.settings[0]?.message).toContain(`Remove this line by hand, if it is there: "${SETTING}"`);
    expect([done.shim.result, shimAt(b.shim)]).toEqual(['kept', 'ours']);
  });

  test('S-842: a shim that can’t be written leaves the settings alone', () => {
    const b = bench();
    b.write(b.path('Code'), '{}');
    b.write(b.shim, 'somebody’s own script');
    expect(b.install()).toMatchObject({ shim: { result: 'failed' }, settings: [] });
    expect([text(b.path('Code')), text(b.shim)]).toEqual(['{}', 'somebody’s own script']);
    const nowhere = join(b.path('Code'), 'below', 'a-file');
    expect(b.install({ shim: nowhere })).toMatchObject({ shim: { result: 'failed' }, settings: [] });
  });

  test('another wrapper keeps its place, unless it is to be replaced', () => {
    const b = bench();
    const before = `{ "${SETTING}": "/usr/bin/other" }`;
    b.write(b.path('Code'), before);
    expect(results(b.install())).toEqual(['left']);
    expect(text(b.path('Code'))).toBe(before);
    expect(results(b.install({}, true))).toEqual(['changed']);
    expect(JSON.parse(text(b.path('Code')))).toEqual({ [SETTING]: b.shim });
  });

  test('H6: a shim of ours in another place is known by what it says, and replaced', () => {
    const b = bench();
    const old = b.write(join(b.home, 'old', 'wrap'), shimText({ self: ['/old/shadowob-connector'] }));
    b.write(b.path('Code'), `{ "${SETTING}": ${JSON.stringify(old)} }`);
    expect(results(b.install())).toEqual(['changed']);
    expect(JSON.parse(text(b.path('Code')))).toEqual({ [SETTING]: b.shim });
  });
});

describe('uninstall-wrapper', () => {
  test('S-844: without any settings file it is no error', () => {
    const b = bench();
    expect(b.uninstall()).toMatchObject({ shim: { result: 'absent' }, settings: [{ result: 'unchanged' }] });
    expect(existsSync(b.path('Code'))).toBe(false);
  });

  test('C-345: somebody else’s value is left alone', () => {
    const b = bench();
    b.install();
    const theirs = `{ "${SETTING}": "/usr/bin/other" }`;
    b.write(b.path('Code'), theirs);
    expect(b.uninstall()).toMatchObject({ shim: { result: 'removed' }, settings: [{ result: 'left' }] });
    expect(text(b.path('Code'))).toBe(theirs);
  });

  test('C-345 S-844: while a profile still names the shim it stays, and that is said', () => {
    const b = bench();
    b.install();
    const profile = b.write(
      b.path('Code', 'profiles/abc/settings.json'),
      `{ "${SETTING}": ${JSON.stringify(b.shim)} }`,
    );
    const done = b.uninstall();
    expect(done.shim.result).toBe('kept');
    expect(done.shim.message).toContain(profile);
    expect([results(done), shimAt(b.shim)]).toEqual([['changed'], 'ours']);
  });

  test('S-844: with --settings another editor may still need the shim', () => {
    const b = bench();
    b.write(b.path('Code'), '{}');
    b.write(b.path('Cursor'), '{}');
    b.install();
    const settings = b.path('Code');
    expect(b.uninstall({ settings, dryRun: true }).shim.result).toBe('kept');
    expect(b.uninstall({ settings }).shim.result).toBe('kept');
    expect(b.uninstall({ dryRun: true }).shim.result).toBe('wouldRemove');
    expect(b.uninstall().shim.result).toBe('removed');
  });
});

describe('the shim', () => {
  interface Ran {
    readonly code: number;
    readonly out: string;
  }

  /** Runs a shim for a program of the connector’s that behaves like this. */
  function run(connector: string | undefined, mode = 0o755): Ran {
    const b = bench();
    // A path that every careless quoting breaks.
    const program = join(b.home, "it's a $HOME `dir`", 'shadowob-connector');
    if (connector !== undefined) {
      b.write(program, connector);
      chmodSync(program, mode);
    }
    b.write(b.path('Code'), '{}');
    installWrapper(b.context, { self: [program], socket: "/a 'b/s.sock", replace: false });
    expect(statSync(b.shim).mode & 0o777).toBe(0o700);
    const child = Bun.spawnSync([b.shim, 'sh', '-c', 'echo alone "$@"; exit 7', 'sh', 'a', 'b c']);
    return { code: child.exitCode, out: child.stdout.toString() };
  }

  const wraps =
    '#!/bin/sh\n[ "$2" = --help ] && echo claude-wrap && exit 0\nfor word; do printf "[%s]" "$word"; done\nexit 4\n';
  const alone: Ran = { code: 7, out: 'alone a b c\n' };

  test('C-344 S-843: with the program there it wraps, every word as it was', () => {
    expect(run(wraps)).toEqual({
      code: 4,
      out: '[claude-wrap][--socket][/a \'b/s.sock][--][sh][-c][echo alone "$@"; exit 7][sh][a][b c]',
    });
  });

  test.each([
    ['is gone', undefined, 0o755],
    ['may not be run', wraps, 0o644],
    ['is too old to know the wrapper', '#!/bin/sh\nexit 21\n', 0o755],
    ['is damaged', '\u007fELF and nothing else', 0o755],
    ['is empty in the middle of an update', '', 0o755],
  ])('C-344 S-843: where the program %s, Claude Code runs alone', (_name, connector, mode) => {
    expect(run(connector, mode)).toEqual(alone);
  });
});

test('S-801 S-802: for any settings, install and uninstall leave every byte as it was', () => {
  const value = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.array(fc.integer(), { maxLength: 3 }));
  fc.assert(
    fc.property(
      fc.dictionary(
        fc.string({ minLength: 1 }).filter((key) => key !== '__proto__'),
        value,
        { maxKeys: 5 },
      ),
      fc.constantFrom(0, 2, 4, '\t'),
      fc.constantFrom('', '\n', '\r\n', '\n// the end\n'),
      (data, indent, end) => {
        const b = bench();
        const before = JSON.stringify(data, null, indent) + end;
        const path = b.write(b.path('Code'), before);
        expect(results(b.install())).toEqual(['changed']);
        expect(results(b.uninstall())).toEqual(['changed']);
        expect(text(path)).toBe(before);
      },
    ),
    { numRuns: 20 },
  );
});
