import { expect } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type {
  CommandRunner,
  ProcessHost,
  RunOptions,
  RunResult,
} from '../../../src/runtime/process/types.ts';

/** Waits for a condition; fails the test when it doesn't come true in 5 s. */
export async function eventually(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const end = performance.now() + 5_000;
  while (!(await condition())) {
    if (performance.now() > end) expect(what).toBe('true within five seconds');
    await Bun.sleep(5);
  }
}

/** Runs a test with a folder of its own, which is removed afterwards. */
export async function withFolder(body: (folder: string) => Promise<void> | void): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'connector-process-'));
  try {
    await body(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A finished run with this output. */
export function exitedWith(stdout: string, code = 0, stderr = ''): Extract<RunResult, { kind: 'exited' }> {
  return {
    kind: 'exited',
    code,
    signal: null,
    stdout,
    stderr,
    stdoutBytes: new TextEncoder().encode(stdout),
    bytesSeen: stdout.length + stderr.length,
    timedOut: false,
    truncated: false,
    survivors: [],
  };
}

/** A runner that answers from captured text and remembers what it was asked. */
export function captured(answer: (argv: readonly string[]) => RunResult): {
  run: CommandRunner;
  calls: RunOptions[];
} {
  const calls: RunOptions[] = [];
  return {
    calls,
    run: async (options) => {
      calls.push(options);
      return answer(options.argv);
    },
  };
}

/** A host of another platform on which every pid in `alive` exists and signals are remembered. */
export function fakeHost(
  platform: ProcessHost['platform'],
  run: CommandRunner,
  alive: Set<number>,
): ProcessHost & { signals: [number, string | number][] } {
  const signals: [number, string | number][] = [];
  return {
    platform,
    run,
    procRoot: '/nowhere',
    now: () => 1_796_000_000_000,
    signals,
    kill: (pid, signal) => {
      if (signal !== 0) signals.push([pid, signal]);
      if (!alive.has(pid)) throw Object.assign(new Error('no such process'), { code: 'ESRCH' });
      if (signal === 'SIGKILL') alive.delete(pid);
    },
  };
}
