import { constants } from 'node:os';
import { openLibc } from '../daemon/libc.ts';
import { spawnPlan } from './spawn.ts';
import type { Environment, FailedToStart } from './types.ts';

/**
 * Programs that run where we were asked to run: same terminal, same process group, same folder. Unlike the children of
 * `spawn.ts` they are the user's, not ours: a Ctrl-C and the end of the group reach them as if we were not there.
 */

/** How a program ended. */
export interface ProgramEnd {
  readonly code: number | null;
  readonly signal: string | null;
}

/** Where bytes go. */
export interface ByteSink {
  /** Resolves when the reader's pipe took them; false when nobody reads any more. Never rejects. Calls keep their order. */
  write(bytes: Uint8Array): Promise<boolean>;
  /** Lets the reader see the end, after everything written. */
  end(): Promise<void>;
}

/** A program that runs in our place, with its input and output led through us. */
export interface PipedProgram {
  readonly kind: 'started';
  readonly pid: number;
  readonly stdin: ByteSink;
  readonly stdout: ReadableStream<Uint8Array>;
  readonly exited: Promise<ProgramEnd>;
  kill(signal: NodeJS.Signals): void;
}

/** A program that runs in our place on our own input and output. */
export type AttachedProgram = Pick<PipedProgram, 'kind' | 'pid' | 'exited' | 'kill'>;

export interface ProgramOptions {
  readonly argv: readonly string[];
  readonly env: Environment;
  readonly platform: NodeJS.Platform;
}

/** Starts a program in our process group, its stdin and stdout in pipes, its stderr ours (S-702). Never throws. */
export function startPiped(options: ProgramOptions): PipedProgram | FailedToStart {
  return launch(options, (cmd, verbatim) => {
    const child = Bun.spawn({
      cmd,
      env: { ...options.env },
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'inherit',
      windowsHide: true,
      windowsVerbatimArguments: verbatim,
    });
    return { ...attached(child), stdin: sinkOf(child.stdin), stdout: child.stdout };
  });
}

/** Starts a program in our process group, on our terminal. Never throws. */
export function startAttached(options: ProgramOptions): AttachedProgram | FailedToStart {
  return launch(options, (cmd, verbatim) =>
    attached(
      Bun.spawn({
        cmd,
        env: { ...options.env },
        stdin: 'inherit',
        stdout: 'inherit',
        stderr: 'inherit',
        windowsVerbatimArguments: verbatim,
      }),
    ),
  );
}

function launch<T>(
  options: ProgramOptions,
  spawn: (cmd: string[], verbatim: boolean) => T,
): T | FailedToStart {
  const plan = spawnPlan(options.argv, options.platform, options.env);
  if (plan === null)
    return { kind: 'failedToStart', reason: 'unsafeArgument', message: 'not for a .cmd file' };
  try {
    return spawn([...plan.argv], plan.windowsVerbatimArguments);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    return { kind: 'failedToStart', reason: code === 'ENOENT' ? 'notFound' : 'notPermitted', message };
  }
}

function attached(child: Bun.Subprocess): AttachedProgram {
  return {
    kind: 'started',
    pid: child.pid,
    exited: child.exited.then(() => ({
      code: child.exitCode,
      signal: child.signalCode === null ? null : String(child.signalCode),
    })),
    kill(signal) {
      try {
        child.kill(signal);
      } catch {
        // It has ended by itself.
      }
    },
  };
}

/** A sink that waits for its reader. Bun's keeps what the reader has not taken, so each write is awaited (S-702). */
export function sinkOf(sink: Bun.FileSink): ByteSink {
  const state = { last: Promise.resolve(true) };
  return {
    write(bytes) {
      state.last = state.last.then((open) => open && put(sink, bytes));
      return state.last;
    },
    async end() {
      await state.last;
      try {
        await sink.end();
      } catch {
        // The reader has gone; there is nobody to see the end.
      }
    },
  };
}

async function put(sink: Bun.FileSink, bytes: Uint8Array): Promise<boolean> {
  try {
    // Both may wait and both may fail (EPIPE); an unawaited one would be an unhandled rejection.
    await sink.write(bytes);
    await sink.flush();
    return true;
  } catch {
    // The reader has closed its end, as readers may.
    return false;
  }
}

/** The exit code of a shell for such an end: the program's own, or 128 and the number of the signal (S-703). */
export function exitCodeOf(end: ProgramEnd): number {
  if (end.code !== null) return end.code;
  const signals: Readonly<Record<string, number>> = constants.signals;
  return 128 + (signals[end.signal ?? ''] ?? 0);
}

/** The exit code of a shell for a program that did not start. */
export function exitCodeOfFailure(failed: FailedToStart): number {
  return failed.reason === 'notFound' || failed.reason === 'noFolder' ? 127 : 126;
}

/**
 * Becomes the program: same pid, same terminal, nothing of ours left (S-701). Does not return when it succeeds. On
 * Windows, which can't do that, and where the program can't be found, nothing happens and `false` is returned.
 */
export function becomeProgram(options: ProgramOptions): false {
  const [program = ''] = options.argv;
  const { execve } = process;
  const path = Bun.which(program, { PATH: options.env['PATH'] ?? '', cwd: process.cwd() });
  if (options.platform === 'win32' || execve === undefined || path === null) return false;
  restoreSignals();
  try {
    execve.call(process, path, options.argv, { ...options.env });
  } catch {
    // No program file: starting it as a child gives the system's own words for it.
  }
  return false;
}

const SIGPIPE = 13;
const SIGXFSZ = 25;

/** Bun ignores these two, and what is ignored stays so in the program that we become. */
function restoreSignals(): void {
  const libc = openLibc({ signal: { args: ['i32', 'u64'], returns: 'u64' } });
  for (const signal of [SIGPIPE, SIGXFSZ]) libc?.signal(signal, 0);
}

/**
 * Carries bytes from a stream to a sink to the end of either; a chunk at a time, so that whoever reads slowly slows
 * down whoever writes. When the sink's reader has gone, the source is closed, which its writer notices as it would
 * without us (C-270).
 *
 * @param through what to write for a chunk; must not throw
 */
export async function pump(
  from: ReadableStream<Uint8Array>,
  to: ByteSink,
  through: (chunk: Uint8Array) => Uint8Array,
): Promise<void> {
  const reader = from.getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const bytes = through(value);
      if (bytes.length > 0 && !(await to.write(bytes))) break;
    }
    await reader.cancel();
  } catch {
    // The source broke off: that is its end.
  }
}
