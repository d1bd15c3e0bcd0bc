import { describe, expect, test } from 'bun:test';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import {
  findOwners,
  findServers,
  isOpencodeName,
  judgeOwner,
  type StoreOwners,
} from '../../../src/adapters/opencode/owners.ts';
import type { ProcessHost, RunResult } from '../../../src/runtime/process/types.ts';
import { type FakeProcess, fakeMachine, inFolder, tui } from './world.ts';

const NOW = 1_796_070_000_000;
const TURN = { lastWriteAt: NOW - 10_000, directory: '/work/app' };

const judged = (folder: string, processes: readonly FakeProcess[], database: string) =>
  findOwners(database, fakeMachine(folder, processes, NOW)).then(
    (owners) => judgeOwner(owners, TURN).verdict,
  );

describe('R-19: who works on an open turn (Linux)', () => {
  const cases: readonly [string, (database: string) => readonly FakeProcess[], string][] = [
    ['nobody has the database open: dead', () => [], 'dead'],
    [
      'a terminal in its directory, older than the turn’s last write: alive',
      (db) => [tui(10, db, '/work/app', NOW - 60_000)],
      'alive',
    ],
    [
      'a terminal of another directory can’t be ruled out',
      (db) => [tui(10, db, '/work/other', NOW - 60_000)],
      'unknown',
    ],
    [
      'a terminal that started after the last write is not it',
      (db) => [tui(10, db, '/work/app', NOW - 1_000)],
      'dead',
    ],
    [
      'a server runs every directory',
      (db) => [{ ...tui(10, db, '/elsewhere', NOW - 60_000), argv: ['opencode', 'serve'] }],
      'alive',
    ],
    [
      'a terminal with a port is a server',
      (db) => [{ ...tui(10, db, '/elsewhere', NOW - 60_000), ports: [4_100] }],
      'alive',
    ],
    [
      'an OpenCode of another store is none',
      () => [tui(10, '/other/opencode.db', '/work/app', NOW - 60_000)],
      'dead',
    ],
    [
      'one that may not be looked into leaves it open',
      (db) => [{ ...tui(10, db, '/work/app', NOW - 60_000), closed: true }],
      'unknown',
    ],
    [
      'a holder of another name may be OpenCode run from source',
      (db) => [{ ...tui(10, db, '/work/app', NOW - 60_000), comm: 'bun', argv: ['bun', 'src/index.ts'] }],
      'unknown',
    ],
    [
      'a stranger without the database says nothing',
      (db) => [
        {
          ...tui(10, db, '/work/app', NOW - 60_000),
          comm: 'vim',
          argv: ['vim'],
          open: ['/work/app/opencode.md'],
        },
      ],
      'dead',
    ],
    [
      'our own daemon reads it for moments and is nobody',
      (db) => [
        {
          ...tui(10, db, '/work/app', NOW - 60_000),
          comm: 'shadowob-connec',
          argv: ['shadowob-connector', 'daemon'],
        },
      ],
      'dead',
    ],
  ];

  for (const [name, processes, verdict] of cases) {
    test(name, () =>
      inFolder(async (folder) => {
        const database = `${folder}/opencode.db`;
        writeFileSync(database, '');
        expect(await judged(folder, processes(database), database)).toBe(verdict as 'alive');
      }),
    );
  }

  test('a link to the data folder and one to the project are looked through', () =>
    inFolder(async (folder) => {
      mkdirSync(`${folder}/real`);
      writeFileSync(`${folder}/real/opencode.db`, '');
      symlinkSync(`${folder}/real`, `${folder}/link`);
      const owner = tui(10, `${folder}/real/opencode.db`, `${folder}/real`, NOW - 60_000);
      const owners = await findOwners(`${folder}/link/opencode.db`, fakeMachine(folder, [owner], NOW));
      expect(judgeOwner(owners, { lastWriteAt: NOW, directory: `${folder}/link` }).verdict).toBe('alive');
    }));

  test('R-13: a server that was asked and rests is no owner', () =>
    inFolder(async (folder) => {
      const database = `${folder}/opencode.db`;
      const server = { ...tui(10, database, '/elsewhere', NOW - 60_000), argv: ['opencode', 'serve'] };
      const owners = await findOwners(database, fakeMachine(folder, [server], NOW));
      expect(judgeOwner(owners, TURN, new Set([10])).verdict).toBe('dead');
      expect(judgeOwner(owners, TURN, new Set([11])).verdict).toBe('alive');
    }));

  test('servers are found with where they listen and whose store they have', () =>
    inFolder(async (folder) => {
      const database = `${folder}/opencode.db`;
      const host = fakeMachine(
        folder,
        [
          { ...tui(10, database, '/a', NOW - 60_000), argv: ['opencode', 'serve'], ports: [4_096] },
          { ...tui(11, '/other/opencode.db', '/b', NOW - 60_000), comm: 'opencode.exe', ports: [4_097] },
          tui(12, database, '/c', NOW - 60_000),
        ],
        NOW,
      );
      const found = await findServers(database, host);
      expect(found.map(({ pid, urls, holdsStore }) => ({ pid, urls, holdsStore }))).toEqual([
        { pid: 10, urls: ['http://127.0.0.1:4096'], holdsStore: true },
        { pid: 11, urls: ['http://127.0.0.1:4097'], holdsStore: false },
      ]);
    }));

  test('the names of the program: npm’s and nix’s too, and nothing that only contains it', () => {
    expect(
      ['opencode', 'opencode.exe', '.opencode-wrapped', 'opencode-linux-x64'].every(isOpencodeName),
    ).toBe(true);
    expect(['myopencode', 'opencoder', 'node', 'vim'].some(isOpencodeName)).toBe(false);
  });
});

const exited = (stdout: string, code = 0, stderr = ''): RunResult => ({
  kind: 'exited',
  code,
  signal: null,
  stdout,
  stderr,
  stdoutBytes: new Uint8Array(),
  bytesSeen: stdout.length,
  timedOut: false,
  truncated: false,
  survivors: [],
});

/** A machine of another kind, by what its tools print. */
function machine(platform: NodeJS.Platform, answer: (argv: readonly string[]) => RunResult): ProcessHost {
  return {
    platform,
    procRoot: '/nonexistent',
    now: () => NOW,
    kill: () => {},
    run: async ({ argv }) => answer(argv),
  };
}

describe('R-19 on macOS, with the platform injected', () => {
  const started = 'Mon Nov 30 10:00:00 2026';
  const mac = (command: string, holders: string, code: number): ProcessHost =>
    machine('darwin', (argv) => {
      const [program = ''] = argv;
      if (program === 'ps') {
        return argv.includes('pid=,comm=')
          ? exited('  501 /opt/homebrew/bin/opencode\n')
          : exited(`  501     1   501 S    ${started} ${command}\n`);
      }
      return argv.some((word) => word.startsWith('-a') || word === 'cwd') && !argv.includes('--')
        ? exited('p501\nfcwd\nn/work/app\n')
        : exited(holders, code);
    });
  const db = '/Users/dev/.local/share/opencode/opencode.db';

  test('lsof says who has the database open', async () => {
    const owners = await findOwners(db, mac('/opt/homebrew/bin/opencode', `p501\nn${db}\n`, 0));
    expect(judgeOwner(owners, TURN).verdict).toBe('alive');
  });

  test('and that nobody has', async () => {
    const owners = await findOwners(db, mac('/opt/homebrew/bin/opencode', '', 1));
    expect(judgeOwner(owners, TURN).verdict).toBe('dead');
  });

  test('a port is read from the arguments', async () => {
    const owners = await findOwners(
      db,
      mac('/opt/homebrew/bin/opencode serve --port 4111', `p501\nn${db}\n`, 0),
    );
    expect(owners.processes[0]?.urls).toEqual(['http://127.0.0.1:4111']);
  });
});

describe('R-19 on Windows, with the platform injected', () => {
  const windows = (rows: readonly unknown[]): ProcessHost =>
    machine('win32', () => exited(JSON.stringify(rows)));
  const row = (name: string) => ({
    ProcessId: 8_000,
    ParentProcessId: 1,
    Name: name,
    CommandLine: `"C:\\bin\\${name}"`,
    Started: '2026-11-30T10:00:00.0000000Z',
  });

  test('nobody can tell what a running OpenCode has open: unknown', async () => {
    const owners = await findOwners('C:\\data\\opencode.db', windows([row('opencode.exe')]));
    expect(judgeOwner(owners, TURN).verdict).toBe('unknown');
  });

  test('where no OpenCode runs at all, the turn is dead', async () => {
    const owners = await findOwners('C:\\data\\opencode.db', windows([row('notepad.exe')]));
    expect(judgeOwner(owners, TURN).verdict).toBe('dead');
  });

  test('a list that could not be had proves nothing', async () => {
    const failed: ProcessHost = machine('win32', () => exited('', 1, 'denied'));
    const owners: StoreOwners = await findOwners('C:\\data\\opencode.db', failed);
    expect(judgeOwner(owners, TURN).verdict).toBe('unknown');
  });
});
