import { createReporter } from '../../../runtime/daemon/reporter.ts';
import { WRAP } from '../../../runtime/limits.ts';
import {
  type ByteSink,
  exitCodeOf,
  exitCodeOfFailure,
  type PipedProgram,
  pump,
  startPiped,
} from '../../../runtime/process/in-place.ts';
import { type Diagnostics, LOG_VARIABLE, openDiagnostics } from './diagnostics.ts';
import { createObserver, type Observer } from './observer.ts';
import { createTee, type Side, type Tee } from './tee.ts';
import { createTitleRewriter, type TitleRewriter } from './title.ts';

/** Switches the title rewrite off (S-723). */
export const NO_TITLE_VARIABLE = 'SHADOWOB_CONNECTOR_CLAUDE_WRAP_NO_TITLE_REWRITE';

/** What the wrapper has of the outside world. */
export interface ClaudeWrapOptions {
  /** Program and arguments. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
  readonly pid: number;
  /** Address of the service. */
  readonly address: string;
  readonly stdin: ReadableStream<Uint8Array>;
  readonly stdout: ByteSink;
  /** Calls back for each signal that the program is to get, too. */
  onSignal(take: (signal: NodeJS.Signals) => void): void;
  /** One line for a person. */
  complain(line: string): void;
  /** Epoch milliseconds. */
  readonly now?: () => number;
  readonly keepAliveMs?: number;
}

/**
 * Runs Claude Code between its editor and its user's service: every byte goes through as it is (but for titles,
 * S-720), and a copy of it is listened to. Whatever fails in the listening stops the listening alone. Returns the
 * exit code to leave with; the reports, too, have been sent by then or have had their time (S-701 … S-706).
 */
export async function runClaudeWrap(options: ClaudeWrapOptions): Promise<number> {
  const signals: NodeJS.Signals[] = [];
  const relay = {
    take: (signal: NodeJS.Signals): void => {
      signals.push(signal);
    },
  };
  // Before the start: a signal that comes in between is for the program as well.
  options.onSignal((signal) => relay.take(signal));
  const program = startPiped(options);
  if (program.kind !== 'started') {
    options.complain(`${options.argv[0] ?? ''} can’t be started: ${program.message}`);
    return exitCodeOfFailure(program);
  }
  relay.take = (signal) => program.kill(signal);
  for (const signal of signals) program.kill(signal);

  const ear = listen(options, program);
  const output = pump(program.stdout, options.stdout, ear.fromClaude);
  // Not awaited: the editor may leave its side open for longer than the program lives.
  void pump(options.stdin, program.stdin, ear.fromEditor).finally(program.stdin.end);
  await output;
  await options.stdout.write(ear.rest());
  const end = await program.exited;
  await ear.finish(exitCodeOf(end));
  return exitCodeOf(end);
}

interface Ear {
  fromEditor(chunk: Uint8Array): Uint8Array;
  fromClaude(chunk: Uint8Array): Uint8Array;
  /** What the title rewrite still holds. */
  rest(): Uint8Array;
  finish(exitCode: number): Promise<void>;
}

const NOTHING = new Uint8Array();

/** Everything that listens, behind functions that never throw. */
function listen(options: ClaudeWrapOptions, program: PipedProgram): Ear {
  const now = options.now ?? Date.now;
  const { env, platform, pid } = options;
  const diagnostics = openDiagnostics({ path: env[LOG_VARIABLE], pid, now, platform });
  diagnostics?.record('start', { child_pid: program.pid });
  const title = /^(?:1|true|yes|on)$/i.test(env[NO_TITLE_VARIABLE]?.trim() ?? '')
    ? undefined
    : createTitleRewriter();
  const reporter = createReporter({
    address: options.address,
    done: (report, outcome) => observer.reported(report, outcome),
  });
  const observer: Observer = createObserver({
    childPid: program.pid,
    send: (report) => reporter.send(report),
    model(id) {
      const again = title?.setModel(id);
      if (again && again.length > 0) void options.stdout.write(again);
    },
    diagnostics,
  });
  const tee = createTee({ line: guarded(observer.line), idle: observer.idle });
  const timers = [
    setInterval(guarded(observer.keepAlive), options.keepAliveMs ?? WRAP.keepAliveMs),
    ...(diagnostics ? [setInterval(() => observer.summary(tee.counts, 'summary'), WRAP.summaryMs)] : []),
  ];
  return {
    fromEditor: hear('editor', tee, undefined),
    fromClaude: hear('claude', tee, title),
    rest: () => title?.flush() ?? NOTHING,
    async finish(exitCode) {
      for (const timer of timers) clearInterval(timer);
      guarded(tee.close)();
      observer.end();
      await reporter.finish();
      await tell(diagnostics, observer, tee, exitCode, program.pid);
    },
  };
}

function hear(side: Side, tee: Tee, title: TitleRewriter | undefined): (chunk: Uint8Array) => Uint8Array {
  const push = guarded((chunk: Uint8Array) => tee.push(side, chunk));
  return (chunk) => {
    // Copied before it is changed: titles are no part of what is listened to.
    push(chunk);
    return title?.push(chunk) ?? chunk;
  };
}

/** A function whose first failure is its last call: a defect of ours must not reach the conversation (S-702). */
function guarded<Args extends readonly unknown[]>(run: (...args: Args) => void): (...args: Args) => void {
  const state = { broken: false };
  return (...args) => {
    if (state.broken) return;
    try {
      run(...args);
    } catch {
      // Nobody to tell: stderr is the program's, and the conversation goes on.
      state.broken = true;
    }
  };
}

async function tell(
  diagnostics: Diagnostics | undefined,
  observer: Observer,
  tee: Tee,
  exitCode: number,
  childPid: number,
): Promise<void> {
  observer.summary(tee.counts, 'final_summary');
  diagnostics?.record('exit', { child_pid: childPid, exit_code: exitCode });
  await diagnostics?.finish();
}
