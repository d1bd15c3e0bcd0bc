import { readdirSync, readFileSync } from 'node:fs';
import { until } from './until.ts';

/** A process of this world, as `/proc` shows it. */
export interface WorldProcess {
  readonly pid: number;
  readonly command: string;
}

/** Processes that carry a marker in their environment, helpers and daemons that inherited it included; no zombies. */
export function processesWith(marker: string): readonly WorldProcess[] {
  return everyProcess().filter((one) => environmentOf(one.pid).includes(`\0${marker}\0`));
}

/** Every process of this world but its first one and ourselves: what scenarios have left behind. */
export function strangers(): readonly WorldProcess[] {
  return everyProcess().filter((one) => one.pid !== 1 && one.pid !== process.pid && one.pid !== process.ppid);
}

/**
 * Ends processes by their ids: TERM, and KILL for what is still there. Asks again and again, since a program that ends
 * may start another. Throws with their command lines when some survive.
 */
export async function endAll(find: () => readonly WorldProcess[]): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const gone = await until(
      'the end of all processes',
      () => {
        const left = find();
        for (const one of left) send(one.pid, signal);
        return left.length === 0;
      },
      { timeoutMs: signal === 'SIGTERM' ? 3_000 : 10_000, everyMs: 100 },
    ).catch(() => false);
    if (gone) return;
  }
  throw new Error(`processes that can't be ended: ${JSON.stringify(find())}`);
}

/** Sends a signal to one process; one that has gone meanwhile is what a caller wants. */
export function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended between being listed and now.
  }
}

/** Whether a process runs; a zombie does not. */
export function runs(pid: number): boolean {
  return everyProcess().some((one) => one.pid === pid);
}

function everyProcess(): readonly WorldProcess[] {
  return readdirSync('/proc').flatMap((name) => {
    const pid = Number(name);
    const command = Number.isInteger(pid) ? commandOf(pid) : undefined;
    return command === undefined ? [] : [{ pid, command }];
  });
}

/** The command line; `undefined` for what has ended, a zombie included. */
function commandOf(pid: number): string | undefined {
  const stat = read(`/proc/${pid}/stat`);
  const state = stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3);
  if (state === '' || state === 'Z' || state === 'X') return undefined;
  return read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim();
}

function environmentOf(pid: number): string {
  return `\0${read(`/proc/${pid}/environ`)}`;
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // It ended between the listing and this look.
    return '';
  }
}
