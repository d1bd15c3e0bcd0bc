import { describe, expect, test } from 'bun:test';
import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findHolders, openFiles } from '../../../src/runtime/process/open-files.ts';
import { start, systemHost } from '../../../src/runtime/process/spawn.ts';
import { listProcesses, parseWindowsRows, WINDOWS_LIST_SCRIPT } from '../../../src/runtime/process/table.ts';
import { captured, exitedWith, fakeHost, withFolder } from './helpers.ts';

const onLinux = test.skipIf(process.platform !== 'linux');
const noRunner = captured(() => {
  throw new Error('nothing may be started on Linux');
});
const linux = { ...systemHost, run: noRunner.run };

/** A made-up /proc with these processes. */
function procFolder(
  folder: string,
  processes: Record<number, { stat: string; cmdline?: string; fds?: string[] }>,
): string {
  writeFileSync(join(folder, 'uptime'), '1000.00 5\n');
  for (const [pid, { stat, cmdline, fds }] of Object.entries(processes)) {
    mkdirSync(join(folder, pid, 'fd'), { recursive: true });
    writeFileSync(join(folder, pid, 'stat'), `${pid} ${stat}`);
    if (cmdline !== undefined) writeFileSync(join(folder, pid, 'cmdline'), cmdline);
    for (const [fd, target] of (fds ?? []).entries())
      symlinkSync(target, join(folder, pid, 'fd', String(fd)));
  }
  return folder;
}

function stat(comm: string, state: string, ppid: number, ticks: number): string {
  return `(${comm}) ${state} ${ppid} 5 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 ${ticks} 0 0`;
}

describe('listProcesses on Linux', () => {
  onLinux(
    'a real child: arguments, parent, group, folder, start; and no process was started for it',
    async () => {
      await withFolder(async (folder) => {
        const child = start({ argv: ['sh', '-c', 'echo up; sleep 1000; :', 'an argument', ''], cwd: folder });
        if (child.kind !== 'started') throw new Error(child.message);
        await child.stdout.getReader().read();
        const table = await listProcesses(
          { brief: ({ pid }) => pid === child.identity.pid, withCwd: true },
          linux,
        );
        await child.end(0);
        expect(table).toMatchObject({ unreadable: 0, spawned: 0, complete: true });
        expect(table.rows).toMatchObject([
          {
            ...child.identity,
            ppid: process.pid,
            pgid: child.identity.pid,
            argv: ['sh', '-c', 'echo up; sleep 1000; :', 'an argument', ''],
            argvExact: true,
            cwd: realpathSync(folder),
          },
        ]);
      });
    },
  );

  test('arguments are read only for those that pass the first look', async () => {
    await withFolder(async (folder) => {
      const procRoot = procFolder(folder, {
        10: { stat: stat('claude', 'S', 1, 100), cmdline: 'claude\0--resume\0\0' },
        // No cmdline file: reading it would be counted.
        11: { stat: stat('bash', 'S', 1, 100) },
      });
      const host = { ...fakeHost('linux', noRunner.run, new Set()), procRoot, now: () => 2_000_000 };
      const table = await listProcesses({ brief: ({ comm }) => comm === 'claude' }, host);
      expect(table).toEqual({
        rows: [
          {
            pid: 10,
            ppid: 1,
            pgid: 5,
            comm: 'claude',
            startToken: '100',
            startedAt: 1_001_000,
            argv: ['claude', '--resume', ''],
            argvExact: true,
          },
        ],
        unreadable: 0,
        spawned: 0,
        complete: true,
      });
    });
  });

  test('zombies are left out, the unreadable are counted, kernel threads have no arguments, oddities are skipped', async () => {
    await withFolder(async (folder) => {
      const procRoot = procFolder(folder, {
        10: { stat: stat('gone', 'Z', 1, 1), cmdline: '' },
        11: { stat: stat('hidden', 'S', 1, 1) },
        12: { stat: stat('kworker/0:1', 'I', 2, 1), cmdline: '' },
        13: { stat: 'nonsense', cmdline: 'x' },
      });
      mkdirSync(join(folder, '14'));
      mkdirSync(join(folder, 'self'));
      const table = await listProcesses({}, { ...fakeHost('linux', noRunner.run, new Set()), procRoot });
      expect(table.rows.map(({ pid, argv }) => [pid, argv])).toEqual([
        [11, []],
        [12, []],
      ]);
      expect(table.unreadable).toBe(1);
    });
  });

  test('without /proc the list says that it is none', async () => {
    expect(await listProcesses({}, fakeHost('linux', noRunner.run, new Set()))).toEqual({
      rows: [],
      unreadable: 0,
      spawned: 0,
      complete: false,
    });
  });
});

describe('listProcesses on macOS', () => {
  const answers: Record<string, string> = {
    'pid=,ppid=,pgid=,state=,lstart=,args=': [
      '    1     0     1 Ss   Sun Nov  1 08:00:00 2026 /sbin/launchd',
      '  501   480   501 S+   Mon Nov 30 09:05:01 2026 claude --resume abc',
      '  502   501   502 Z    Mon Nov 30 09:05:02 2026 (sh)',
      '  503   501   501 S    Mon Nov 30 09:05:03 2026 /Applications/My App.app/My App --flag a b',
      'garbage',
      '  504     1   504 S    Mon Nov 30 09:05:03 2026',
    ].join('\n'),
    'pid=,comm=': [
      '    1 /sbin/launchd',
      '  501 claude',
      '  503 /Applications/My App.app/My App',
      '  504 (quiet)',
    ].join('\n'),
  };

  test('two ps listings are joined; a path with blanks stays whole, the rest is split at blanks', async () => {
    const { run, calls } = captured((argv) => exitedWith(answers[argv.at(-1) ?? ''] ?? ''));
    const table = await listProcesses({ brief: ({ pid }) => pid !== 1 }, fakeHost('darwin', run, new Set()));
    expect(table).toEqual({
      complete: true,
      spawned: 2,
      unreadable: 0,
      rows: [
        {
          pid: 501,
          ppid: 480,
          pgid: 501,
          comm: 'claude',
          startToken: 'Mon Nov 30 09:05:01 2026',
          startedAt: Date.UTC(2026, 10, 30, 9, 5, 1),
          argv: ['claude', '--resume', 'abc'],
          argvExact: false,
        },
        {
          pid: 503,
          ppid: 501,
          pgid: 501,
          comm: 'My App',
          startToken: 'Mon Nov 30 09:05:03 2026',
          startedAt: Date.UTC(2026, 10, 30, 9, 5, 3),
          argv: ['/Applications/My App.app/My App', '--flag', 'a', 'b'],
          argvExact: false,
        },
        {
          pid: 504,
          ppid: 1,
          pgid: 504,
          comm: '(quiet)',
          startToken: 'Mon Nov 30 09:05:03 2026',
          startedAt: Date.UTC(2026, 10, 30, 9, 5, 3),
          argv: [],
          argvExact: false,
        },
      ],
    });
    expect(calls.every((call) => call.argv[0] === 'ps' && call.env?.['LC_ALL'] === 'C')).toBe(true);
  });

  test('folders are asked for once, of all that passed the first look', async () => {
    const { run, calls } = captured((argv) =>
      argv[0] === 'lsof'
        ? exitedWith('p501\nfcwd\nn/Users/dev/my app\np503\nfcwd\n', 1)
        : exitedWith(answers[argv.at(-1) ?? ''] ?? ''),
    );
    const table = await listProcesses(
      { brief: ({ pid }) => pid > 500, where: ({ cwd }) => cwd === '/Users/dev/my app', withCwd: true },
      fakeHost('darwin', run, new Set()),
    );
    expect(table.spawned).toBe(3);
    expect(table.rows.map(({ pid, cwd }) => ({ pid, cwd }))).toEqual([
      { pid: 501, cwd: '/Users/dev/my app' },
    ]);
    expect(calls.filter((call) => call.argv[0] === 'lsof').map((call) => call.argv.at(-1))).toEqual([
      '501,503,504',
    ]);
  });

  test('a ps that fails is no empty list', async () => {
    const { run } = captured(() => ({ kind: 'failedToStart', reason: 'notFound', message: '' }));
    expect(await listProcesses({}, fakeHost('darwin', run, new Set()))).toMatchObject({
      rows: [],
      complete: false,
    });
  });
});

describe('listProcesses on Windows', () => {
  test('one PowerShell call; the command line is split by the rules of Windows', async () => {
    const { run, calls } = captured(() =>
      exitedWith(
        `\uFEFF${JSON.stringify([
          {
            ProcessId: 7,
            ParentProcessId: 3,
            Name: 'node.exe',
            CommandLine: '"C:\\Program Files\\nodejs\\node.exe" "a b" c\\d',
            Started: '2026-11-30T09:05:01.1234567Z',
          },
          { ProcessId: 8, ParentProcessId: 0, Name: 'System', CommandLine: null, Started: null },
          { ProcessId: 'x' },
          null,
        ])}\r\n`,
      ),
    );
    const table = await listProcesses({}, fakeHost('win32', run, new Set()));
    expect(table).toEqual({
      complete: true,
      spawned: 1,
      unreadable: 1,
      rows: [
        {
          pid: 7,
          ppid: 3,
          pgid: null,
          comm: 'node',
          startToken: '2026-11-30T09:05:01.1234567Z',
          startedAt: Date.UTC(2026, 10, 30, 9, 5, 1, 123),
          argv: ['C:\\Program Files\\nodejs\\node.exe', 'a b', 'c\\d'],
          argvExact: true,
        },
        {
          pid: 8,
          ppid: 0,
          pgid: null,
          comm: 'System',
          startToken: null,
          startedAt: null,
          argv: [],
          argvExact: true,
        },
      ],
    });
    expect(calls.map((call) => call.argv)).toEqual([
      ['powershell.exe', '-NoProfile', '-NonInteractive', '-Command', WINDOWS_LIST_SCRIPT],
    ]);
  });

  test('a single object is a list of one, and an error text is no list', () => {
    expect(parseWindowsRows('{"ProcessId":7,"ParentProcessId":3,"Name":"a.exe"}')).toHaveLength(1);
    expect(parseWindowsRows('Get-CimInstance : Access denied')).toBeNull();
  });
});

describe('openFiles and findHolders', () => {
  onLinux('who has this database open', async () => {
    await withFolder(async (folder) => {
      const database = join(realpathSync(folder), 'opencode.db');
      const child = start({ argv: ['sh', '-c', 'exec 3<>"$1"; echo open; exec sleep 1000', 'sh', database] });
      if (child.kind !== 'started') throw new Error(child.message);
      await child.stdout.getReader().read();
      expect(await findHolders([database], linux)).toMatchObject({
        holders: [child.identity],
        complete: true,
      });
      const open = openFiles(child.identity.pid, linux);
      expect(open.kind === 'known' && open.paths.has(database)).toBe(true);
      await child.end(0);
      expect((await findHolders([database], linux)).holders).toEqual([]);
      expect(openFiles(child.identity.pid, linux)).toEqual({ kind: 'unknown' });
    });
  });

  test('a process that can not be looked into is named, because it might be the one (R-19)', async () => {
    await withFolder(async (folder) => {
      const procRoot = procFolder(folder, {
        10: { stat: stat('opencode', 'S', 1, 1), fds: ['/data/opencode.db (deleted)', 'socket:[12]'] },
      });
      mkdirSync(join(folder, '11'));
      writeFileSync(join(folder, '11', 'stat'), `11 ${stat('other', 'S', 1, 1)}`);
      const host = { ...fakeHost('linux', noRunner.run, new Set()), procRoot };
      const found = await findHolders(['/data/opencode.db'], host);
      expect(found.holders).toEqual([{ pid: 10, startToken: '1' }]);
      expect(found.unreadable.map(({ comm }) => comm)).toEqual(['other']);
      expect(
        (await findHolders(['/data/opencode.db'], host, ({ comm }) => comm === 'opencode')).unreadable,
      ).toEqual([]);
    });
  });

  test('macOS asks lsof once; its exit code 1 means nobody only when it is silent', async () => {
    const asked = async (stdout: string, code: number, stderr = '') => {
      const { run, calls } = captured(() => exitedWith(stdout, code, stderr));
      const found = await findHolders(['/d/a b.db'], fakeHost('darwin', run, new Set()));
      expect(calls.map((call) => call.argv)).toEqual([['lsof', '-n', '-P', '-Fpn', '--', '/d/a b.db']]);
      return found;
    };
    expect(await asked('p31\nf7\nn/d/a b.db\n', 0)).toMatchObject({ holders: [{ pid: 31 }], complete: true });
    expect(await asked('', 1)).toEqual({ holders: [], unreadable: [], complete: true });
    expect(await asked('', 1, 'lsof: status error')).toMatchObject({ complete: false });
  });

  test('Windows can not tell, and says so', async () => {
    const { run } = captured(() => exitedWith(''));
    expect(await findHolders(['C:\\a.db'], fakeHost('win32', run, new Set()))).toMatchObject({
      complete: false,
    });
  });
});
