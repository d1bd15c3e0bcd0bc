import { realpathSync } from 'node:fs';
import { listProcesses } from '../../runtime/process/table.ts';
import type { ProcessHost } from '../../runtime/process/types.ts';
import { entryOf, isProcessOf } from '../catalog.ts';
import { RUNTIME_ID } from './homes.ts';

/** A running pi. */
export interface PiProcess {
  readonly pid: number;
  /** Epoch milliseconds; absent when the system does not tell. */
  readonly startedAt?: number;
  readonly cwd?: string;
}

export interface PiProcesses {
  readonly processes: readonly PiProcess[];
  /** The system's list could be had, so that nobody else runs. */
  readonly certain: boolean;
}

/** Whether a process still works on an open turn: no lock and no pid file of pi's says so (pi 1.6.0). */
export type Verdict =
  | { readonly life: 'alive'; readonly pid: number }
  | { readonly life: 'dead' }
  | { readonly life: 'unknown' };

/** Time that the start of a process may be off, milliseconds. */
const CLOCK_SLACK_MS = 1_000;

/** The running pi processes. On Linux it reads `/proc`; elsewhere programs are asked, so only for an open turn. */
export async function findPi(host: ProcessHost): Promise<PiProcesses> {
  const entry = entryOf(RUNTIME_ID);
  if (!entry) return { processes: [], certain: false };
  const table = await listProcesses({ where: (row) => isProcessOf(entry, row), withCwd: true }, host);
  return {
    processes: table.rows.map(({ pid, startedAt, cwd }) => ({
      pid,
      ...(startedAt === null ? {} : { startedAt }),
      ...(cwd ? { cwd } : {}),
    })),
    // A pi whose arguments are hidden from us is not in the list.
    certain: table.complete && table.unreadable === 0,
  };
}

/**
 * Alive: exactly one pi runs in the session's folder and began before the turn's last write. Dead only when no pi that
 * could have written it runs at all. Two in one folder can't be told apart (R-19 for OpenCode, by the same reasons).
 */
export function judgePi(
  { processes, certain }: PiProcesses,
  turn: { readonly lastWriteAt: number; readonly directory?: string },
): Verdict {
  const possible = processes.filter(({ startedAt }) => (startedAt ?? 0) <= turn.lastWriteAt + CLOCK_SLACK_MS);
  if (possible.length === 0) return { life: certain ? 'dead' : 'unknown' };
  const here = possible.filter(
    ({ cwd, startedAt }) => startedAt !== undefined && isSame(cwd, turn.directory),
  );
  const [only, second] = here;
  return only && !second ? { life: 'alive', pid: only.pid } : { life: 'unknown' };
}

function isSame(cwd: string | undefined, directory: string | undefined): boolean {
  if (cwd === undefined || directory === undefined) return false;
  return cwd === directory || cwd === realPath(directory);
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // Gone, or not ours to enter: compared as it is written.
    return path;
  }
}
