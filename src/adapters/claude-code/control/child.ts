import { once, readLines, within } from '../../../runtime/control/stream-lines.ts';
import { CONTROL } from '../../../runtime/limits.ts';
import { killTree } from '../../../runtime/process/kill-tree.ts';
import { start, systemHost } from '../../../runtime/process/spawn.ts';
import type { FailedToStart, KillReport, ProcessIdentity } from '../../../runtime/process/types.ts';
import { readStreamLine, type StreamEvent } from './stream.ts';

/** How a child ended. */
export interface ChildExit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** A running `claude` that takes lines. */
export interface ClaudeChild {
  readonly identity: ProcessIdentity;
  /** Writes one value as one whole line: half a line, or one that is no JSON, ends the program (`s-bad-input`). */
  send(value: unknown): Promise<boolean>;
  /** Resolves when it has exited and its last line was handed on. */
  readonly exited: Promise<ChildExit>;
  readonly stderr: () => string;
  /** Lets it leave by itself: the turn and work in the background are finished first. Then TERM, KILL, proof. */
  leave(limitMs: number): Promise<KillReport>;
  kill(): Promise<KillReport>;
}

export interface ChildOptions {
  readonly argv: readonly string[];
  readonly env: Record<string, string>;
  readonly cwd: string;
  onEvent(event: StreamEvent): void;
}

/** Starts one. Its lines come in order, also after its end. */
export function startChild(options: ChildOptions): ClaudeChild | FailedToStart {
  const child = start(options);
  if (child.kind !== 'started') return child;
  const read = readLines(child.stdout, (line) => {
    for (const event of readStreamLine(line) ?? []) options.onEvent(event);
  });
  const exited = Promise.all([child.exited, within(read, CONTROL.ackMs)]).then(([exit]) => exit);
  const end = once(() => child.end(CONTROL.ackMs));
  return {
    identity: child.identity,
    send: (value) => child.write(`${JSON.stringify(value)}\n`),
    exited,
    stderr: child.stderrTail,
    async leave(limitMs) {
      child.closeInput();
      const left = await within(child.exited, limitMs);
      if (left === undefined) return end();
      // It may have left something in its group, which nobody would look after (K3).
      return killTree(child.identity, {}, systemHost);
    },
    kill: end,
  };
}
