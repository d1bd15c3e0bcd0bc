import { describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { codexHome } from '../../../src/adapters/codex/homes.ts';
import { lockClaim, parseProcLocks, readThreadLocks, takesLocks } from '../../../src/adapters/codex/locks.ts';
import { systemFiles } from '../../../src/runtime/files/file-system.ts';
import { systemHost } from '../../../src/runtime/process/spawn.ts';
import { finished, ID, inHome, Lines, OTHER_ID, stateOf, T0, type TestHome } from './home.ts';

const FLOCK = Bun.which('flock');
const canLock = process.platform === 'linux' && FLOCK !== null && existsSync('/proc/locks');

/** Holds a real flock in a real process until it is ended. */
async function holdLock(path: string): Promise<{ pid: number; kill(): Promise<void> }> {
  writeFileSync(path, '');
  const child = Bun.spawn([FLOCK ?? 'flock', '--no-fork', '--exclusive', path, 'sleep', '600'], {
    stdout: 'ignore',
  });
  const inode = `:${statSync(path).ino} `;
  while (!readFileSync('/proc/locks', 'utf8').includes(inode)) await Bun.sleep(5);
  return {
    pid: child.pid,
    async kill() {
      child.kill('SIGKILL');
      await child.exited;
    },
  };
}

function realLocks(home: TestHome) {
  return readThreadLocks(codexHome(home.context()), systemFiles, { ...systemHost, platform: 'linux' });
}

const lockPath = (home: TestHome, id: string) => home.path(`thread-writer-locks/${id}.lock`);

describe('parseProcLocks', () => {
  test('only granted write locks, of every form', () => {
    const text = [
      '1: FLOCK  ADVISORY  WRITE 22749 fe:00:10084355 0 EOF',
      '1: -> FLOCK  ADVISORY  WRITE 99 fe:00:10084355 0 EOF',
      '2: POSIX  ADVISORY  READ 18092 fe:00:10084736 128 128',
      '3: OFDLCK ADVISORY  WRITE -1 08:11:42 0 EOF',
      'nonsense',
      '',
    ].join('\n');
    expect(parseProcLocks(text)).toEqual([
      { pid: 22749, major: 0xfe, minor: 0, ino: 10084355 },
      { pid: -1, major: 8, minor: 0x11, ino: 42 },
    ]);
  });
});

describe.if(canLock)('R-22 a real lock of a real process', () => {
  test('held, then free after kill -9: the file stays and means nothing', () =>
    inHome(async (home) => {
      mkdirSync(home.path('thread-writer-locks'));
      const holder = await holdLock(lockPath(home, ID));
      try {
        const lock = realLocks(home).of(ID);
        expect(lock).toMatchObject({ kind: 'held', pid: holder.pid });
        const startedAt = lock.kind === 'held' ? (lock.startedAt ?? 0) : 0;
        expect(Math.abs(startedAt - Date.now())).toBeLessThan(60_000);
      } finally {
        await holder.kill();
      }
      expect(realLocks(home).of(ID)).toEqual({ kind: 'free' });
      expect(realLocks(home).of(OTHER_ID)).toEqual({ kind: 'absent' });
    }));

  test('looking never takes it: a writer that comes in between always succeeds', () =>
    inHome(async (home) => {
      mkdirSync(home.path('thread-writer-locks'));
      writeFileSync(lockPath(home, ID), '');
      for (let look = 0; look < 20; look += 1) {
        const writer = Bun.spawn([FLOCK ?? 'flock', '--nonblock', '--exclusive', lockPath(home, ID), 'true']);
        realLocks(home);
        expect(await writer.exited).toBe(0);
      }
    }));

  test('the whole scan: alive while it is held, stopped once its holder is killed', () =>
    inHome(async (home) => {
      const scan = () => home.sessions({ platform: 'linux' });
      home.rollout(new Lines(Date.now() + 500).meta().started().said('half'));
      home.now = Date.now() + 1_000;
      mkdirSync(home.path('thread-writer-locks'));
      const holder = await holdLock(lockPath(home, ID));
      const line = readFileSync('/proc/locks', 'utf8');
      try {
        home.procLocks(line);
        mkdirSync(`${home.folder}/proc/${holder.pid}`);
        writeFileSync(`${home.folder}/proc/${holder.pid}/stat`, readFileSync(`/proc/${holder.pid}/stat`));
        const [session] = await scan();
        expect(session && stateOf(session)).toBe('streaming');
        expect(session?.shown.life).toBe('alive');
        expect(session?.facts.pids).toEqual([holder.pid]);
      } finally {
        await holder.kill();
      }
      home.procLocks('');
      home.now += 5_000;
      const [session] = await scan();
      expect(session && stateOf(session)).toBe('stopped');
      expect(session?.shown.life).toBe('dead');
    }));
});

describe('what a lock proves', () => {
  const modern = { modern: true };

  test('held: somebody lives, and nothing about activity', () => {
    const claim = lockClaim({ kind: 'held', pid: 42 }, modern, T0, T0 - 5);
    expect(claim).toMatchObject({
      says: { kind: 'silent' },
      life: 'alive',
      owner: '42',
      confidence: 'inferred',
    });
  });

  test('free or absent: the owner is gone, if its version would have held one', () => {
    for (const kind of ['free', 'absent'] as const) {
      expect(lockClaim({ kind }, modern, T0, T0 - 5)).toMatchObject({ life: 'dead', at: T0 - 5 });
      expect(lockClaim({ kind }, { modern: false, cliVersion: '0.104.0' }, T0, T0)?.life).toBeUndefined();
    }
  });

  test('unknown: nothing', () => {
    expect(lockClaim({ kind: 'unknown' }, modern, T0, T0)).toBeUndefined();
  });

  test('which versions take locks', () => {
    expect(takesLocks({ modern: false, cliVersion: '0.171.0' })).toBe(true);
    expect(takesLocks({ modern: false, cliVersion: '1.0.0' })).toBe(true);
    expect(takesLocks({ modern: false, historyMode: 'paginated' })).toBe(true);
    expect(takesLocks({ modern: false, cliVersion: '0.104.0' })).toBe(false);
    expect(takesLocks({ modern: false })).toBe(false);
  });
});

describe('life in the list', () => {
  test('no lock folder (0.104): life is unknown, and an open turn ages out of it', () =>
    inHome(async (home) => {
      home.rollout(new Lines().meta(ID, { cli_version: '0.104.0', history_mode: undefined }).started());
      const session = await home.one();
      expect([stateOf(session), session.shown.life]).toEqual(['running', 'unknown']);
      home.now = T0 + 3_600_000;
      expect(stateOf(await home.one())).toBe('unknown');
    }));

  test('a finished turn keeps its outcome, whoever left (R-02)', () =>
    inHome(async (home) => {
      home.rollout(finished('Go'));
      mkdirSync(home.path('thread-writer-locks'));
      const session = await home.one();
      expect([stateOf(session), session.shown.life]).toEqual(['completed', 'dead']);
    }));

  test('X6 opened and never prompted: idle with a live owner, else unknown', () =>
    inHome(async (home) => {
      mkdirSync(home.path('thread-writer-locks'));
      writeFileSync(lockPath(home, ID), '');
      writeFileSync(home.path('thread-writer-locks/.coordination.lock'), '');
      home.rollout(new Lines().meta(OTHER_ID), OTHER_ID);
      hold(home, ID, 4242);
      const states = (await home.sessions()).map((one) => [one.ref.sessionId, stateOf(one), one.shown.life]);
      expect(states.sort()).toEqual([
        [ID, 'idle', 'alive'],
        [OTHER_ID, 'unknown', 'dead'],
      ]);
    }));

  test('a lock whose holder lives in another pid namespace is held too', () =>
    inHome(async (home) => {
      home.rollout(new Lines().meta().started());
      mkdirSync(home.path('thread-writer-locks'));
      writeFileSync(lockPath(home, ID), '');
      hold(home, ID, 0);
      expect((await home.one()).shown.life).toBe('alive');
    }));

  test('a lock line of a process that is gone is nobody’s', () =>
    inHome(async (home) => {
      home.rollout(new Lines().meta().started());
      mkdirSync(home.path('thread-writer-locks'));
      writeFileSync(lockPath(home, ID), '');
      hold(home, ID, 4242);
      Bun.spawnSync(['rm', '-r', `${home.folder}/proc/4242`]);
      expect((await home.one()).shown.life).toBe('dead');
    }));

  test('a turn that began between the look at the locks and the look at the files is looked at again', () =>
    inHome(async (home) => {
      home.rollout(new Lines().meta().started());
      mkdirSync(home.path('thread-writer-locks'));
      let looks = 0;
      const files = {
        ...systemFiles,
        names(folder: string) {
          const isLocks = folder.endsWith('thread-writer-locks');
          looks += isLocks ? 1 : 0;
          if (isLocks && looks === 2) {
            writeFileSync(lockPath(home, ID), '');
            hold(home, ID, 4242);
          }
          return systemFiles.names(folder);
        },
      };
      const session = await home.one({ files });
      expect([stateOf(session), session.shown.life, looks]).toEqual(['running', 'alive', 2]);
    }));

  test('R-22 elsewhere than on Linux locks are unknown', () =>
    inHome(async (home) => {
      home.rollout(new Lines().meta().started());
      mkdirSync(home.path('thread-writer-locks'));
      expect((await home.one({ platform: 'darwin' })).shown.life).toBe('unknown');
    }));
});

/** Shows a lock as held in the home's own /proc. */
function hold(home: TestHome, id: string, pid: number): void {
  const { dev, ino } = statSync(lockPath(home, id));
  const [major, minor] = [(dev >> 8) & 0xfff, (dev & 0xff) | ((dev >> 12) & 0xffffff00)];
  home.procLocks(
    `1: FLOCK  ADVISORY  WRITE ${pid} ${major.toString(16)}:${minor.toString(16)}:${ino} 0 EOF\n`,
  );
  if (pid <= 0) return;
  mkdirSync(`${home.folder}/proc/${pid}`, { recursive: true });
  writeFileSync(
    `${home.folder}/proc/${pid}/stat`,
    `${pid} (codex) S 1 ${pid} ${pid} ${'0 '.repeat(15)}100 0\n`,
  );
  writeFileSync(`${home.folder}/proc/stat`, `btime ${Math.floor(T0 / 1000) - 10_000}\n`);
}
