import { existsSync } from 'node:fs';
import { openGuard } from './children.ts';
import { identityFromProc } from './identity.ts';
import { isGroupEmpty, killTree } from './kill-tree.ts';
import { type Collected, collect, decode } from './output.ts';
import type {
  Environment,
  FailedToStart,
  KillReport,
  Platform,
  ProcessHost,
  ProcessIdentity,
  RunOptions,
  RunOutcome,
  RunResult,
} from './types.ts';
import { cmdLine, needsCmd } from './windows-command.ts';

/** Bytes kept of one stream when the caller names no other number. */
export const DEFAULT_KEEP_BYTES = 1024 * 1024;

/** How long the pipes may stay open after the child's end: only a process that we can't reach holds them. */
const DRAIN_MS = 1_000;

/** How a child is started on one system; made apart from the start, so that each system's form is tested. */
export interface SpawnPlan {
  readonly argv: readonly string[];
  /** POSIX: a session and group of its own, which can be ended as a whole (K2). Never on Windows (W5). */
  readonly detached: boolean;
  /** Windows: `detached` would make this ineffective and flash a console (W5). */
  readonly windowsHide: true;
  readonly windowsVerbatimArguments: boolean;
}

/** The plan for one child; null when an argument can't be passed safely to a `.cmd` file. */
export function spawnPlan(argv: readonly string[], platform: Platform, env: Environment): SpawnPlan | null {
  const [program] = argv;
  if (platform !== 'win32' || program === undefined || !needsCmd(program)) {
    return { argv, detached: platform !== 'win32', windowsHide: true, windowsVerbatimArguments: false };
  }
  const line = cmdLine(argv);
  if (line === null) return null;
  const shell = env['ComSpec'] ?? env['COMSPEC'] ?? 'cmd.exe';
  return {
    argv: [shell, '/d', '/s', '/c', `"${line}"`],
    detached: false,
    windowsHide: true,
    windowsVerbatimArguments: true,
  };
}

/**
 * Runs a program to its end and returns what it said. Own process group, stdin at its end unless given, never a
 * shell. The child, and everything that it left in its group, is ended by the time the promise resolves: TERM,
 * KILL after the grace, and proof (K1-K3); what could not be ended is in `survivors`. Resolves at the latest
 * `graceMs` and about three seconds after `timeoutMs`, whoever holds the pipes. Never throws and never rejects.
 */
export async function run(options: RunOptions): Promise<RunResult> {
  return runOn(options, systemHost);
}

/** This computer, for everything that takes a `ProcessHost`. */
export const systemHost: ProcessHost = {
  platform: process.platform,
  run,
  procRoot: '/proc',
  now: () => Date.now(),
  kill: (pid, signal) => {
    process.kill(pid, signal);
  },
};

/** The host with which the helpers of an ending (`ps`) are themselves ended: by their group alone. */
const withoutHelpers: ProcessHost = {
  ...systemHost,
  run: async () => ({ kind: 'failedToStart', reason: 'other', message: 'no helper program here' }),
};

async function runOn(options: RunOptions, host: ProcessHost): Promise<RunResult> {
  if (options.signal?.aborted) return notRun('aborted before the start');
  const guard = openGuard(host.platform);
  const stdin = options.stdin === undefined ? 'ignore' : bytesOf(options.stdin);
  const child = launch(options, stdin, host.platform);
  if ('kind' in child) {
    guard.release();
    return child;
  }
  guard.pid = child.pid;
  const identity = identityOf(child.pid, host);
  const limit = options.keepBytes ?? DEFAULT_KEEP_BYTES;
  const keep = options.keep ?? 'head';
  const stdout = collect(child.stdout, limit, keep, (chunk) => options.onOutput?.('stdout', chunk));
  const stderr = collect(child.stderr, limit, keep, (chunk) => options.onOutput?.('stderr', chunk));

  const kind = await firstOf(child.exited, options.timeoutMs, options.signal);
  const report = await endRest(kind, identity, options, host);
  await drain([stdout, stderr], child.exited);
  guard.release();
  return { kind, ...outcome(child, kind, [stdout, stderr], report.survivors) };
}

/** The three ways in which waiting for a child ends. */
async function firstOf(
  exited: Promise<unknown>,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<'exited' | 'timedOut' | 'aborted'> {
  const { promise, resolve } = Promise.withResolvers<'exited' | 'timedOut' | 'aborted'>();
  const timer = setTimeout(() => resolve('timedOut'), timeoutMs);
  const onAbort = (): void => resolve('aborted');
  signal?.addEventListener('abort', onAbort, { once: true });
  exited.then(() => resolve('exited'));
  const first = await promise;
  clearTimeout(timer);
  signal?.removeEventListener('abort', onAbort);
  return first;
}

async function endRest(
  kind: 'exited' | 'timedOut' | 'aborted',
  identity: ProcessIdentity,
  options: RunOptions,
  host: ProcessHost,
): Promise<KillReport> {
  const leftNothing = kind === 'exited' && (host.platform === 'win32' || isGroupEmpty(identity.pid, host));
  if (leftNothing || (kind === 'exited' && options.leaveBackground)) return { gone: true, survivors: [] };
  const graceMs = options.graceMs ?? 2_000;
  const helpers = { ...host, run: (inner: RunOptions) => runOn(inner, withoutHelpers) };
  return killTree(identity, { graceMs }, host === withoutHelpers ? host : helpers);
}

/**
 * Waits for the pipes' ends and for the exit code. The data of an ended child are read at once; only a foreign
 * holder of a pipe, or a child that can't be ended, takes longer.
 */
async function drain(streams: readonly Collected[], exited: Promise<unknown>): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, DRAIN_MS);
  await Promise.race([Promise.all([exited, ...streams.map((stream) => stream.done)]), late]);
  clearTimeout(timer);
  for (const stream of streams) stream.stop();
}

function outcome(
  child: Child,
  kind: 'exited' | 'timedOut' | 'aborted',
  [stdout, stderr]: readonly [Collected, Collected],
  survivors: readonly ProcessIdentity[],
): RunOutcome {
  const [out, err] = [stdout.bytes(), stderr.bytes()];
  const bytesSeen = stdout.seen() + stderr.seen();
  return {
    code: child.exitCode,
    signal: signalName(child),
    stdout: decode(out),
    stderr: decode(err),
    stdoutBytes: out,
    bytesSeen,
    timedOut: kind === 'timedOut',
    truncated: bytesSeen > out.byteLength + err.byteLength,
    survivors,
  };
}

/** Bun's types allow a number for signals that have no name here. */
function signalName(child: Pick<Child, 'signalCode'>): string | null {
  return child.signalCode === null ? null : String(child.signalCode);
}

type Child = Bun.Subprocess<'ignore' | 'pipe' | Uint8Array, 'pipe', 'pipe'>;

function launch<In extends 'ignore' | 'pipe' | Uint8Array>(
  options: Pick<RunOptions, 'argv' | 'env' | 'cwd'>,
  stdin: In,
  platform: Platform,
): Bun.Subprocess<In, 'pipe', 'pipe'> | FailedToStart {
  const env = options.env ?? process.env;
  if (options.argv.length === 0) return notRun('no program given');
  const plan = spawnPlan(options.argv, platform, env);
  if (plan === null)
    return { kind: 'failedToStart', reason: 'unsafeArgument', message: 'not for a .cmd file' };
  try {
    return Bun.spawn({
      cmd: [...plan.argv],
      env: { ...env },
      stdin,
      stdout: 'pipe',
      stderr: 'pipe',
      detached: plan.detached,
      windowsHide: plan.windowsHide,
      windowsVerbatimArguments: plan.windowsVerbatimArguments,
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
  } catch (error) {
    return failure(error, options.cwd);
  }
}

function failure(error: unknown, cwd: string | undefined): FailedToStart {
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  const reason = (): FailedToStart['reason'] => {
    if (code === 'ENOENT') return cwd !== undefined && !existsSync(cwd) ? 'noFolder' : 'notFound';
    if (code === 'ENOTDIR') return 'noFolder';
    if (code === 'EACCES' || code === 'EPERM') return 'notPermitted';
    if (code === 'E2BIG' || code === 'ENAMETOOLONG') return 'tooLong';
    return code === 'ERR_INVALID_ARG_VALUE' ? 'unsafeArgument' : 'other';
  };
  return { kind: 'failedToStart', reason: reason(), message };
}

function notRun(message: string): FailedToStart {
  return { kind: 'failedToStart', reason: 'other', message };
}

function bytesOf(input: string | Uint8Array): Uint8Array {
  return typeof input === 'string' ? new TextEncoder().encode(input) : input;
}

function identityOf(pid: number, host: ProcessHost): ProcessIdentity {
  const known = host.platform === 'linux' ? identityFromProc(pid, host.procRoot) : null;
  return known ?? { pid, startToken: null };
}

/** What to start for longer. */
export interface StartOptions extends Pick<RunOptions, 'argv' | 'env' | 'cwd'> {
  /** Bytes kept of the end of stderr, default 64 KiB. */
  readonly keepStderrBytes?: number;
  /** True for a child that is meant to outlive us; otherwise it is ended when we end. */
  readonly outlivesUs?: boolean;
}

/** A child that was started with `start`. */
export interface RunningChild {
  readonly kind: 'started';
  readonly identity: ProcessIdentity;
  /** Must be read to the end by the caller; the child blocks on a full pipe otherwise. */
  readonly stdout: ReadableStream<Uint8Array>;
  /** The last part of stderr so far. */
  readonly stderrTail: () => string;
  /** Writes to stdin and waits until the child's pipe took it; false when it no longer reads. Never throws. */
  readonly write: (data: string | Uint8Array) => Promise<boolean>;
  readonly closeInput: () => void;
  readonly exited: Promise<{ readonly code: number | null; readonly signal: string | null }>;
  /** Ends the child with all that it started, and says what is left (K1). */
  readonly end: (graceMs?: number) => Promise<KillReport>;
}

/** Starts a child that runs for long: own group, piped stdin and stdout, never a shell, never a console window. */
export function start(options: StartOptions): RunningChild | FailedToStart {
  const guard = openGuard(systemHost.platform);
  const child = launch(options, 'pipe', systemHost.platform);
  if ('kind' in child) {
    guard.release();
    return child;
  }
  if (options.outlivesUs) guard.release();
  guard.pid = child.pid;
  const identity = identityOf(child.pid, systemHost);
  const stderr = collect(child.stderr, options.keepStderrBytes ?? 64 * 1024, 'tail');
  child.exited.then(guard.release);
  return {
    kind: 'started',
    identity,
    stdout: child.stdout,
    stderrTail: () => decode(stderr.bytes()),
    // Bun's sink still takes bytes for a child that has ended.
    write: async (data) => !child.killed && child.exitCode === null && writeTo(child.stdin, data),
    closeInput: () => closeInput(child.stdin),
    exited: child.exited.then(() => ({ code: child.exitCode, signal: signalName(child) })),
    end: async (graceMs) => {
      const report = await killTree(identity, graceMs === undefined ? {} : { graceMs }, systemHost);
      // A child that is gone is only waiting to be collected; afterwards `exited` and `write` agree.
      if (report.gone) await child.exited;
      return report;
    },
  };
}

async function writeTo(sink: Bun.FileSink, data: string | Uint8Array): Promise<boolean> {
  try {
    await sink.write(data);
    await sink.flush();
    return true;
  } catch {
    // The child has closed its stdin or ended; its exit tells why.
    return false;
  }
}

function closeInput(sink: Bun.FileSink): void {
  try {
    Promise.resolve(sink.end()).catch(() => {
      // Closed already by the child's end.
    });
  } catch {
    // The same, reported at once.
  }
}

/** A child that goes on without us. */
export interface DetachedChild {
  readonly kind: 'started';
  readonly identity: ProcessIdentity;
  /** What it says while it starts. Once nobody reads it any more, it must not write. */
  readonly stdout: ReadableStream<Uint8Array>;
  readonly exited: Promise<{ readonly code: number | null; readonly signal: string | null }>;
  /** We no longer wait for it: our own end neither waits for it nor ends it. */
  readonly letGo: () => void;
}

/**
 * Starts a process of ours that outlives this one, in a session of its own: neither a closed terminal nor a Ctrl-C
 * reaches it. It gets `stdin` and its end, a pipe for what it says at its start, and no stderr. On Windows it is
 * detached, too, or the system would end it with us: it then has no console at all, and what it starts must be
 * started hidden (W5).
 */
export function startDetached(
  options: Pick<RunOptions, 'argv' | 'env' | 'cwd'> & { readonly stdin: string },
): DetachedChild | FailedToStart {
  try {
    const child = Bun.spawn({
      cmd: [...options.argv],
      env: { ...(options.env ?? process.env) },
      stdin: bytesOf(options.stdin),
      stdout: 'pipe',
      stderr: 'ignore',
      detached: true,
      windowsHide: true,
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
    return {
      kind: 'started',
      identity: identityOf(child.pid, systemHost),
      stdout: child.stdout,
      exited: child.exited.then(() => ({ code: child.exitCode, signal: signalName(child) })),
      letGo: () => child.unref(),
    };
  } catch (error) {
    return failure(error, options.cwd);
  }
}
