import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { ConnectorError, EXIT } from '../runtime/errors.ts';
import { errorCode } from '../runtime/files/file-system.ts';
import type { Answer, EventLine } from './command.ts';
import { logPathIn } from './daemon-log-path.ts';
import type { World } from './world.ts';

/** Lines shown unless asked otherwise (S-342), the most that may be asked for, and the bytes looked at. */
const DEFAULT_LINES = 200;
const MAX_LINES = 100_000;
const TAIL_BYTES = 8 * 1024 * 1024;
/** How often a followed log is looked at, milliseconds. */
const FOLLOW_MS = 250;

export interface LogOptions {
  readonly lines: string | undefined;
  readonly follow: boolean;
}

/** The end of the daemon's log; needs no daemon (S-342). */
export function showLogs(world: World, home: string, options: LogOptions): Answer {
  const path = logPathIn(home);
  const count = readCount(options.lines);
  if (sizeOf(path) === undefined && !options.follow) {
    throw new ConnectorError('notFound', `there is no log yet: ${path}`, 'shadowob-connector daemon start');
  }
  return {
    kind: 'events',
    async *lines() {
      const end = sizeOf(path) ?? 0;
      for (const line of readTail(path, count)) yield event(line);
      if (options.follow) yield* follow(path, end, world.signal);
    },
    outcome: () => ({ exitCode: EXIT.ok }),
  };
}

function readCount(text: string | undefined): number {
  if (text === undefined) return DEFAULT_LINES;
  const count = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  if (count <= MAX_LINES) return count;
  throw new ConnectorError('badValue', `-n: "${text}" is no number of lines`, `At most ${MAX_LINES}.`);
}

function event(line: string): EventLine {
  return { data: { line }, text: () => ({ out: line }) };
}

/** The last lines of a log, oldest first; none when there is no such file. */
export function readTail(path: string, count: number): readonly string[] {
  const size = sizeOf(path) ?? 0;
  const from = Math.max(0, size - TAIL_BYTES);
  const lines = readFrom(path, from).text.split('\n');
  // The first may be the end of a line that was cut, the last is what follows the last line's end.
  const whole = (from > 0 ? lines.slice(1) : lines).filter((line) => line !== '');
  return count === 0 ? [] : whole.slice(-count);
}

/** What is written from now on. A log that has become shorter was truncated or begun anew: from its start (S-342). */
async function* follow(path: string, start: number, signal: AbortSignal): AsyncIterable<EventLine> {
  const state = { at: start, rest: '' };
  while (!signal.aborted) {
    await Bun.sleep(FOLLOW_MS);
    const size = sizeOf(path) ?? 0;
    if (size < state.at) Object.assign(state, { at: 0, rest: '' });
    if (size === state.at) continue;
    const { text, end } = readFrom(path, state.at);
    const lines = (state.rest + text).split('\n');
    state.rest = lines.pop() ?? '';
    state.at = end;
    for (const line of lines) yield event(line);
  }
}

function sizeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.size;
}

function readFrom(path: string, from: number): { readonly text: string; readonly end: number } {
  try {
    const fd = openSync(path, 'r');
    try {
      const bytes = Buffer.alloc(Math.max(0, Math.min(fstatSync(fd).size - from, TAIL_BYTES)));
      const read = readSync(fd, bytes, 0, bytes.length, from);
      return { text: bytes.toString('utf8', 0, read), end: from + read };
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    // Rotated away at this moment: the next look finds the new one.
    if (errorCode(error) === 'ENOENT') return { text: '', end: 0 };
    throw error;
  }
}
