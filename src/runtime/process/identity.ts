import { isZombie, readBootClock, readProcStat } from './proc-stat.ts';
import type { ProcessHost, ProcessIdentity } from './types.ts';

/** How long a helper program (`ps`, PowerShell) may take to tell about one process. */
const LOOKUP_MS = 5_000;

/** The environment in which `ps` prints times that can be compared: English, and without a time zone. */
export const PS_ENVIRONMENT = { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/bin:/bin' } as const;

/** A process as it is now, with its start in epoch milliseconds where the system tells. */
export interface LiveProcess extends ProcessIdentity {
  /** For "started before"; never for equality. Null when not known. */
  readonly startedAt: number | null;
}

/**
 * Whether a process with this pid runs (S-640). Signal 0; EPERM means that it exists and isn't ours. A pid of
 * 1 or below is never probed: 0 and -1 address groups, and 1 is never an agent. On Linux a zombie counts as
 * ended, because nothing collects it in a container without an init.
 */
export function isAlive(
  pid: number,
  host: Pick<ProcessHost, 'platform' | 'procRoot' | 'kill'> = thisHost,
): boolean {
  if (!Number.isInteger(pid) || pid <= 1) return false;
  try {
    host.kill(pid, 0);
  } catch (error) {
    if (!isErrorWithCode(error, 'EPERM')) return false;
  }
  if (host.platform !== 'linux') return true;
  const stat = readProcStat(pid, host.procRoot);
  return stat === null || !isZombie(stat);
}

const thisHost: Pick<ProcessHost, 'platform' | 'procRoot' | 'kill'> = {
  platform: process.platform,
  procRoot: '/proc',
  kill: (pid, signal) => {
    process.kill(pid, signal);
  },
};

/**
 * The process that has this pid now, or null when there is none. Linux reads `/proc` (no process is started),
 * macOS asks `ps`, Windows PowerShell. When the helper program fails, the start is null, not the process.
 */
export async function findProcess(pid: number, host: ProcessHost): Promise<LiveProcess | null> {
  if (!isAlive(pid, host)) return null;
  if (host.platform === 'linux') return findOnLinux(pid, host);
  if (host.platform === 'win32') return findOnWindows(pid, host);
  return findWithPs(pid, host);
}

/** The identity of a running process from `/proc`, at once; null when it is gone or the system isn't Linux. */
export function identityFromProc(pid: number, procRoot = '/proc'): ProcessIdentity | null {
  const stat = readProcStat(pid, procRoot);
  return stat === null || isZombie(stat) ? null : { pid, startToken: stat.startTicks };
}

/**
 * Whether a remembered process still runs: `same`; `gone`: no such pid, or another process has it now;
 * `unknown`: a process has the pid and one of the two start times isn't known.
 */
export async function checkProcess(
  identity: ProcessIdentity,
  host: ProcessHost,
): Promise<'same' | 'gone' | 'unknown'> {
  const found = await findProcess(identity.pid, host);
  if (found === null) return 'gone';
  if (identity.startToken === null || found.startToken === null) return 'unknown';
  return found.startToken === identity.startToken ? 'same' : 'gone';
}

function findOnLinux(pid: number, host: ProcessHost): LiveProcess | null {
  const stat = readProcStat(pid, host.procRoot);
  if (stat === null) return { pid, startToken: null, startedAt: null };
  if (isZombie(stat)) return null;
  const startedAt = readBootClock(host.now(), host.procRoot).epochMs(stat.startTicks);
  return { pid, startToken: stat.startTicks, startedAt };
}

async function findWithPs(pid: number, host: ProcessHost): Promise<LiveProcess | null> {
  const result = await host.run({
    argv: ['ps', '-o', 'state=,lstart=', '-p', String(pid)],
    env: PS_ENVIRONMENT,
    timeoutMs: LOOKUP_MS,
  });
  if (result.kind !== 'exited') return { pid, startToken: null, startedAt: null };
  const [, state, lstart] = /^\s*(\S+)\s+(.+?)\s*$/.exec(result.stdout) ?? [];
  if (state === undefined || lstart === undefined) return null;
  return state.startsWith('Z') ? null : { pid, ...startFromLstart(lstart) };
}

/** Token and time of `ps -o lstart=` under `PS_ENVIRONMENT`, e.g. `Mon Nov 30 09:05:01 2026`. */
export function startFromLstart(text: string): { startToken: string | null; startedAt: number | null } {
  const startToken = text.trim().replace(/\s+/g, ' ');
  const startedAt = Date.parse(`${startToken} UTC`);
  return Number.isNaN(startedAt) ? { startToken: null, startedAt: null } : { startToken, startedAt };
}

async function findOnWindows(pid: number, host: ProcessHost): Promise<LiveProcess | null> {
  const query = `(Get-CimInstance Win32_Process -Filter 'ProcessId=${pid}').CreationDate.ToUniversalTime().ToString('o')`;
  const result = await host.run({
    argv: ['powershell.exe', '-NoProfile', '-NonInteractive', '-Command', query],
    timeoutMs: LOOKUP_MS,
  });
  if (result.kind !== 'exited' || result.code !== 0) return { pid, startToken: null, startedAt: null };
  return { pid, ...startFromIso(result.stdout) };
}

/** Token and time of a Windows creation date in ISO form with seven decimals. */
export function startFromIso(text: string): { startToken: string | null; startedAt: number | null } {
  const startToken = text.trim();
  const startedAt = Date.parse(startToken.replace(/(\.\d{3})\d*/, '$1'));
  return Number.isNaN(startedAt) ? { startToken: null, startedAt: null } : { startToken, startedAt };
}

/** True for a system error with this code. */
export function isErrorWithCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
