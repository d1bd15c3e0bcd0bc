import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { PS_ENVIRONMENT, startFromIso, startFromLstart } from './identity.ts';
import { type BootClock, isZombie, type ProcStat, readBootClock, readProcStat } from './proc-stat.ts';
import type { ProcessHost, ProcessIdentity } from './types.ts';
import { splitWindowsCommandLine } from './windows-command.ts';

/** How long `ps` or PowerShell may take for the whole list. PowerShell's cold start alone is seconds. */
const LIST_MS = 15_000;

/** What the first look at a process tells; enough to decide whether its arguments are worth reading. */
export interface ProcessBrief extends ProcessIdentity {
  readonly ppid: number;
  /** The process group; null where the system has none. */
  readonly pgid: number | null;
  /**
   * The name of the program file, without its folder. Linux cuts it at 15 bytes and shows what the program
   * renamed itself to (Claude Code: `claude`, OpenClaw: `openclaw-gateway`).
   */
  readonly comm: string;
  /** Epoch milliseconds, for "started before"; null when not known. */
  readonly startedAt: number | null;
}

/** One running process. */
export interface ProcessRow extends ProcessBrief {
  /** Empty for kernel threads, for processes of others where the system hides it, and for some renamed ones. */
  readonly argv: readonly string[];
  /** False where the system gives one line only (macOS) and the arguments were split at blanks. */
  readonly argvExact: boolean;
  /** Current directory; only when `withCwd` was asked for and the system tells. */
  readonly cwd?: string;
}

/** A process list, and what it cost and left out. */
export interface ProcessTable {
  readonly rows: readonly ProcessRow[];
  /** Processes that passed `brief` and whose arguments could not be read. */
  readonly unreadable: number;
  /** Programs started for this list: 0 on Linux. */
  readonly spawned: number;
  /** False when the system's list could not be had at all; `rows` is then empty and proves nothing. */
  readonly complete: boolean;
}

/** Which processes to return. All predicates must hold. */
export interface ProcessQuery {
  /** Decides by the program's name alone, before anything else is made of a process. */
  readonly comm?: (comm: string) => boolean;
  /** Decides before the arguments are read; keep it cheap. */
  readonly brief?: (brief: ProcessBrief) => boolean;
  readonly where?: (row: ProcessRow) => boolean;
  readonly withCwd?: boolean;
}

/**
 * Lists running processes; zombies are left out. Read-only, takes no lock and sends no signal. Linux reads
 * `/proc` and starts nothing; macOS runs `ps` twice, and `lsof` once if folders are asked for; Windows asks
 * PowerShell once, so call it there on demand only. Never throws: what can't be read is counted.
 */
export async function listProcesses(query: ProcessQuery, host: ProcessHost): Promise<ProcessTable> {
  if (host.platform === 'linux') return listOnLinux(query, host);
  if (host.platform === 'win32') return listOnWindows(query, host);
  return listWithPs(query, host);
}

/** The cheap half of the list: all processes without arguments. Null when the system's list can't be had. */
export async function listBriefs(host: ProcessHost): Promise<readonly ProcessBrief[] | null> {
  if (host.platform === 'linux') return briefsOnLinux(host);
  if (host.platform !== 'win32') return briefsWithPs(host);
  const table = await listOnWindows({}, host);
  return table.complete ? table.rows : null;
}

/** Current directory of a process on Linux; null when it can't be read. */
export function readCwd(pid: number, procRoot = '/proc'): string | null {
  try {
    return readlinkSync(`${procRoot}/${pid}/cwd`);
  } catch {
    // Gone, or another user's: both mean "not known".
    return null;
  }
}

function briefsOnLinux(
  host: ProcessHost,
  wanted?: (comm: string) => boolean,
): readonly ProcessBrief[] | null {
  const pids = readPids(host.procRoot);
  if (pids === null) return null;
  const stats = pids.flatMap((pid) => readProcStat(pid, host.procRoot, wanted) ?? []);
  if (stats.length === 0) return [];
  const clock = readBootClock(host.now(), host.procRoot);
  return stats.filter((stat) => !isZombie(stat)).map((stat) => briefOf(stat, clock));
}

function briefOf(stat: ProcStat, clock: BootClock): ProcessBrief {
  return {
    pid: stat.pid,
    ppid: stat.ppid,
    pgid: stat.pgid,
    comm: stat.comm,
    startToken: stat.startTicks,
    startedAt: clock.epochMs(stat.startTicks),
  };
}

function readPids(procRoot: string): readonly number[] | null {
  try {
    return readdirSync(procRoot)
      .filter((name) => /^\d+$/.test(name))
      .map(Number);
  } catch {
    // No /proc (a bare chroot): the caller says that the list is incomplete.
    return null;
  }
}

function listOnLinux(query: ProcessQuery, host: ProcessHost): ProcessTable {
  const briefs = briefsOnLinux(host, query.comm);
  if (briefs === null) return { rows: [], unreadable: 0, spawned: 0, complete: false };
  const read = briefs
    .filter((brief) => query.brief?.(brief) ?? true)
    .map((brief) => ({ brief, argv: readArgv(brief.pid, host.procRoot) }));
  const rows = read
    .map(({ brief, argv }): ProcessRow => ({ ...brief, argv: argv ?? [], argvExact: true }))
    .map((row) => (query.withCwd ? withCwd(row, readCwd(row.pid, host.procRoot)) : row))
    .filter((row) => query.where?.(row) ?? true);
  return { rows, unreadable: read.filter(({ argv }) => argv === null).length, spawned: 0, complete: true };
}

function passes(brief: ProcessBrief, query: ProcessQuery): boolean {
  return (query.comm?.(brief.comm) ?? true) && (query.brief?.(brief) ?? true);
}

function readArgv(pid: number, procRoot: string): readonly string[] | null {
  try {
    const text = readFileSync(`${procRoot}/${pid}/cmdline`, 'utf8');
    return text === '' ? [] : text.replace(/\0$/, '').split('\0');
  } catch {
    // Gone meanwhile, or hidden (hidepid): the caller counts it.
    return null;
  }
}

function withCwd(row: ProcessRow, cwd: string | null | undefined): ProcessRow {
  return cwd ? { ...row, cwd } : row;
}

function ps(columns: string, host: ProcessHost) {
  return host.run({
    argv: ['ps', '-axww', '-o', columns],
    env: PS_ENVIRONMENT,
    timeoutMs: LIST_MS,
    keepBytes: 16 * 1024 * 1024,
  });
}

async function briefsWithPs(host: ProcessHost): Promise<readonly ProcessBrief[] | null> {
  const listed = await ps('pid=,ppid=,pgid=,state=,lstart=,comm=', host);
  return listed.kind === 'exited' ? parsePsLines(listed.stdout).map(({ brief }) => brief) : null;
}

async function listWithPs(query: ProcessQuery, host: ProcessHost): Promise<ProcessTable> {
  // Both end in a column of free text, so they can't be one call.
  const [args, comm] = await Promise.all([
    ps('pid=,ppid=,pgid=,state=,lstart=,args=', host),
    ps('pid=,comm=', host),
  ]);
  if (args.kind !== 'exited' || comm.kind !== 'exited') {
    return { rows: [], unreadable: 0, spawned: 2, complete: false };
  }
  const rows = parsePsRows(args.stdout, comm.stdout)
    .filter((row) => passes(row, query))
    .filter((row) => query.withCwd || (query.where?.(row) ?? true));
  if (!query.withCwd || rows.length === 0) return { rows, unreadable: 0, spawned: 2, complete: true };
  const folders = await cwdWithLsof(
    rows.map((row) => row.pid),
    host,
  );
  const placed = rows
    .map((row) => withCwd(row, folders.get(row.pid)))
    .filter((row) => query.where?.(row) ?? true);
  return { rows: placed, unreadable: 0, spawned: 3, complete: true };
}

/** Joins the two `ps` listings; lines that don't fit are skipped. Exported for tests with captured text. */
export function parsePsRows(argsText: string, commText: string): readonly ProcessRow[] {
  const paths = new Map<number, string>();
  for (const line of commText.split('\n')) {
    const [, pid, path] = /^\s*(\d+)\s+(.+?)\s*$/.exec(line) ?? [];
    if (pid !== undefined && path !== undefined) paths.set(Number(pid), path);
  }
  return parsePsLines(argsText).map(({ brief, rest }): ProcessRow => {
    const path = paths.get(brief.pid) ?? rest.split(/\s+/)[0] ?? '';
    return { ...brief, comm: baseName(path), argv: splitPsArgs(rest, path), argvExact: false };
  });
}

/** `pid ppid pgid state lstart rest`; the rest may hold blanks and be empty. Zombies and odd lines are skipped. */
function parsePsLines(text: string): readonly { brief: ProcessBrief; rest: string }[] {
  const form = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\w{3}\s+\w{3}\s+\d+\s+[\d:]{8}\s+\d{4})(?:\s(.*))?$/;
  return text.split('\n').flatMap((line) => {
    const [, pid, ppid, pgid, state, lstart, last] = form.exec(line) ?? [];
    if (pid === undefined || state === undefined || lstart === undefined || state.startsWith('Z')) return [];
    const rest = last?.trim() ?? '';
    const ids = { pid: Number(pid), ppid: Number(ppid), pgid: Number(pgid) };
    return [{ brief: { ...ids, comm: baseName(rest), ...startFromLstart(lstart) }, rest }];
  });
}

function baseName(path: string): string {
  return path.split('/').at(-1) ?? path;
}

/** The program's path may hold blanks; when the line begins with it, only the rest is split. */
function splitPsArgs(args: string, path: string): readonly string[] {
  if (args === '') return [];
  if (path !== '' && (args === path || args.startsWith(`${path} `))) {
    return [path, ...args.slice(path.length).split(/\s+/).filter(Boolean)];
  }
  return args.split(/\s+/);
}

async function cwdWithLsof(pids: readonly number[], host: ProcessHost): Promise<ReadonlyMap<number, string>> {
  const result = await host.run({
    argv: ['lsof', '-a', '-d', 'cwd', '-n', '-P', '-Fpn', '-p', pids.join(',')],
    env: { ...PS_ENVIRONMENT, PATH: '/usr/sbin:/usr/bin:/bin' },
    timeoutMs: LIST_MS,
  });
  // lsof exits 1 when one of the pids has gone; what it printed about the others stands.
  return result.kind === 'exited' ? parseLsofNames(result.stdout) : new Map();
}

/** First `n` line of each `p` block of `lsof -Fpn`. Exported for tests with captured text. */
export function parseLsofNames(text: string): ReadonlyMap<number, string> {
  const names = new Map<number, string>();
  for (const block of text.split(/^(?=p\d)/m)) {
    const pid = /^p(\d+)/.exec(block)?.[1];
    const name = /^n(\/.*)$/m.exec(block)?.[1];
    if (pid !== undefined && name !== undefined) names.set(Number(pid), name);
  }
  return names;
}

/** Asks for exactly the columns of `ProcessRow`, as one JSON document in UTF-8. */
export const WINDOWS_LIST_SCRIPT = [
  '[Console]::OutputEncoding=[Text.Encoding]::UTF8;',
  '@(Get-CimInstance Win32_Process|Select-Object ProcessId,ParentProcessId,Name,CommandLine,',
  "@{n='Started';e={if($_.CreationDate){$_.CreationDate.ToUniversalTime().ToString('o')}}})",
  '|ConvertTo-Json -Compress',
].join('');

async function listOnWindows(query: ProcessQuery, host: ProcessHost): Promise<ProcessTable> {
  const result = await host.run({
    argv: ['powershell.exe', '-NoProfile', '-NonInteractive', '-Command', WINDOWS_LIST_SCRIPT],
    timeoutMs: LIST_MS,
    keepBytes: 16 * 1024 * 1024,
  });
  const all = result.kind === 'exited' && result.code === 0 ? parseWindowsRows(result.stdout) : null;
  if (all === null) return { rows: [], unreadable: 0, spawned: 1, complete: false };
  const rows = all.filter((row) => passes(row, query) && (query.where?.(row) ?? true));
  return { rows, unreadable: rows.filter((row) => row.argv.length === 0).length, spawned: 1, complete: true };
}

/** Reads the answer to `WINDOWS_LIST_SCRIPT`; null when it isn't JSON. Entries that don't fit are skipped. */
export function parseWindowsRows(text: string): readonly ProcessRow[] | null {
  const parsed = parseJson(text.replace(/^\uFEFF/, ''));
  if (parsed === null) return null;
  // PowerShell 5 writes a list of one as the bare object.
  const entries: readonly unknown[] = Array.isArray(parsed) ? parsed : [parsed];
  return entries.flatMap((entry): ProcessRow[] => {
    if (typeof entry !== 'object' || entry === null) return [];
    const value = (key: string): unknown => Reflect.get(entry, key);
    const [pid, ppid, name] = [value('ProcessId'), value('ParentProcessId'), value('Name')];
    if (typeof pid !== 'number' || typeof ppid !== 'number' || typeof name !== 'string') return [];
    const line = value('CommandLine');
    const started = value('Started');
    const start = typeof started === 'string' ? startFromIso(started) : { startToken: null, startedAt: null };
    const argv = typeof line === 'string' ? splitWindowsCommandLine(line) : [];
    return [{ pid, ppid, pgid: null, comm: name.replace(/\.exe$/i, ''), ...start, argv, argvExact: true }];
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not JSON: PowerShell printed an error or was cut off; the caller says that the list is incomplete.
    return null;
  }
}
