import type { HostSpec, Message, TurnSink } from '../../../runtime/control/driver.ts';
import { readLines } from '../../../runtime/control/stream-lines.ts';
import type { Refusal, TurnEnd } from '../../../runtime/control.ts';
import { CONTROL } from '../../../runtime/limits.ts';
import { start, systemHost } from '../../../runtime/process/spawn.ts';
import type { FailedToStart, KillReport, ProcessIdentity } from '../../../runtime/process/types.ts';
import type { ControlContext } from '../../adapter.ts';
import { objectOf, parseFields, textOf } from '../fields.ts';
import { type CodexProgram, findCodex } from './program.ts';
import { resumeCommand } from './words.ts';

/** A `codex exec resume` that runs one turn. */
export interface ExecRun {
  readonly identity: ProcessIdentity;
  readonly result: Promise<ExecResult>;
  /** SIGINT lets it end its turn on record; a process that does not leave is killed. */
  stop(): Promise<KillReport>;
  kill(): Promise<KillReport>;
}

export type ExecResult =
  | { readonly kind: 'done'; readonly end: TurnEnd }
  /** It ended before the turn began: the message is not in the session. */
  | { readonly kind: 'refused'; readonly reason: string };

export interface ExecOptions {
  readonly program: CodexProgram;
  readonly sessionId: string;
  /** Its turn runs in its own folder, not in the session's (CX §4). */
  readonly workDir: string;
  readonly message: Message;
  readonly sink: Pick<TurnSink, 'progress' | 'note'>;
  accepted(): void;
}

/** The command line: fixed words, the thread's whole id, and `-` for the prompt on stdin. */
export function execArguments(sessionId: string, model: string | undefined): readonly string[] {
  const chosen = model === undefined ? [] : [`--model=${model}`];
  return ['exec', 'resume', '--json', '--skip-git-repo-check', ...chosen, sessionId, '-'];
}

/**
 * Runs the turn with the program's own one-shot form, for a Codex without a usable app-server. It asks nothing, denies
 * what it would have to ask for, and leaves `never` with the thread. The text goes over its stdin.
 */
export function startExec(options: ExecOptions): ExecRun | FailedToStart {
  const { program, sessionId, workDir, message } = options;
  const child = start({
    argv: [program.path, ...execArguments(sessionId, message.model)],
    env: program.env,
    cwd: workDir,
  });
  if (child.kind !== 'started') return child;
  void child.write(message.text).then(() => child.closeInput());
  const state = {
    accepted: false,
    text: undefined as string | undefined,
    end: undefined as TurnEnd | undefined,
  };
  const take = (line: string): void => {
    const event = parseFields(line);
    switch (textOf(event, 'type')) {
      case 'turn.started':
        state.accepted = true;
        options.accepted();
        options.sink.progress('running');
        break;
      case 'item.completed': {
        const item = objectOf(event, 'item');
        const said = textOf(item, 'type') === 'agent_message' ? textOf(item, 'text') : undefined;
        if (said === undefined) break;
        state.text = said;
        options.sink.progress('running', said);
        break;
      }
      case 'item.started':
        options.sink.progress('tool', undefined, textOf(objectOf(event, 'item'), 'type') ?? 'tool');
        break;
      case 'turn.completed':
        state.end = { outcome: 'completed', ...(state.text === undefined ? {} : { text: state.text }) };
        break;
      case 'turn.failed':
        state.end = {
          outcome: 'failed',
          error: textOf(objectOf(event, 'error'), 'message') ?? 'Codex gives no reason',
        };
        break;
    }
  };
  const read = readLines(child.stdout, take);
  const result = Promise.all([child.exited, read]).then(([exit]): ExecResult => {
    const said = child.stderrTail().trim().split('\n').at(-1);
    if (!state.accepted) return { kind: 'refused', reason: said || `codex exec ended (${exit.code})` };
    const stopped: TurnEnd = { outcome: 'stopped', error: 'codex exec ended in the middle of the turn' };
    return { kind: 'done', end: { ...(state.end ?? stopped), exitCode: exit.code } };
  });
  return {
    identity: child.identity,
    result,
    async stop() {
      interrupt(child.identity);
      const timer = setTimeout(() => void child.end(CONTROL.ackMs), CONTROL.interruptMs / 2);
      await child.exited;
      clearTimeout(timer);
      return child.end(CONTROL.ackMs);
    },
    kill: () => child.end(CONTROL.ackMs),
  };
}

function interrupt({ pid }: ProcessIdentity): void {
  try {
    systemHost.kill(pid, 'SIGINT');
  } catch {
    // It has ended by itself.
  }
}

/** Finds the program and starts it for one message. Says first that nothing is asked and what stays. */
export async function beginExec(
  context: ControlContext,
  { session, workDir }: HostSpec,
  sink: TurnSink,
  message: Message,
): Promise<ExecRun | Refusal> {
  const program = await findCodex(context);
  if ('reason' in program) return program;
  const { sessionId } = session;
  const accepted = (): void =>
    sink.accepted(
      'codex exec has it; nothing is asked, what it would have to ask for is refused, and the approval policy “never” stays with the session',
      'process',
      resumeCommand(sessionId, workDir, context.platform),
    );
  const run = startExec({ program, sessionId, workDir, message, sink, accepted });
  if ('identity' in run) return run;
  const reason = `Codex could not be started: ${run.message}`;
  return { reason, kind: 'runtimeMissing', next: 'See: shadowob-connector runtime-scan' };
}
