import { afterEach, describe, expect, test } from 'bun:test';
import { readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { libcPaths } from '../../../src/runtime/daemon/libc.ts';
import { acquireLock, holdPipe, readHolder } from '../../../src/runtime/daemon/lock.ts';
import { createCleanup, tempFolder, until } from './harness.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());

const HOLDER = { pid: 4242, version: '1.0.0', since: '2026-11-30T00:00:00Z' };
const FIXTURE = join(import.meta.dir, 'fixtures', 'lock-holder.ts');

async function startHolder(path: string, mode = 'wait') {
  const child = Bun.spawn([process.execPath, FIXTURE, path, mode], { stdin: 'pipe', stdout: 'pipe' });
  cleanup.add(async () => {
    child.kill('SIGKILL');
    await child.exited;
  });
  const reader = child.stdout.getReader();
  const said = new TextDecoder().decode((await reader.read()).value).trim();
  return { child, said };
}

const take = async (path: string) => {
  const lock = await acquireLock({ path, holder: HOLDER });
  if (lock.kind === 'held') cleanup.add(() => lock.release());
  return lock;
};

describe('the lock of the service', () => {
  test('R-34: one holder; the other one is told who it says it is', async () => {
    const path = join(tempFolder(cleanup), 'daemon.lock');
    const first = await take(path);
    expect(first.kind).toBe('held');
    expect(await take(path)).toEqual({ kind: 'busy', holder: HOLDER });
    if (first.kind === 'held') first.release();
    expect((await take(path)).kind).toBe('held');
  });

  test('C1: the file is 0600 whatever the umask, and is tightened when it was not', async () => {
    const path = join(tempFolder(cleanup), 'daemon.lock');
    writeFileSync(path, '', { mode: 0o666 });
    await take(path);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test('S-906: a link in its place is not followed', async () => {
    const folder = tempFolder(cleanup);
    const target = join(folder, 'precious');
    writeFileSync(target, 'precious');
    symlinkSync(target, join(folder, 'daemon.lock'));
    expect(await take(join(folder, 'daemon.lock'))).toMatchObject({ kind: 'unavailable' });
    expect(readFileSync(target, 'utf8')).toBe('precious');
  });

  test('R-34: gone with its process after kill -9, however soon the next one starts', async () => {
    const path = join(tempFolder(cleanup), 'daemon.lock');
    for (let n = 0; n < 3; n += 1) {
      const { child, said } = await startHolder(path);
      expect(said).toBe('held');
      expect((await take(path)).kind).toBe('busy');
      child.kill('SIGKILL');
      await child.exited;
      const next = await take(path);
      expect(next.kind).toBe('held');
      if (next.kind === 'held') next.release();
    }
  });

  test('D1 D2: a file that names a live, unrelated pid is no lock', async () => {
    const path = join(tempFolder(cleanup), 'daemon.lock');
    writeFileSync(path, `${JSON.stringify({ ...HOLDER, pid: process.pid })}\n`);
    expect((await take(path)).kind).toBe('held');
  });

  test('D1: a child that outlives the holder does not keep the lock', async () => {
    const path = join(tempFolder(cleanup), 'daemon.lock');
    const { child, said } = await startHolder(path, 'with-child');
    const pid = Number(said.split(' ')[1]);
    cleanup.add(() => process.kill(pid, 'SIGKILL'));
    child.kill('SIGKILL');
    await child.exited;
    expect(() => process.kill(pid, 0)).not.toThrow();
    expect((await take(path)).kind).toBe('held');
  });

  test('D10: twenty starters at once, exactly one holds it', async () => {
    const path = join(tempFolder(cleanup), 'daemon.lock');
    const starters = await Promise.all(Array.from({ length: 20 }, () => startHolder(path)));
    expect(starters.filter(({ said }) => said === 'held')).toHaveLength(1);
    expect(starters.filter(({ said }) => said === 'busy')).toHaveLength(19);
  }, 20_000);

  test('a system without flock is said so, not believed to be locked', async () => {
    const path = join(tempFolder(cleanup), 'daemon.lock');
    expect(await acquireLock({ path, holder: HOLDER, flock: undefined })).toMatchObject({
      kind: 'unavailable',
    });
    expect(await acquireLock({ path: join(path, 'no', 'folder'), holder: HOLDER })).toMatchObject({
      kind: 'unavailable',
    });
  });

  test('what a holder wrote is only ever a hint', () => {
    const folder = tempFolder(cleanup);
    for (const text of ['', '{', '[]', '{"pid":"1","version":"x","since":"y"}', 'null']) {
      writeFileSync(join(folder, 'l'), text);
      expect(readHolder(join(folder, 'l'))).toBeUndefined();
    }
  });
});

describe('the lock on Windows', () => {
  test('R-46: the exclusive pipe has a name of its own per home, in any spelling of the path', async () => {
    const asked: string[] = [];
    const hold: typeof holdPipe = async (address) => {
      asked.push(address);
      return { kind: 'held', release: () => {} };
    };
    for (const path of [
      'C:\\Users\\Ann\\.shadowob\\connector\\daemon.lock',
      'c:/users/ann/.shadowob/connector/daemon.lock',
      'C:\\other\\daemon.lock',
    ]) {
      expect(await acquireLock({ path, holder: HOLDER, platform: 'win32', holdPipe: hold })).toMatchObject({
        kind: 'held',
      });
    }
    expect(asked[0]).toMatch(/^\\\\\.\\pipe\\shadowob-connector-[0-9a-f]{32}$/);
    expect(asked[1]).toBe(asked[0] ?? '');
    expect(asked[2]).not.toBe(asked[0]);
  });

  test('R-34: a second holder of one address is refused, and the first one lets go', async () => {
    const address = join(tempFolder(cleanup), 'p');
    const first = await holdPipe(address);
    expect(first.kind).toBe('held');
    expect((await holdPipe(address)).kind).toBe('busy');
    if (first.kind === 'held') first.release();
    await until('it is free', async () => {
      const again = await holdPipe(address);
      if (again.kind === 'held') again.release();
      return again.kind === 'held';
    });
  });
});

describe('finding the C library', () => {
  test('glibc, musl and macOS, by absolute path only: a bare name would be looked up in the current folder', () => {
    const maps = (path: string) => () =>
      `7f00-7f01 r--p 00000000 fe:00 12 ${path}\n7f02-7f03 rw-p 0 00:00 0 \n7f04 r 0 0 0 [stack]`;
    expect(libcPaths('linux', maps('/usr/lib/x86_64-linux-gnu/libc.so.6'))).toEqual([
      '/usr/lib/x86_64-linux-gnu/libc.so.6',
    ]);
    expect(libcPaths('linux', maps('/lib/ld-musl-x86_64.so.1'))).toEqual(['/lib/ld-musl-x86_64.so.1']);
    expect(libcPaths('linux', maps('/lib/ld-musl-aarch64.so.1'))).toEqual(['/lib/ld-musl-aarch64.so.1']);
    expect(libcPaths('linux', maps('/nix/store/x-glibc-2.40/lib/libc.so.6'))).toEqual([
      '/nix/store/x-glibc-2.40/lib/libc.so.6',
    ]);
    expect(libcPaths('linux', maps('/usr/lib/libcurl.so.6'))).toEqual([]);
    expect(libcPaths('darwin')).toEqual(['/usr/lib/libSystem.B.dylib']);
    expect(libcPaths('win32')).toEqual([]);
    expect(
      libcPaths('linux', () => {
        throw new Error('no /proc');
      }),
    ).toEqual([]);
  });
});
