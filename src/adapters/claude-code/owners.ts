import { readlinkSync } from 'node:fs';
import { uptime } from 'node:os';
import {
  identityFromProc,
  isAlive,
  PS_ENVIRONMENT,
  startFromLstart,
} from '../../runtime/process/identity.ts';
import type { ProcessHost } from '../../runtime/process/types.ts';
import type { LiveFile, OwnerLife } from './live-file.ts';

/** Judges the writers of live files: who runs, who is gone, who can't be told. */
export type OwnerJudge = (files: readonly LiveFile[]) => Promise<ReadonlyMap<LiveFile, OwnerLife>>;

/** How much later than its own file a process may seem to have started, milliseconds: the clocks are coarse. */
const START_SLACK_MS = 2_000;
const PS_MS = 5_000;

/**
 * The judge of this computer (R-16, S14). Linux compares the start of the pid's process with the file's
 * `procStart`; macOS asks `ps` once for all pids; Windows has no cheap way to a start time, so a pid counts
 * that lives and whose file was written since the system started.
 */
export function ownerJudge(host: ProcessHost): OwnerJudge {
  if (host.platform === 'linux') return async (files) => mapOf(files, (file) => judgeOnLinux(file, host));
  if (host.platform === 'win32') return async (files) => mapOf(files, (file) => judgeOnWindows(file, host));
  return (files) => judgeWithPs(files, host);
}

function mapOf(
  files: readonly LiveFile[],
  judge: (file: LiveFile) => OwnerLife,
): ReadonlyMap<LiveFile, OwnerLife> {
  return new Map(files.map((file) => [file, judge(file)]));
}

function judgeOnLinux(file: LiveFile, host: ProcessHost): OwnerLife {
  if (isElsewhere(file.pidDomain, host.procRoot)) return 'unknown';
  const running = identityFromProc(file.pid, host.procRoot);
  return running?.startToken === file.procStart ? 'alive' : 'dead';
}

/** A home that is shared with a container holds files whose pids count in another namespace. */
function isElsewhere(pidDomain: string | undefined, procRoot: string): boolean {
  const theirs = pidDomain && /pid:\[\d+\]/.exec(pidDomain)?.[0];
  if (!theirs) return false;
  try {
    return readlinkSync(`${procRoot}/self/ns/pid`) !== theirs;
  } catch {
    // A system without namespaces in /proc has only one.
    return false;
  }
}

function judgeOnWindows(file: LiveFile, host: ProcessHost): OwnerLife {
  const bootedAt = host.now() - uptime() * 1_000;
  const fromThisBoot = file.startedAt === undefined || file.startedAt >= bootedAt - START_SLACK_MS;
  return fromThisBoot && isAlive(file.pid, host) ? 'alive' : 'dead';
}

async function judgeWithPs(
  files: readonly LiveFile[],
  host: ProcessHost,
): Promise<ReadonlyMap<LiveFile, OwnerLife>> {
  const candidates = files.filter((file) => isAlive(file.pid, host));
  if (candidates.length === 0) return mapOf(files, () => 'dead');
  const pids = candidates.map((file) => file.pid).join(',');
  const result = await host.run({
    argv: ['ps', '-o', 'pid=,state=,lstart=', '-p', pids],
    env: PS_ENVIRONMENT,
    timeoutMs: PS_MS,
  });
  // `ps` exits with 1 when one of the pids is gone; what it printed about the others stands.
  const rows = result.kind === 'exited' ? parsePs(result.stdout) : undefined;
  return mapOf(files, (file) => {
    if (!candidates.includes(file)) return 'dead';
    if (!rows) return 'unknown';
    const row = rows.get(file.pid);
    return row && !row.zombie && isSameStart(file, row) ? 'alive' : 'dead';
  });
}

interface PsRow {
  readonly zombie: boolean;
  readonly startToken: string | null;
  readonly startedAt: number | null;
}

function parsePs(text: string): ReadonlyMap<number, PsRow> {
  return new Map(
    text.split('\n').flatMap((line): [number, PsRow][] => {
      const [, pid, state, lstart] = /^\s*(\d+)\s+(\S+)\s+(.+?)\s*$/.exec(line) ?? [];
      if (!pid || !state || !lstart) return [];
      return [[Number(pid), { zombie: state.startsWith('Z'), ...startFromLstart(lstart) }]];
    }),
  );
}

/** The form of `procStart` on macOS was not seen: equal text is proof, else the process is not younger than its file. */
function isSameStart(file: LiveFile, row: PsRow): boolean {
  if (row.startToken === file.procStart) return true;
  if (row.startedAt === null || file.startedAt === undefined) return true;
  return row.startedAt <= file.startedAt + START_SLACK_MS;
}
