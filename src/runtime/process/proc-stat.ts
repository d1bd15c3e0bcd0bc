import { readFileSync } from 'node:fs';

/**
 * Readers of Linux's `/proc/<pid>/stat` and of the clock that its start times count on. Synchronous: these
 * are kernel memory, not a disk, and one read takes some microseconds.
 */

/** The fields of `/proc/<pid>/stat` that we use. */
export interface ProcStat {
  readonly pid: number;
  /** At most 15 bytes, and whatever the program renamed itself to. */
  readonly comm: string;
  /** One letter; `Z` and `X` have ended and only wait to be collected. */
  readonly state: string;
  readonly ppid: number;
  readonly pgid: number;
  readonly sid: number;
  /** Field 22, as text: it is compared, and JSON numbers of other programs may round it. */
  readonly startTicks: string;
}

/**
 * Parses one stat line. The name in brackets may itself hold spaces, brackets and newlines, so the fields
 * are counted from the last `)`. Null for anything that doesn't have the form.
 *
 * @param wanted decides by the name, before the fields are taken apart; null for who is not wanted
 */
export function parseProcStat(text: string, wanted?: (comm: string) => boolean): ProcStat | null {
  const open = text.indexOf('(');
  const close = text.lastIndexOf(')');
  if (open < 1 || close < open) return null;
  const comm = text.slice(open + 1, close);
  if (wanted && !wanted(comm)) return null;
  const fields = text
    .slice(close + 1)
    .trim()
    .split(' ');
  const [state, ppid, pgid, sid] = fields;
  const startTicks = fields[19];
  const pid = Number(text.slice(0, open).trim());
  if (!state || !startTicks || !/^\d+$/.test(startTicks) || !Number.isInteger(pid)) return null;
  return {
    pid,
    comm,
    state,
    ppid: Number(ppid),
    pgid: Number(pgid),
    sid: Number(sid),
    startTicks,
  };
}

/** The stat of a pid; null when there is no such process, it can't be read, or its name is not `wanted`. */
export function readProcStat(
  pid: number,
  procRoot = '/proc',
  wanted?: (comm: string) => boolean,
): ProcStat | null {
  const text = readText(`${procRoot}/${pid}/stat`);
  return text === null ? null : parseProcStat(text, wanted);
}

/** True for a process that has ended and only waits to be collected by its parent. */
export function isZombie(stat: ProcStat): boolean {
  return stat.state === 'Z' || stat.state === 'X';
}

/** Turns start ticks into wall-clock time. */
export interface BootClock {
  /** Epoch milliseconds of a start time in ticks; good to about 20 ms, so for order, never for equality. */
  readonly epochMs: (startTicks: string) => number | null;
}

/**
 * Reads the boot time and the tick length. `now - uptime` is used rather than `btime` of `/proc/stat`, which
 * is whole seconds and would date a process up to a second before its start; `btime` is the fallback.
 */
export function readBootClock(now: number, procRoot = '/proc'): BootClock {
  const ticksPerSecond = readTicksPerSecond(procRoot);
  const boot = bootEpochMs(now, procRoot);
  return {
    epochMs: (ticks) =>
      boot === null || !/^\d+$/.test(ticks)
        ? null
        : Math.round(boot + (Number(ticks) * 1000) / ticksPerSecond),
  };
}

function bootEpochMs(now: number, procRoot: string): number | null {
  const uptime = Number(readText(`${procRoot}/uptime`)?.split(' ')[0]);
  if (Number.isFinite(uptime) && uptime > 0) return now - uptime * 1000;
  const btime = /^btime (\d+)$/m.exec(readText(`${procRoot}/stat`) ?? '')?.[1];
  return btime === undefined ? null : Number(btime) * 1000;
}

/** `AT_CLKTCK` of the auxiliary vector: the same number as `getconf CLK_TCK`, without starting a process. */
function readTicksPerSecond(procRoot: string): number {
  const AT_CLKTCK = 17n;
  try {
    const bytes = readFileSync(`${procRoot}/self/auxv`);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (const at of Array.from({ length: Math.floor(bytes.byteLength / 16) }, (_, index) => index * 16)) {
      const value = view.getBigUint64(at + 8, true);
      if (view.getBigUint64(at, true) === AT_CLKTCK && value > 0n) return Number(value);
    }
  } catch {
    // Hidden by some sandboxes; 100 is the value of every Linux build that runs Bun.
  }
  return 100;
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // The process has ended meanwhile, or belongs to someone else: both mean "not known".
    return null;
  }
}
