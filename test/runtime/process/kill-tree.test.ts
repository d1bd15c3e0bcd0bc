import { describe, expect, test } from 'bun:test';
import { isAlive } from '../../../src/runtime/process/identity.ts';
import { isGroupEmpty, killTree } from '../../../src/runtime/process/kill-tree.ts';
import { start, systemHost } from '../../../src/runtime/process/spawn.ts';
import { captured, exitedWith, fakeHost } from './helpers.ts';

const onLinux = test.skipIf(process.platform !== 'linux');

async function started(script: string) {
  const child = start({ argv: ['sh', '-c', script] });
  if (child.kind !== 'started') throw new Error(child.message);
  const { value } = await child.stdout.getReader().read();
  return { child, pids: [...new TextDecoder().decode(value).matchAll(/\d+/g)].map(Number) };
}

describe('killTree on Linux', () => {
  onLinux('a pid that is given bare is ended with its children', async () => {
    const { child, pids } = await started('sleep 1000 & sleep 1000 & echo $! $$; wait');
    expect(await killTree(child.identity.pid, { graceMs: 200 }, systemHost)).toEqual({
      gone: true,
      survivors: [],
    });
    for (const pid of pids) expect(isAlive(pid)).toBe(false);
  });

  onLinux('K3: the group is ended when its leader is gone already', async () => {
    const { child, pids } = await started('sleep 1000 & echo $!');
    await child.exited;
    expect(isGroupEmpty(child.identity.pid, systemHost)).toBe(false);
    expect(await killTree(child.identity, { graceMs: 200 }, systemHost)).toEqual({
      gone: true,
      survivors: [],
    });
    for (const pid of pids) expect(isAlive(pid)).toBe(false);
  });

  onLinux('a child that forks while it dies is followed to its end', async () => {
    const { child } = await started(
      'trap "sleep 1000 & sleep 1000 &" TERM; echo $$; while :; do sleep 1; done',
    );
    expect(await killTree(child.identity, { graceMs: 100 }, systemHost)).toEqual({
      gone: true,
      survivors: [],
    });
    expect(isGroupEmpty(child.identity.pid, systemHost) || !isAlive(child.identity.pid)).toBe(true);
  });

  onLinux('a pid that belongs to somebody else by now is left alone (D1)', async () => {
    const { child } = await started('echo $$; exec sleep 1000');
    const before = { pid: child.identity.pid, startToken: '1' };
    expect(await killTree(before, { graceMs: 0 }, systemHost)).toEqual({ gone: true, survivors: [] });
    expect(isAlive(child.identity.pid)).toBe(true);
    await child.end(0);
  });

  onLinux('who is spared lives on, with what is below', async () => {
    const { child, pids } = await started(
      'setsid sh -c "sleep 1000 & wait" & spared=$!; sleep 1000 & echo $spared $! $$; wait',
    );
    const [spared, other] = pids;
    const report = await killTree(
      child.identity,
      { graceMs: 200, spare: (brief) => brief.pid === spared },
      systemHost,
    );
    expect(report).toEqual({ gone: true, survivors: [] });
    expect(isAlive(spared ?? 0)).toBe(true);
    expect(isAlive(other ?? 0)).toBe(false);
    await killTree(spared ?? 0, { graceMs: 0 }, systemHost);
  });

  onLinux('what can not be ended is named, not claimed to be gone (K1)', async () => {
    const { child } = await started('echo $$; exec sleep 1000');
    const powerless = {
      ...systemHost,
      kill: (pid: number, signal: NodeJS.Signals | 0) => {
        if (signal !== 0) throw Object.assign(new Error('no'), { code: 'EPERM' });
        process.kill(pid, 0);
      },
    };
    expect(await killTree(child.identity, { graceMs: 20, proveMs: 20 }, powerless)).toEqual({
      gone: false,
      survivors: [child.identity],
    });
    await child.end(0);
  });

  test('1, 0, groups and ourselves are refused', async () => {
    const host = fakeHost('linux', captured(() => exitedWith('')).run, new Set([1, process.pid]));
    for (const pid of [1, 0, -1, process.pid, Number.NaN]) {
      expect(await killTree(pid, { graceMs: 0 }, host)).toEqual({ gone: false, survivors: [] });
    }
    expect(host.signals).toEqual([]);
  });
});

describe('killTree on macOS', () => {
  const list = [
    '  50     1  50 S  Mon Nov  2 09:05:01 2026 /bin/sh',
    '  51    50  50 S  Mon Nov  2 09:05:02 2026 /bin/sleep',
    '  52    51  52 S  Mon Nov  2 09:05:03 2026 /bin/zsh',
    '  60     1  60 S  Mon Nov  2 09:05:03 2026 /bin/zsh',
  ].join('\n');

  test('members come from ps: the group, and descendants in groups of their own', async () => {
    const alive = new Set([-50, 50, 51, 52, 60]);
    const { run } = captured(() =>
      exitedWith(
        list
          .split('\n')
          .filter((line) => alive.has(Number(line.trim().split(' ')[0])))
          .join('\n'),
      ),
    );
    const host = fakeHost('darwin', run, alive);
    expect(await killTree(50, { graceMs: 0 }, host)).toEqual({ gone: true, survivors: [] });
    expect(host.signals).toContainEqual([-50, 'SIGKILL']);
    expect(host.signals).toContainEqual([52, 'SIGKILL']);
    expect(alive.has(60)).toBe(true);
  });

  test('without ps the group alone is addressed, and asked whether it is empty', async () => {
    const alive = new Set([-50, 50]);
    const { run } = captured(() => ({ kind: 'failedToStart', reason: 'notFound', message: '' }));
    const host = fakeHost('darwin', run, alive);
    const report = await killTree(50, { graceMs: 0, proveMs: 10 }, host);
    expect(host.signals[0]).toEqual([-50, 'SIGKILL']);
    expect(report).toEqual({ gone: false, survivors: [{ pid: 50, startToken: null }] });
    alive.delete(50);
    expect(await killTree(50, { graceMs: 0, proveMs: 10 }, host)).toEqual({ gone: true, survivors: [] });
  });
});

describe('killTree on Windows', () => {
  const row = (pid: number, ppid: number) => ({
    ProcessId: pid,
    ParentProcessId: ppid,
    Name: 'node.exe',
    CommandLine: 'node',
    Started: null,
  });

  function windows(alive: Set<number>, onTaskkill: (argv: readonly string[]) => number) {
    return captured((argv) => {
      if (argv[0] !== 'taskkill.exe')
        return exitedWith(JSON.stringify([...alive].map((pid) => row(pid, pid === 50 ? 1 : 50))));
      return exitedWith('', onTaskkill(argv));
    });
  }

  test('taskkill /T is asked first; a console program refuses, and gets /F at once', async () => {
    const alive = new Set([50, 51]);
    const { run, calls } = windows(alive, (argv) => {
      if (!argv.includes('/F')) return 1;
      alive.clear();
      return 0;
    });
    expect(await killTree(50, { graceMs: 60_000 }, fakeHost('win32', run, alive))).toEqual({
      gone: true,
      survivors: [],
    });
    expect(calls.map((call) => call.argv).filter((argv) => argv[0] === 'taskkill.exe')).toEqual([
      ['taskkill.exe', '/T', '/PID', '50'],
      ['taskkill.exe', '/T', '/F', '/PID', '50'],
    ]);
  });

  test('a child that taskkill forgot is ended by its pid; no group is ever signalled', async () => {
    const alive = new Set([50, 51]);
    const host = fakeHost(
      'win32',
      windows(alive, () => {
        alive.delete(50);
        return 0;
      }).run,
      alive,
    );
    expect(await killTree(50, { graceMs: 0 }, host)).toEqual({ gone: true, survivors: [] });
    expect(host.signals).toEqual([[51, 'SIGKILL']]);
  });

  test('with somebody to spare taskkill is not used', async () => {
    const alive = new Set([50, 51, 52]);
    const { run, calls } = windows(alive, () => 0);
    const host = fakeHost('win32', run, alive);
    expect(await killTree(50, { graceMs: 0, spare: (brief) => brief.pid === 52 }, host)).toEqual({
      gone: true,
      survivors: [],
    });
    expect(calls.some((call) => call.argv[0] === 'taskkill.exe')).toBe(false);
    expect([...alive]).toEqual([52]);
  });
});
