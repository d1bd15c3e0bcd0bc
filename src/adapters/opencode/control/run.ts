import { createLineSplitter } from '../../../runtime/control/stream-lines.ts';
import type { TurnEnd } from '../../../runtime/control.ts';
import { type RunningChild, start } from '../../../runtime/process/spawn.ts';
import type { FailedToStart, KillReport, ProcessIdentity } from '../../../runtime/process/types.ts';
import { readRunOutput } from '../run-output.ts';
import { objectOf, parseJson, textOf } from '../values.ts';
import type { OpencodeProgram } from './program.ts';

export interface RunOrder {
  readonly program: OpencodeProgram;
  readonly sessionId: string;
  readonly directory: string;
  readonly model?: string;
  /** Goes to stdin, whole: 1.18.33 reads it there when no message is an argument. */
  readonly text: string;
  /** A line of the session's has come: the program works on it. */
  accepted(): void;
  progress(doing: 'running' | 'tool', text?: string, tool?: string): void;
}

/** A running `opencode run`. */
export interface OpencodeRun {
  readonly identity: ProcessIdentity;
  /** How it ended; `accepted` false with the program's own words where it never began. */
  readonly result: Promise<
    | { readonly kind: 'done'; readonly end: TurnEnd }
    | { readonly kind: 'refused'; readonly reason: string; readonly unknownSession: boolean }
  >;
  /** Ends it. OpenCode has no way to stop such a turn in order: its rows keep an unfinished answer. */
  kill(): Promise<KillReport>;
}

/**
 * One turn by `opencode run --session ID --format json` (1.18.33). It asks nobody: what its settings would ask for, it
 * refuses by itself, and exits 0 all the same (M6). Questions it does not answer either.
 */
export function startRun(order: RunOrder): OpencodeRun | FailedToStart {
  const { program, sessionId, directory, model, text } = order;
  const child = start({
    argv: [
      program.path,
      'run',
      '--session',
      sessionId,
      '--format',
      'json',
      ...(model === undefined ? [] : ['--model', model]),
    ],
    env: program.env,
    cwd: directory,
  });
  if (child.kind !== 'started') return child;
  const state = { killed: false };
  const result = follow(child, order, state);
  void child.write(text).then(() => child.closeInput());
  return {
    identity: child.identity,
    result,
    kill() {
      state.killed = true;
      return child.end();
    },
  };
}

async function follow(
  child: RunningChild,
  order: RunOrder,
  state: { readonly killed: boolean },
): ReturnType<() => OpencodeRun['result']> {
  const rows: Readonly<Record<string, unknown>>[] = [];
  const texts: string[] = [];
  const take = (line: string): void => {
    const row = objectOf(parseJson(line));
    if (row?.['sessionID'] !== order.sessionId) return;
    if (rows.length === 0) order.accepted();
    rows.push(slim(row));
    const part = objectOf(row['part']);
    const said = row['type'] === 'text' ? textOf(part?.['text']) : undefined;
    if (said !== undefined) texts.push(said);
    const tool = row['type'] === 'tool_use' ? textOf(part?.['tool']) : undefined;
    if (tool !== undefined) order.progress('tool', undefined, tool);
    else if (said !== undefined) order.progress('running', said);
  };
  await readLines(child, take);
  const exit = await child.exited;
  const said = lastLine(child.stderrTail());
  if (rows.length === 0) {
    const reason = said || `it ended with ${exit.code ?? exit.signal ?? 'no code'} before it began`;
    return { kind: 'refused', reason, unknownSession: /session not found/i.test(reason) };
  }
  const text = texts.at(-1);
  const about = { ...(text === undefined ? {} : { text }), exitCode: exit.code };
  if (state.killed || exit.signal !== null || (exit.code ?? 0) > 128) {
    const error = 'opencode run was ended in the middle of the turn';
    const notes = ['its history keeps an answer without an end: OpenCode writes none when it is ended'];
    return { kind: 'done', end: { ...about, outcome: 'stopped', error, notes } };
  }
  const { outcome, error } = readRunOutput(rows, exit.code ?? 1);
  const refused = /auto-rejecting/.test(child.stderrTail());
  const atRefusal = refused || said === '' ? 'the turn ended at a refused tool call' : said;
  const words = error ?? (outcome === 'completed' ? undefined : atRefusal);
  const notes = refused ? { notes: ['it refused by itself what its settings would have asked for'] } : {};
  return { kind: 'done', end: { ...about, outcome, ...(words ? { error: words } : {}), ...notes } };
}

/** What the outcome is read from: a tool's whole output is not kept. */
function slim(row: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const reason = objectOf(row['part'])?.['reason'];
  return {
    type: row['type'],
    sessionID: row['sessionID'],
    ...(row['error'] === undefined ? {} : { error: row['error'] }),
    ...(reason === undefined ? {} : { part: { reason } }),
  };
}

async function readLines(child: RunningChild, take: (line: string) => void): Promise<void> {
  const lines = createLineSplitter();
  try {
    for await (const chunk of child.stdout) for (const line of lines.push(chunk)) take(line);
  } catch {
    // The pipe broke: the exit tells the rest.
  }
  const rest = lines.rest();
  if (rest !== undefined) take(rest);
}

/** Without colours: it writes them although nobody sees them. */
function lastLine(text: string): string {
  const plain = Bun.stripANSI(text).split('\n');
  return plain.map((line) => line.trim()).findLast((line) => line !== '') ?? '';
}
