import type { WatchEvent } from '../../../src/commands/events.ts';
import type { PublicState } from '../../../src/runtime/session/project.ts';
import { compiledBinary } from '../../helpers/binary.ts';
import { until } from './until.ts';

/** A running `runtime-watch --json`. */
export interface Watch {
  /** Every event so far, oldest first. */
  readonly events: readonly WatchEvent[];
  /** The states that a session went through, each change once. */
  statesOf(sessionId: string): readonly string[];
  /** Waits until the last state of a session is this one. */
  says(sessionId: string, state: PublicState): Promise<void>;
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
  return {
    events,
    statesOf,
    says: async (sessionId, state) => {
      await until(`runtime-watch to say ${state}`, () => statesOf(sessionId).at(-1) === state, {
        explain: () => events.map((event) => JSON.stringify(event)).join('\n'),
      });
    },
    async stop() {
      if (child.exitCode === null) child.kill('SIGINT');
      const code = await child.exited;
      await ended;
      if (code !== 0 && code !== 130) throw new Error(`runtime-watch left with ${code}: ${await errors}`);
    },
  };
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
