import { describe, expect, test } from 'bun:test';
import { chmodSync, copyFileSync, cpSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { tempFolders } from './temp.ts';

const ROOT = resolve(import.meta.dir, '..', '..');
const newFolder = tempFolders('ci');

const summaryOf = (log: string) => {
  const result = Bun.spawnSync(['awk', '-f', join(ROOT, 'scripts', 'lib', 'test-summary.awk')], {
    stdin: new TextEncoder().encode(log),
  });
  return result.stdout.toString().trim();
};

describe.skipIf(process.platform === 'win32')('the summary of a test run', () => {
  test.each([
    ['one run', ' 12 pass\n 0 fail\n 30 expect() calls\nRan 12 tests across 3 files. [1.00s]\n', '12 0 0'],
    ['failures', ' 1 pass\n 2 fail\nRan 3 tests across 1 file. [2ms]\n', '1 2 0'],
    [
      'skipped and planned ones',
      ' 5 pass\n 2 skip\n 1 todo\n 0 fail\nRan 8 tests across 1 file. [2ms]\n',
      '5 0 3',
    ],
    ['errors outside tests', ' 5 pass\n 0 fail\n 1 error\nRan 5 tests across 1 file. [2ms]\n', '5 1 0'],
    [
      'two runs',
      ' 5 pass\n 0 fail\nRan 5 tests across 1 file. [2ms]\n 7 pass\n 1 fail\nRan 8 tests across 2 files. [2ms]\n',
      '12 1 0',
    ],
    [
      'what a program under test printed',
      ' 99 pass\n 99 fail\nsome output\n 5 pass\n 0 fail\nRan 5 tests across 1 file. [2ms]\n',
      '5 0 0',
    ],
    [
      'colours and carriage returns',
      '\x1b[32m 5 pass\x1b[0m\r\n\x1b[2m 0 fail\x1b[0m\r\nRan 5 tests across 1 file. [\x1b[1m2ms\x1b[0m]\r\n',
      '5 0 0',
    ],
    ['a runner that died', '(pass) a test\nSegmentation fault\n', '0 0 0'],
  ])('counts %s', (_what, log, counts) => {
    expect(summaryOf(log)).toBe(counts);
  });
});

/** A project of its own around the real scripts, whose npm does what a test says. */
function gateWith(npm: Record<'ci' | 'check' | 'test', string> & { readonly e2e?: string }): string {
  const root = newFolder();
  cpSync(join(ROOT, 'scripts', 'ci.sh'), join(root, 'scripts', 'ci.sh'), { recursive: true });
  mkdirSync(join(root, 'scripts', 'lib'), { recursive: true });
  copyFileSync(
    join(ROOT, 'scripts', 'lib', 'test-summary.awk'),
    join(root, 'scripts', 'lib', 'test-summary.awk'),
  );
  mkdirSync(join(root, '.ci'));
  copyFileSync(join(ROOT, '.ci', 'run'), join(root, '.ci', 'run'));
  mkdirSync(join(root, 'bin'));
  const body = `#!/bin/sh\ncase "$1 $2" in\n"ci "*) ${npm.ci} ;;\n"run check") ${npm.check} ;;\n"run test:e2e") ${npm.e2e ?? ':'} ;;\n"test "*) ${npm.test} ;;\nesac\n`;
  writeFileSync(join(root, 'bin', 'npm'), body);
  chmodSync(join(root, 'bin', 'npm'), 0o755);
  return root;
}

function runGate(root: string) {
  const result = Bun.spawnSync(['bash', join(root, '.ci', 'run')], {
    cwd: '/',
    env: { ...process.env, PATH: `${join(root, 'bin')}:${process.env['PATH'] ?? ''}` },
    stdin: 'ignore',
  });
  const lines = result.stdout.toString().trimEnd().split('\n');
  return { code: result.exitCode, last: lines.at(-1), text: lines.join('\n') };
}

const GREEN = "printf ' 3 pass\\n 0 fail\\nRan 3 tests across 1 file. [2ms]\\n' >&2";

describe.skipIf(process.platform === 'win32')('.ci/run', () => {
  test('passes when all passes, from any folder, and closes with the counts', () => {
    const seen = runGate(gateWith({ ci: ':', check: ':', test: GREEN }));
    expect(seen.last).toBe('3 passed, 0 failed');
    expect(seen.code).toBe(0);
  });

  test('shows skipped tests in the closing line', () => {
    const run = "printf ' 3 pass\\n 2 skip\\n 0 fail\\nRan 5 tests across 1 file. [2ms]\\n' >&2";
    expect(runGate(gateWith({ ci: ':', check: ':', test: run })).last).toBe('3 passed, 0 failed, 2 skipped');
  });

  test('a failed installation ends it, with its log', () => {
    const seen = runGate(gateWith({ ci: 'echo "no such package" >&2; exit 1', check: ':', test: GREEN }));
    expect(seen.last).toBe('0 passed, 1 failed');
    expect(seen.text).toContain('no such package');
    expect(seen.code).toBe(1);
  });

  test('a failed check fails the whole, and the tests are still told', () => {
    const seen = runGate(gateWith({ ci: ':', check: 'echo "a type error"; exit 2', test: GREEN }));
    expect(seen.last).toBe('3 passed, 1 failed');
    expect(seen.text).toContain('a type error');
    expect(seen.code).toBe(1);
  });

  test.each([
    [
      'a failing test',
      "printf ' 2 pass\\n 1 fail\\nRan 3 tests across 1 file. [2ms]\\n' >&2; exit 1",
      '2 passed, 1 failed',
    ],
    ['a runner that dies after its summary', `${GREEN}; exit 139`, '3 passed, 1 failed'],
    ['a runner that says nothing', 'exit 0', '0 passed, 1 failed'],
    [
      'a run without a test',
      "printf ' 0 pass\\n 0 fail\\nRan 0 tests across 1 file. [2ms]\\n'",
      '0 passed, 1 failed',
    ],
  ])('%s fails it', (_what, npmTest, last) => {
    const seen = runGate(gateWith({ ci: ':', check: ':', test: npmTest }));
    expect(seen.last).toBe(last);
    expect(seen.code).toBe(1);
  });

  test('scenarios with real programs are added up', () => {
    const e2e = "printf ' 2 pass\\n 4 skip\\n 0 fail\\nRan 6 tests across 1 file. [2ms]\\n'";
    const seen = runGate(gateWith({ ci: ':', check: ':', test: GREEN, e2e }));
    expect([seen.last, seen.code]).toEqual(['5 passed, 0 failed, 4 skipped', 0]);
  });

  test('scenarios that break off fail it, also without a failed one', () => {
    const seen = runGate(
      gateWith({ ci: ':', check: ':', test: GREEN, e2e: 'echo "no registry" >&2; exit 1' }),
    );
    expect([seen.last, seen.code]).toEqual(['3 passed, 1 failed', 1]);
    expect(seen.text).toContain('no registry');
  });

  test('nothing in it waits for input', () => {
    const run = `cat >/dev/null; ${GREEN}`;
    expect(runGate(gateWith({ ci: 'cat', check: 'cat', test: run })).code).toBe(0);
  });
});

describe('bun where npm ran no install script', () => {
  const ensure = (root: string) =>
    Bun.spawnSync([Bun.which('node') ?? 'node', join(ROOT, 'scripts', 'ensure-bun.js'), root]);

  /** node_modules/bun as npm lays it: a placeholder, and the script that would replace it. */
  function project(executable: string): string {
    const root = newFolder();
    const home = join(root, 'node_modules', 'bun');
    mkdirSync(join(home, 'bin'), { recursive: true });
    writeFileSync(join(home, 'bin', 'bun.exe'), executable);
    writeFileSync(
      join(home, 'install.js'),
      "require('node:fs').writeFileSync('bin/bun.exe', Buffer.alloc(100_000)); console.log('noise');",
    );
    return root;
  }
  const size = (root: string) => statSync(join(root, 'node_modules', 'bun', 'bin', 'bun.exe')).size;

  test('the placeholder is replaced by the script itself, without a word', () => {
    const root = project('echo "Error: postinstall script was not run." >&2; exit 1');
    const answer = ensure(root);
    expect([answer.exitCode, answer.stdout.toString(), size(root)]).toEqual([0, '', 100_000]);
  });

  test('a real executable is left alone', () => {
    const root = project('x'.repeat(70_000));
    expect([ensure(root).exitCode, size(root)]).toEqual([0, 70_000]);
  });

  test('a script that fails is not hidden', () => {
    const root = project('placeholder');
    writeFileSync(join(root, 'node_modules', 'bun', 'install.js'), "throw new Error('no such platform');");
    const answer = ensure(root);
    expect(answer.exitCode).toBe(1);
    expect(answer.stderr.toString()).toContain('no such platform');
  });

  test('without node_modules the next command is named', () => {
    const answer = ensure(newFolder());
    expect(answer.exitCode).toBe(1);
    expect(answer.stderr.toString()).toContain('npm ci');
  });

  test('every npm script that needs bun makes sure of it', () => {
    const manifest: { scripts: Record<string, string> } = JSON.parse(
      readFileSync(join(ROOT, 'package.json'), 'utf8'),
    );
    const needing = Object.values(manifest.scripts).filter((script) =>
      /\bbun (test|src|scripts|bench)/.test(script),
    );
    expect(needing.length).toBeGreaterThanOrEqual(4);
    for (const script of needing) expect(script).toStartWith('node scripts/ensure-bun.js && ');
  });
});
