import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readStreamLine, type StreamEvent } from '../../../../src/adapters/claude-code/control/stream.ts';
import { createTurnReader, type TurnStep } from '../../../../src/adapters/claude-code/control/turn.ts';
import { createLineSplitter } from '../../../../src/runtime/control/stream-lines.ts';

const RECORDINGS = resolve(import.meta.dir, '..', '..', '..', 'recordings', 'claude-code');

/** What a recorded program wrote, cut into chunks of a prime size so that lines and characters are torn. */
export function recordedEvents(scenario: string): StreamEvent[] {
  const bytes = readFileSync(join(RECORDINGS, scenario, 'stdout.jsonl'));
  const splitter = createLineSplitter();
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; at += 997) lines.push(...splitter.push(bytes.subarray(at, at + 997)));
  const rest = splitter.rest();
  return [...lines, ...(rest === undefined ? [] : [rest])].flatMap((line) => readStreamLine(line) ?? []);
}

/** How the recorded process ended, where it did so in the middle of a turn. */
export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** One message's way through a recorded stream, from the `turn`th begin of a turn on. */
export function replayTurn(scenario: string, options: { readonly uuid?: string; readonly exit?: Exit } = {}) {
  const events = recordedEvents(scenario);
  const reader = createTurnReader(options.uuid ?? 'a message without a trace in this recording');
  const steps: TurnStep[] = events.flatMap((event) => reader.read(event));
  const over = steps.some((step) => step.kind === 'end' || step.kind === 'refused');
  if (!over && options.exit) steps.push(reader.lost(options.exit, ''));
  return steps;
}
