/**
 * The shapes that everything about processes shares. They lie apart from the code so that reading the
 * process table, ending a tree and starting a child can use one another without importing in a circle.
 */

/** Node's platform names; injected everywhere, so that each system's variant is tested on any of them. */
export type Platform = NodeJS.Platform;

/** An environment; a key with the value `undefined` is absent. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * One process for all time: a pid alone is reused, a pid with the moment of its start is not (D1, S14, S-641).
 * `startToken` is opaque and only compared for equality: on Linux field 22 of `/proc/<pid>/stat` (ticks since
 * boot, the form in which Claude Code and Hermes write it too), on macOS the UTC text of `ps -o lstart=`
 * (one second), on Windows the creation time. It is null where the system did not tell.
 */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startToken: string | null;
}

/** What to run. All times are milliseconds, all sizes bytes. */
export interface RunOptions {
  /** Program and arguments; never a shell line. */
  readonly argv: readonly string[];
  /** The whole environment of the child, nothing is added; default: ours. */
  readonly env?: Environment;
  readonly cwd?: string;
  /** Text or bytes for the child's stdin; absent: stdin is at its end from the start (V2). */
  readonly stdin?: string | Uint8Array;
  /** When the child is ended. There is no way to run without a limit. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** Bytes kept of each of stdout and stderr, default 1 MiB; what is beyond is read, counted and dropped. */
  readonly keepBytes?: number;
  /** Which end of an output beyond `keepBytes` is kept; default `head`. */
  readonly keep?: 'head' | 'tail';
  /** From TERM to KILL, default 2,000. */
  readonly graceMs?: number;
  /**
   * What a child leaves running in its group when it exits by itself is ended too, because nobody would look
   * after it (K3). Set this for installers, whose background services are wanted.
   */
  readonly leaveBackground?: boolean;
  /** Sees all output as it comes, also what isn't kept. */
  readonly onOutput?: (stream: 'stdout' | 'stderr', chunk: Uint8Array) => void;
}

/** What a child that was started has left behind. */
export interface RunOutcome {
  /** Exit code; null when a signal ended it, or when it is not known to have ended. */
  readonly code: number | null;
  readonly signal: string | null;
  /** Decoded as UTF-8 with replacement characters; the bytes are in `stdoutBytes`. */
  readonly stdout: string;
  readonly stderr: string;
  readonly stdoutBytes: Uint8Array;
  /** Bytes written on both streams, kept or not. */
  readonly bytesSeen: number;
  readonly timedOut: boolean;
  /** Some output isn't in `stdout` and `stderr`. */
  readonly truncated: boolean;
  /** Processes of the child that could not be ended (K1); empty when all are proven gone. */
  readonly survivors: readonly ProcessIdentity[];
}

/** Why a child never ran. */
export interface FailedToStart {
  readonly kind: 'failedToStart';
  readonly reason: 'notFound' | 'notPermitted' | 'noFolder' | 'tooLong' | 'unsafeArgument' | 'other';
  /** The system's own words, for a log. */
  readonly message: string;
}

/** The result of a run; nothing about the child is ever thrown. */
export type RunResult =
  | ({ readonly kind: 'exited' } & RunOutcome)
  | ({ readonly kind: 'timedOut' } & RunOutcome)
  | ({ readonly kind: 'aborted' } & RunOutcome)
  | FailedToStart;

/** Something that runs a command: `run` of `spawn.ts`, or captured text in a test. */
export type CommandRunner = (options: RunOptions) => Promise<RunResult>;

/** The parts of the system that process code touches. */
export interface ProcessHost {
  readonly platform: Platform;
  readonly run: CommandRunner;
  /** Where Linux shows its processes: `/proc`. */
  readonly procRoot: string;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** `process.kill`: throws an error with `code` ESRCH or EPERM. Negative pids are groups. */
  readonly kill: (pid: number, signal: NodeJS.Signals | 0) => void;
}

/** What is left after an attempt to end processes. `gone` is true only when that was seen. */
export interface KillReport {
  readonly gone: boolean;
  readonly survivors: readonly ProcessIdentity[];
}
