import { describe, expect, test } from 'bun:test';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive } from '../../../src/runtime/process/identity.ts';
import { run, spawnPlan, start } from '../../../src/runtime/process/spawn.ts';
import type { RunResult } from '../../../src/runtime/process/types.ts';
import { eventually, withFolder } from './helpers.ts';

const onLinux = test.skipIf(process.platform !== 'linux');
const onPosix = test.skipIf(process.platform === 'win32');

/** A limit that a passing test never reaches. */
const AMPLE_MS = 20_000;

function shell(script: string, ...rest: string[]): readonly string[] {
  return ['sh', '-c', script, 'sh', ...rest];
}

function ran(result: RunResult) {
  if (result.kind === 'failedToStart') throw new Error(result.message);
  return result;
}

function pidsIn(text: string): number[] {
  return [...text.matchAll(/\d+/g)].map(Number);
}

/** Runs until the child has written `lines` lines, and aborts it then. */
async function abortAfter(lines: number, script: string, options: { graceMs?: number } = {}) {
  const stop = new AbortController();
  const seen: Uint8Array[] = [];
  const onOutput = (_stream: 'stdout' | 'stderr', chunk: Uint8Array): void => {
    seen.push(chunk.slice());
    if (Buffer.concat(seen).toString().split('\n').length > lines) stop.abort();
  };
  return ran(
    await run({ argv: shell(script), timeoutMs: AMPLE_MS, signal: stop.signal, onOutput, ...options }),
  );
}

describe('run: an ordinary child', () => {
  onPosix('exit code, both streams, and nothing left', async () => {
    const result = await run({ argv: shell('echo out; echo err >&2; exit 3'), timeoutMs: AMPLE_MS });
    expect(result).toMatchObject({
      kind: 'exited',
      code: 3,
      signal: null,
      stdout: 'out\n',
      stderr: 'err\n',
      timedOut: false,
      truncated: false,
      survivors: [],
    });
  });

  onPosix('a child that dies by a signal is told apart from one that exits', async () => {
    const result = await run({ argv: shell('kill -9 $$'), timeoutMs: AMPLE_MS });
    expect(result).toMatchObject({ kind: 'exited', code: null, signal: 'SIGKILL' });
  });

  onPosix('stdin is at its end unless it is given (V2)', async () => {
    expect(ran(await run({ argv: ['cat'], timeoutMs: AMPLE_MS })).stdout).toBe('');
    expect(ran(await run({ argv: ['cat'], stdin: 'zwölf', timeoutMs: AMPLE_MS })).stdout).toBe('zwölf');
  });

  onPosix('3 MB of stdin reach a child that reads, and do not disturb one that does not', async () => {
    const stdin = new Uint8Array(3_000_000);
    expect(ran(await run({ argv: ['wc', '-c'], stdin, timeoutMs: AMPLE_MS })).stdout.trim()).toBe('3000000');
    expect(await run({ argv: shell('exec <&-; exit 0'), stdin, timeoutMs: AMPLE_MS })).toMatchObject({
      code: 0,
    });
  });

  onPosix('the environment is exactly the one given, and the folder too', async () => {
    await withFolder(async (folder) => {
      const env = { PATH: process.env['PATH'], MARK: 'one two', GONE: undefined };
      const result = await run({
        argv: shell('echo "$MARK|$HOME|$GONE"; pwd -P'),
        env,
        cwd: folder,
        timeoutMs: AMPLE_MS,
      });
      const [first, second] = ran(result).stdout.split('\n');
      expect(first).toBe('one two||');
      expect(second?.endsWith(folder)).toBe(true);
    });
  });

  onPosix('arguments are never a shell line', async () => {
    const hostile = ['$(id)', '`id`', '; rm x', '"', "'", '-n', 'a b', '', '*'];
    const result = await run({
      argv: shell('for a in "$@"; do printf "%s\\n" "$a"; done', ...hostile),
      timeoutMs: AMPLE_MS,
    });
    expect(ran(result).stdout.split('\n').slice(0, -1)).toEqual(hostile);
  });
});

describe('run: a child that never starts is a value', () => {
  onPosix('each reason has its word', async () => {
    await withFolder(async (folder) => {
      const plain = join(folder, 'plain');
      writeFileSync(plain, 'not a program', { mode: 0o644 });
      const reasonOf = async (argv: readonly string[], cwd?: string) => {
        const result = await run({ argv, timeoutMs: AMPLE_MS, ...(cwd === undefined ? {} : { cwd }) });
        return result.kind === 'failedToStart' ? result.reason : result.kind;
      };
      expect(await reasonOf([join(folder, 'absent')])).toBe('notFound');
      expect(await reasonOf([plain])).toBe('notPermitted');
      expect(await reasonOf(['sh', '-c', 'true'], join(folder, 'absent'))).toBe('noFolder');
      expect(await reasonOf(['sh', '-c', 'true', 'x'.repeat(4_000_000)])).toBe('tooLong');
      expect(await reasonOf(['sh', '-c', 'a\0b'])).toBe('unsafeArgument');
      expect(await reasonOf([])).toBe('other');
    });
  });
});

describe('run: output', () => {
  onPosix('300 MB are read, counted, and kept only up to the cap', async () => {
    const argv = ['head', '-c', '300000000', '/dev/zero'];
    const before = process.memoryUsage().rss;
    const result = ran(await run({ argv, keepBytes: 4096, timeoutMs: AMPLE_MS }));
    expect(result).toMatchObject({ kind: 'exited', code: 0, bytesSeen: 300_000_000, truncated: true });
    expect(result.stdoutBytes.byteLength).toBe(4096);
    expect(process.memoryUsage().rss - before).toBeLessThan(250_000_000);
  });

  onPosix('the tail is kept on request', async () => {
    const argv = shell('i=0; while [ $i -lt 5000 ]; do echo "line $i"; i=$((i+1)); done');
    const result = ran(await run({ argv, keepBytes: 21, keep: 'tail', timeoutMs: AMPLE_MS }));
    expect(result.stdout).toBe('\nline 4998\nline 4999\n');
    expect(result.stdoutBytes.byteLength).toBe(21);
  });

  onPosix('exactly at the cap nothing is missing, one byte above it is', async () => {
    const printing = (n: number) =>
      run({ argv: ['head', '-c', String(n), '/dev/zero'], keepBytes: 100, timeoutMs: AMPLE_MS });
    expect(ran(await printing(100)).truncated).toBe(false);
    expect(ran(await printing(101)).truncated).toBe(true);
  });

  onPosix('NUL bytes and broken UTF-8 come through as bytes, and as replacement characters', async () => {
    const result = ran(await run({ argv: shell("printf 'a\\000b\\377c'"), timeoutMs: AMPLE_MS }));
    expect([...result.stdoutBytes]).toEqual([0x61, 0, 0x62, 0xff, 0x63]);
    expect(result.stdout).toBe('a\0b\uFFFDc');
  });

  onPosix('all output is seen as it comes, also what is not kept', async () => {
    const seen: Record<string, number> = { stdout: 0, stderr: 0 };
    await run({
      argv: shell('head -c 5000 /dev/zero; head -c 70 /dev/zero >&2'),
      keepBytes: 10,
      timeoutMs: AMPLE_MS,
      onOutput: (stream, chunk) => {
        seen[stream] = (seen[stream] ?? 0) + chunk.byteLength;
      },
    });
    expect(seen).toEqual({ stdout: 5000, stderr: 70 });
  });
});

describe('run: the end of children (K1-K3)', () => {
  onPosix('K3: a shell that waits for a sleeper goes, and the sleeper with it', async () => {
    const result = await abortAfter(1, 'sleep 1000 & echo $! $$; wait');
    expect(result).toMatchObject({ kind: 'aborted', signal: 'SIGTERM', survivors: [] });
    expect(pidsIn(result.stdout)).toHaveLength(2);
    for (const pid of pidsIn(result.stdout)) expect(isAlive(pid)).toBe(false);
  });

  onPosix('K3: a leader that is gone first does not save its children', async () => {
    const result = ran(await run({ argv: shell('sleep 1000 & echo $!; exit 0'), timeoutMs: AMPLE_MS }));
    expect(result).toMatchObject({ kind: 'exited', code: 0, survivors: [] });
    for (const pid of pidsIn(result.stdout)) expect(isAlive(pid)).toBe(false);
  });

  onPosix('a child that ignores TERM gets KILL', async () => {
    const result = await abortAfter(1, 'trap "" TERM; echo $$; while :; do sleep 1; done', { graceMs: 50 });
    expect(result).toMatchObject({ kind: 'aborted', signal: 'SIGKILL', survivors: [] });
    for (const pid of pidsIn(result.stdout)) expect(isAlive(pid)).toBe(false);
  });

  onPosix('a child that tidies up at TERM is given the time for it', async () => {
    await withFolder(async (folder) => {
      const mark = join(folder, 'tidied');
      const script = `trap "echo yes >${mark}; exit 0" TERM; echo ready; while :; do sleep 0.02; done`;
      expect(await abortAfter(1, script, { graceMs: AMPLE_MS })).toMatchObject({ code: 0, signal: null });
      expect(readFileSync(mark, 'utf8')).toBe('yes\n');
    });
  });

  onLinux(
    'K1: a descendant in a session of its own is part of the tree, as the shells of agents are',
    async () => {
      const result = await abortAfter(2, "setsid sh -c 'echo $$; exec sleep 1000' & echo $$; wait");
      expect(result).toMatchObject({ kind: 'aborted', survivors: [] });
      expect(pidsIn(result.stdout)).toHaveLength(2);
      for (const pid of pidsIn(result.stdout)) expect(isAlive(pid)).toBe(false);
    },
  );

  onLinux('a pipe held open by an escaped process does not hold the result', async () => {
    await withFolder(async (folder) => {
      const mark = join(folder, 'pid');
      const script =
        "setsid sh -c 'echo $$ >$0; exec sleep 1000' $1 & while ! [ -s $1 ]; do sleep 0.01; done";
      const result = ran(await run({ argv: shell(script, mark), timeoutMs: AMPLE_MS }));
      const escaped = Number(readFileSync(mark, 'utf8'));
      expect(isAlive(escaped)).toBe(true);
      process.kill(escaped, 'SIGKILL');
      expect(result).toMatchObject({ kind: 'exited', code: 0 });
    });
  });

  onPosix('closed output does not pass for an end', async () => {
    const result = await run({ argv: shell('exec >&- 2>&-; sleep 1000'), timeoutMs: 200 });
    expect(result).toMatchObject({ kind: 'timedOut', timedOut: true, code: null, survivors: [] });
  });

  onPosix('an installer may leave a service running', async () => {
    const result = ran(
      await run({
        argv: shell('sleep 1000 >/dev/null 2>&1 & echo $!'),
        timeoutMs: AMPLE_MS,
        leaveBackground: true,
      }),
    );
    const [service] = pidsIn(result.stdout);
    expect(service !== undefined && isAlive(service)).toBe(true);
    if (service !== undefined) process.kill(service, 'SIGKILL');
  });

  onPosix('an abort ends the tree too, and one before the start starts nothing', async () => {
    await withFolder(async (folder) => {
      const mark = join(folder, 'started');
      const stop = new AbortController();
      const running = run({
        argv: shell('echo $$ >$1; sleep 1000', mark),
        timeoutMs: AMPLE_MS,
        signal: stop.signal,
      });
      await eventually(() => existsSync(mark) && readFileSync(mark, 'utf8').endsWith('\n'), 'the child runs');
      stop.abort();
      expect((await running).kind).toBe('aborted');
      expect(isAlive(Number(readFileSync(mark, 'utf8')))).toBe(false);
      const late = await run({
        argv: shell('echo $$ >$1', join(folder, 'late')),
        timeoutMs: 1,
        signal: stop.signal,
      });
      expect(late.kind).toBe('failedToStart');
      expect(existsSync(join(folder, 'late'))).toBe(false);
    });
  });

  onPosix('twenty at once, half of them hanging, and none is left', async () => {
    const runs = Array.from({ length: 20 }, (_, index) =>
      run({
        argv: shell(index % 2 ? 'echo $$' : 'sleep 1000 & echo $! $$; wait'),
        timeoutMs: 600,
        graceMs: 100,
      }),
    );
    const results = (await Promise.all(runs)).map(ran);
    expect(results.filter((result) => result.timedOut)).toHaveLength(10);
    for (const pid of results.flatMap((result) => pidsIn(result.stdout))) expect(isAlive(pid)).toBe(false);
  });

  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    onPosix(`${signal} to us ends the child as well, although it has a group of its own`, async () => {
      await withFolder(async (folder) => {
        const mark = join(folder, 'pid');
        const spawn = join(import.meta.dir, '../../../src/runtime/process/spawn.ts');
        const script = `import {run} from ${JSON.stringify(spawn)};
          await run({argv:['sh','-c','echo $$ >${mark}; sleep 1000'],timeoutMs:60000});`;
        const file = join(folder, 'us.ts');
        writeFileSync(file, script);
        const us = Bun.spawn([process.execPath, file], {
          stdout: 'ignore',
          stderr: 'ignore',
          stdin: 'ignore',
        });
        await eventually(
          () => existsSync(mark) && readFileSync(mark, 'utf8').endsWith('\n'),
          'the child runs',
        );
        us.kill(signal);
        await us.exited;
        expect(us.signalCode).toBe(signal);
        await eventually(() => !isAlive(Number(readFileSync(mark, 'utf8'))), 'the child has ended');
      });
    });
  }
});

describe('start: a child for longer', () => {
  onPosix('lines go in and come out, and stderr keeps its tail', async () => {
    const child = start({
      argv: shell('while read -r l; do echo "got $l"; echo "saw $l" >&2; done'),
      keepStderrBytes: 8,
    });
    if (child.kind !== 'started') throw new Error(child.message);
    const reader = child.stdout.getReader();
    expect(await child.write('one\n')).toBe(true);
    expect(new TextDecoder().decode((await reader.read()).value)).toBe('got one\n');
    await child.write('two\n');
    expect(new TextDecoder().decode((await reader.read()).value)).toBe('got two\n');
    child.closeInput();
    expect(await child.exited).toEqual({ code: 0, signal: null });
    await eventually(() => child.stderrTail() === 'saw two\n', 'the tail of stderr is there');
  });

  onPosix('writing to a child that no longer reads is false, never an error', async () => {
    const child = start({ argv: shell('exec <&-; echo deaf; exec sleep 1000') });
    if (child.kind !== 'started') throw new Error(child.message);
    await child.stdout.getReader().read();
    expect(await child.write('x'.repeat(1_000_000))).toBe(false);
    child.closeInput();
    expect(await child.end(100)).toEqual({ gone: true, survivors: [] });
    expect(await child.write('x')).toBe(false);
  });

  onPosix('end takes the whole tree (K1)', async () => {
    const child = start({ argv: shell('sleep 1000 & echo $! $$; wait') });
    if (child.kind !== 'started') throw new Error(child.message);
    const { value } = await child.stdout.getReader().read();
    expect(await child.end(500)).toEqual({ gone: true, survivors: [] });
    for (const pid of pidsIn(new TextDecoder().decode(value))) expect(isAlive(pid)).toBe(false);
    expect(await child.end(500)).toEqual({ gone: true, survivors: [] });
  });

  test('a program that is not there is a value', () => {
    expect(start({ argv: ['/no/such/program'] })).toMatchObject({
      kind: 'failedToStart',
      reason: 'notFound',
    });
  });
});

describe('spawnPlan: how each system starts a child', () => {
  test('POSIX: a group of its own (K2)', () => {
    for (const platform of ['linux', 'darwin'] as const) {
      expect(spawnPlan(['claude', '--version'], platform, {})).toEqual({
        argv: ['claude', '--version'],
        detached: true,
        windowsHide: true,
        windowsVerbatimArguments: false,
      });
    }
  });

  test('Windows: hidden and never detached, which would flash a console (W5, W7)', () => {
    expect(spawnPlan(['C:\\bin\\claude.exe', '--version'], 'win32', {})).toMatchObject({
      argv: ['C:\\bin\\claude.exe', '--version'],
      detached: false,
      windowsHide: true,
    });
  });

  test('Windows: npm shims go through cmd.exe, quoted for it (W2)', () => {
    expect(
      spawnPlan(['C:\\Users\\First Last\\npm\\codex.cmd', 'exec', 'a & b'], 'win32', {
        ComSpec: 'C:\\cmd.exe',
      }),
    ).toEqual({
      argv: [
        'C:\\cmd.exe',
        '/d',
        '/s',
        '/c',
        '"C:\\Users\\First^ Last\\npm\\codex.cmd exec ^^^"a^^^ ^^^&^^^ b^^^""',
      ],
      detached: false,
      windowsHide: true,
      windowsVerbatimArguments: true,
    });
  });

  test('Windows: a line break can not be carried by a .cmd file and is refused', () => {
    expect(spawnPlan(['x.cmd', 'one\ntwo'], 'win32', {})).toBeNull();
  });
});
