/** Measures the resident daemon: its size and its rest, from an appended line to a frame, and hooks beside it. */
import { appendFileSync, readdirSync, readFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';

export interface DaemonNumbers {
  readonly rssMb: number;
  /** Percent of one core. */
  readonly cpu: number;
  readonly latenciesMs: readonly number[];
}

export interface RunningDaemon {
  readonly pid: number;
  stop(): void;
}

/** Starts the compiled daemon and waits until it serves. */
export async function startBenchDaemon(
  binary: string,
  env: Readonly<Record<string, string>>,
): Promise<RunningDaemon> {
  const child = Bun.spawn([binary, 'daemon', 'run', '--json'], {
    env: { ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'ignore',
  });
  const first = await child.stdout.getReader().read();
  if (first.done) throw new Error('the daemon did not start');
  return { pid: child.pid, stop: () => child.kill() };
}

/** Time on a processor of all threads so far, milliseconds (Linux). */
function cpuMs(pid: number): number {
  const tasks = readdirSync(`/proc/${pid}/task`);
  const nanos = tasks.map((task) =>
    Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]),
  );
  return nanos.reduce((sum, one) => sum + one, 0) / 1e6;
}

/** What it takes while nothing happens. `warmMs`: the compiler's own work after a start is not its rest. */
export async function measureRest(
  pid: number,
  warmMs: number,
  forMs: number,
): Promise<Pick<DaemonNumbers, 'rssMb' | 'cpu'>> {
  await Bun.sleep(warmMs);
  const before = cpuMs(pid);
  await Bun.sleep(forMs);
  const cpu = ((cpuMs(pid) - before) / forMs) * 100;
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return { cpu, rssMb: Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1_000 };
}

/** Appends titles to a transcript, one after the other's frame, and says how long each frame took. */
export async function measureFrames(
  socketPath: string,
  transcript: string,
  id: string,
  count: number,
): Promise<readonly number[]> {
  const socket = createConnection({ path: socketPath });
  const state = { text: '', wake: () => {} };
  socket.on('data', (chunk: Buffer) => {
    state.text += chunk.toString('utf8');
    state.wake();
  });
  socket.write('{"service":"connector","op":"subscribe"}\n');
  const seen = async (word: string): Promise<void> => {
    while (!state.text.includes(word)) await new Promise<void>((resolve) => (state.wake = resolve));
    state.text = '';
  };
  await seen(id);
  const latencies: number[] = [];
  for (let i = 0; i < count; i += 1) {
    await Bun.sleep(100 + (i % 7) * 13);
    const title = `bench title number ${i} of many`;
    const began = performance.now();
    appendFileSync(
      transcript,
      `${JSON.stringify({ type: 'custom-title', customTitle: title, sessionId: id })}\n`,
    );
    await seen(title);
    latencies.push(performance.now() - began);
  }
  socket.destroy();
  return latencies.sort((a, b) => a - b);
}

/** The newest transcript of a home, and its session's id. */
export function someTranscript(home: string): { readonly path: string; readonly id: string } {
  const projects = join(home, '.claude', 'projects');
  const [project = ''] = readdirSync(projects);
  const name = readdirSync(join(projects, project)).find((file) => file.endsWith('.jsonl')) ?? '';
  return { path: join(projects, project, name), id: name.replace('.jsonl', '') };
}
