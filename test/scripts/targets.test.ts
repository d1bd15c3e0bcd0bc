import { describe, expect, test } from 'bun:test';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { formatChecksums, sha256, writeChecksums } from '../../scripts/lib/checksums.ts';
import { hostFrom, libcOfProgram } from '../../scripts/lib/host.ts';
import { integrityOf, requireIntegrity } from '../../scripts/lib/runtimes.ts';
import { SIGNING_IDENTIFIER, signExecutable, signingCommands } from '../../scripts/lib/sign.ts';
import { assetName, BUN_VERSION, findTarget, TARGETS, targetName } from '../../scripts/lib/targets.ts';
import { elfHead } from './installer.ts';
import { tempFolders } from './temp.ts';

const ROOT = resolve(import.meta.dir, '..', '..');
const newFolder = tempFolders('targets');

describe('the table of targets', () => {
  test('holds every system, processor and C library that we release for', () => {
    expect(TARGETS.map(assetName)).toEqual([
      'shadowob-connector-linux-x64',
      'shadowob-connector-linux-arm64',
      'shadowob-connector-linux-x64-musl',
      'shadowob-connector-linux-arm64-musl',
      'shadowob-connector-darwin-arm64',
      'shadowob-connector-darwin-x64',
      'shadowob-connector-windows-x64.exe',
      'shadowob-connector-windows-arm64.exe',
    ]);
  });

  test('x64 is the baseline build wherever there is one (B6, B7)', () => {
    const x64 = TARGETS.filter((target) => target.arch === 'x64');
    for (const target of x64) {
      const isBaseline = target.bun.includes('baseline') && target.runtimePackage.endsWith('-baseline');
      expect([targetName(target), isBaseline]).toEqual([targetName(target), target.os !== 'darwin']);
    }
  });

  test('each row pins its own archive', () => {
    for (const target of TARGETS) expect(target.integrity).toMatch(/^sha512-[A-Za-z0-9+/]{86}==$/);
    expect(new Set(TARGETS.map((target) => target.integrity)).size).toBe(TARGETS.length);
    expect(new Set(TARGETS.map((target) => target.runtimePackage)).size).toBe(TARGETS.length);
  });

  test('is for the Bun that package.json pins, and that runs now (B3)', () => {
    const manifest: unknown = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    expect(manifest).toMatchObject({ devDependencies: { bun: BUN_VERSION } });
    expect(Bun.version).toBe(BUN_VERSION);
  });

  test('agrees with package-lock.json on the archives that both name', () => {
    const lock = readFileSync(join(ROOT, 'package-lock.json'), 'utf8');
    const inBoth = TARGETS.filter((target) => lock.includes(`"node_modules/${target.runtimePackage}"`));
    expect(inBoth.length).toBeGreaterThanOrEqual(5);
    for (const target of inBoth) expect(lock).toContain(target.integrity);
  });

  test('the lock file names no registry', () => {
    expect(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')).not.toMatch(/"resolved"|registry|\.tgz/);
  });

  test('names are looked up whole', () => {
    expect(findTarget('linux-x64-musl')?.bun).toBe('bun-linux-x64-baseline-musl');
    expect(findTarget('linux')).toBeUndefined();
  });
});

describe('the host', () => {
  test.each([
    ['linux', 'x64', 'musl', 'linux-x64-musl'],
    ['linux', 'arm64', 'glibc', 'linux-arm64'],
    ['darwin', 'arm64', 'glibc', 'darwin-arm64'],
    ['win32', 'x64', 'glibc', 'windows-x64'],
  ] as const)('%s %s with %s is %s', (platform, arch, libc, name) => {
    expect(targetName(hostFrom(platform, arch, () => libc))).toBe(name);
  });

  test.each([
    ['linux', 'ia32'],
    ['freebsd', 'x64'],
  ])('%s %s is refused by name', (platform, arch) => {
    expect(() => hostFrom(platform, arch, () => 'glibc')).toThrow(/no build for/);
  });

  test('the C library is read from a program, not guessed from files in /lib (I1)', () => {
    const folder = newFolder();
    writeFileSync(join(folder, 'musl'), elfHead(2, '/lib/ld-musl-x86_64.so.1'));
    writeFileSync(join(folder, 'glibc'), elfHead(2, '/lib64/ld-linux-x86-64.so.2'));
    expect(libcOfProgram(join(folder, 'musl'))).toBe('musl');
    expect(libcOfProgram(join(folder, 'glibc'))).toBe('glibc');
  });
});

describe('a fetched runtime', () => {
  test('with other bytes than the pinned ones is refused', () => {
    const [target] = TARGETS;
    if (!target) throw new Error('the table is empty');
    const bytes = new TextEncoder().encode('a runtime');
    expect(() => requireIntegrity({ ...target, integrity: integrityOf(bytes) }, bytes)).not.toThrow();
    expect(() => requireIntegrity(target, bytes)).toThrow(/expected sha512-.*got sha512-/);
  });
});

describe('SHA256SUMS', () => {
  test('is sorted, and in the form that sha256sum -c reads', () => {
    expect(formatChecksums(new Map(Object.entries({ b: '22', a: '11' })))).toBe('11  a\n22  b\n');
  });

  test('holds the sums of the bytes', async () => {
    const folder = mkdtempSync(join(newFolder(), 'sums-'));
    writeFileSync(join(folder, 'x'), 'hello');
    const known = '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824';
    expect(await sha256(join(folder, 'x'))).toBe(known);
    await writeChecksums(folder, ['x']);
    expect(readFileSync(join(folder, 'SHA256SUMS'), 'utf8')).toBe(`${known}  x\n`);
  });
});

describe('macOS signatures (B3, B4)', () => {
  test('the old one is stripped, ours put in its place, and the result checked', () => {
    expect(signingCommands('f')).toEqual([
      ['codesign', '--remove-signature', 'f'],
      ['codesign', '--force', '--sign', '-', '--identifier', SIGNING_IDENTIFIER, 'f'],
      ['codesign', '--verify', '--strict', '--verbose=2', 'f'],
    ]);
  });

  test('on macOS all commands run in order', () => {
    const ran: string[] = [];
    const answer = signExecutable('f', 'darwin', (command) => {
      ran.push(command[1] ?? '');
      return { code: 0, stderr: '' };
    });
    expect(answer).toBe('signed');
    expect(ran).toEqual(['--remove-signature', '--force', '--verify']);
  });

  test("a refusal ends the build with codesign's words", () => {
    const refuse = () => ({ code: 1, stderr: 'main executable failed strict validation' });
    expect(() => signExecutable('f', 'darwin', refuse)).toThrow(/failed strict validation/);
  });

  test('elsewhere nothing runs, and the answer says so', () => {
    const never = () => {
      throw new Error('ran');
    };
    expect(signExecutable('f', 'linux', never)).toBe('unsigned');
  });
});
