import type { WatchEvent } from '../../../src/commands/events.ts';
import { compiledBinary } from '../../helpers/binary.ts';
import { until } from './until.ts';

/** A running `runtime-watch --json`. */
export interface Watch {
  /** Every event so far, oldest first. */
  readonly events: readonly WatchEvent[];
  /** The states that a session went through, each change once. */
  statesOf(sessionId: string): readonly string[];
  /** Throws unless the session went this way and no other, as `isPath` says; waits for its last state first. */
  went(sessionId: string, ...path: readonly string[]): Promise<void>;
  /** Waits until the last state of a session is this one. */
  says(sessionId: string, state: string): Promise<void>;
  /** Ends it as a person does, with Ctrl-C's signal; throws unless it leaves with 0 or 130. */
  stop(): Promise<void>;
}

export interface WatchOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly args: readonly string[];
}

/** Starts the watch and waits for its first event, the snapshot. */
export async function startWatch(options: WatchOptions): Promise<Watch> {
  const child = Bun.spawn([await compiledBinary(), 'runtime-watch', '--json', ...options.args], {
    cwd: options.cwd,
    env: options.env,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const events: WatchEvent[] = [];
  const ended = readLines(child.stdout, (line) => events.push(JSON.parse(line)));
  const errors = new Response(child.stderr).text();
  await until('the first event of runtime-watch', () => events.length > 0 || child.exitCode !== null);
  if (child.exitCode !== null) throw new Error(`runtime-watch ended: ${await errors}`);
  const statesOf = (sessionId: string) => collapse(events.flatMap((event) => stateIn(event, sessionId)));
  const explain = () => events.map((event) => JSON.stringify(event)).join('\n');
  const says = async (sessionId: string, state: string) => {
    await until(`runtime-watch to say ${state}`, () => statesOf(sessionId).at(-1) === state, { explain });
  };
  return {
    events,
    statesOf,
    says,
    async went(sessionId, ...path) {
      await says(sessionId, path.at(-1) ?? '');
      const states = statesOf(sessionId);
      if (!isPath(states, path)) throw new Error(`went ${states.join(', ')}\n${explain()}`);
    },
    async stop() {
      if (child.exitCode === null) child.kill('SIGINT');
      const code = await child.exited;
      await ended;
      if (code !== 0 && code !== 130) throw new Error(`runtime-watch left with ${code}: ${await errors}`);
    },
  };
}

/**
 * Whether states are a path's, one after the other and nothing else between. A step that ends in `?` is one that
 * passes so fast that it may be missed.
 */
export function isPath(states: readonly string[], path: readonly string[]): boolean {
  const steps = path.map((step) => (step.endsWith('?') ? `(?: ${step.slice(0, -1)})?` : ` ${step}`));
  return new RegExp(`^${steps.join('')}$`).test(states.map((state) => ` ${state}`).join(''));
}

function stateIn(event: WatchEvent, sessionId: string): string[] {
  if (event.type === 'snapshot') {
    return event.snapshot.sessions.filter((row) => row.sessionId === sessionId).map((row) => row.state);
  }
  return event.sessionId === sessionId ? [event.state] : [];
}

function collapse(states: readonly string[]): readonly string[] {
  return states.filter((state, index) => state !== states[index - 1]);
}

async function readLines(stream: ReadableStream<Uint8Array>, take: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  const rest = { text: '' };
  for await (const bytes of stream) {
    const lines = (rest.text + decoder.decode(bytes, { stream: true })).split('\n');
    rest.text = lines.pop() ?? '';
    for (const line of lines) if (line !== '') take(line);
  }
}
