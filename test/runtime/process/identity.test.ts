import { describe, expect, test } from 'bun:test';
import {
  checkProcess,
  findProcess,
  identityFromProc,
  isAlive,
  startFromIso,
  startFromLstart,
} from '../../../src/runtime/process/identity.ts';
import { parseProcStat, readBootClock } from '../../../src/runtime/process/proc-stat.ts';
import { start, systemHost } from '../../../src/runtime/process/spawn.ts';
import { captured, eventually, exitedWith, fakeHost } from './helpers.ts';

const onLinux = test.skipIf(process.platform !== 'linux');

function refusing(code: string) {
  return {
    platform: 'darwin' as const,
    procRoot: '/nowhere',
    kill: () => {
      throw Object.assign(new Error(code), { code });
    },
  };
}

describe('isAlive (S-640)', () => {
  test('we are; a pid that nobody has is not', () => {
    expect(isAlive(process.pid)).toBe(true);
    expect(isAlive(5, refusing('ESRCH'))).toBe(false);
  });

  test('EPERM is another user’s process, so it lives', () => {
    expect(isAlive(5, refusing('EPERM'))).toBe(true);
  });

  test('pids of 1 and below, and what is no pid, are never probed', () => {
    const probed: number[] = [];
    const host = {
      platform: 'linux' as const,
      procRoot: '/nowhere',
      kill: (pid: number) => void probed.push(pid),
    };
    for (const pid of [1, 0, -1, -500, 1.5, Number.NaN, Number.POSITIVE_INFINITY])
      expect(isAlive(pid, host)).toBe(false);
    expect(probed).toEqual([]);
  });

  onLinux('a zombie has ended, although signal 0 reaches it', async () => {
    // The exec'd sleep never collects the child that its shell has started.
    const child = start({ argv: ['sh', '-c', 'sleep 0 & echo $!; exec sleep 1000'] });
    if (child.kind !== 'started') throw new Error(child.message);
    const pid = Number(new TextDecoder().decode((await child.stdout.getReader().read()).value));
    await eventually(() => !isAlive(pid), 'the zombie counts as ended');
    expect(() => process.kill(pid, 0)).not.toThrow();
    expect(identityFromProc(pid)).toBeNull();
    await child.end(100);
  });
});

describe('parseProcStat', () => {
  const tail =
    'S 7 8 9 34816 10 4194560 1 2 3 4 5 6 7 8 20 0 1 0 123456789012345678 1000 200 18446744073709551615';

  test('the name may hold brackets, blanks and line breaks: fields count from the last `)`', () => {
    for (const comm of ['claude', 'a) S 1 2 (b', 'tmux: server', 'x\n) Z', '', '(((']) {
      expect(parseProcStat(`4242 (${comm}) ${tail}\n`)).toEqual({
        pid: 4242,
        comm,
        state: 'S',
        ppid: 7,
        pgid: 8,
        sid: 9,
        startTicks: '123456789012345678',
      });
    }
  });

  test('anything else is null', () => {
    for (const text of ['', '1', '(x)', '1 (x', '1 (x) S', `x (y) ${tail}`, '1 (x) S 1 2 3']) {
      expect(parseProcStat(text)).toBeNull();
    }
  });
});

describe('findProcess and checkProcess', () => {
  onLinux('start token is field 22, and its time is when the child was started', async () => {
    const before = Date.now();
    const child = start({ argv: ['sleep', '1000'] });
    if (child.kind !== 'started') throw new Error(child.message);
    const after = Date.now();
    const found = await findProcess(child.identity.pid, systemHost);
    const stat = await Bun.file(`/proc/${child.identity.pid}/stat`).text();
    expect(found?.startToken).toBe(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? 'none');
    expect(found?.startedAt).toBeGreaterThan(before - 60);
    expect(found?.startedAt).toBeLessThan(after + 60);
    expect(await checkProcess(child.identity, systemHost)).toBe('same');
    expect(await checkProcess({ ...child.identity, startToken: '1' }, systemHost)).toBe('gone');
    expect(await checkProcess({ ...child.identity, startToken: null }, systemHost)).toBe('unknown');
    await child.end(0);
    expect(await findProcess(child.identity.pid, systemHost)).toBeNull();
    expect(await checkProcess(child.identity, systemHost)).toBe('gone');
  });

  onLinux('ticks become epoch milliseconds, and nonsense becomes null', () => {
    const clock = readBootClock(Date.now());
    const own = identityFromProc(process.pid)?.startToken ?? '';
    expect(Math.abs((clock.epochMs(own) ?? 0) - (Date.now() - process.uptime() * 1000))).toBeLessThan(5_000);
    expect(clock.epochMs('never')).toBeNull();
  });

  test('macOS: ps in English and UTC; blanks in the date are evened out (S-641)', async () => {
    const { run, calls } = captured(() => exitedWith('Ss   Mon Nov  2 09:05:01 2026    \n'));
    expect(await findProcess(77, fakeHost('darwin', run, new Set([77])))).toEqual({
      pid: 77,
      startToken: 'Mon Nov 2 09:05:01 2026',
      startedAt: Date.UTC(2026, 10, 2, 9, 5, 1),
    });
    expect(calls[0]?.argv).toEqual(['ps', '-o', 'state=,lstart=', '-p', '77']);
    expect(calls[0]?.env).toMatchObject({ LC_ALL: 'C', TZ: 'UTC' });
  });

  test('macOS: a zombie and an empty answer are nobody; a ps that fails leaves the start unknown', async () => {
    const alive = new Set([77]);
    const asked = (stdout: string) =>
      findProcess(77, fakeHost('darwin', captured(() => exitedWith(stdout)).run, alive));
    expect(await asked('Z    Mon Nov  2 09:05:01 2026\n')).toBeNull();
    expect(await asked('')).toBeNull();
    const failing = captured(() => ({ kind: 'failedToStart', reason: 'notFound', message: '' }));
    expect(await findProcess(77, fakeHost('darwin', failing.run, alive))).toEqual({
      pid: 77,
      startToken: null,
      startedAt: null,
    });
  });

  test('Windows: the creation date of the CIM instance', async () => {
    const { run, calls } = captured(() => exitedWith('2026-11-30T09:05:01.1234567Z\r\n'));
    expect(await findProcess(77, fakeHost('win32', run, new Set([77])))).toEqual({
      pid: 77,
      startToken: '2026-11-30T09:05:01.1234567Z',
      startedAt: Date.UTC(2026, 10, 30, 9, 5, 1, 123),
    });
    expect(calls[0]?.argv.at(-1)).toContain("-Filter 'ProcessId=77'");
  });

  test('dates that are none give no token', () => {
    expect(startFromLstart('gibberish')).toEqual({ startToken: null, startedAt: null });
    expect(startFromIso('')).toEqual({ startToken: null, startedAt: null });
  });
});
