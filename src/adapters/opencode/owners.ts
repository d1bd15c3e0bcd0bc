import { realpathSync, statSync } from 'node:fs';
import { findHolders, type OpenFiles, openFiles } from '../../runtime/process/open-files.ts';
import { listProcesses, type ProcessBrief, type ProcessRow } from '../../runtime/process/table.ts';
import type { ProcessHost } from '../../runtime/process/types.ts';
import { listListeners, loopbackUrl, socketInodes } from './listeners.ts';
import type { OwnerVerdict } from './rows.ts';

/** A running OpenCode. */
export interface OpencodeProcess {
  readonly pid: number;
  /** Epoch milliseconds; absent when the system does not tell. */
  readonly startedAt?: number;
  readonly cwd?: string;
  /** Whether it has the database open; absent when that can't be known. */
  readonly holdsStore?: boolean;
  /** A server runs the sessions of every directory; a terminal those of its own. */
  readonly serves: boolean;
  /** Where it can be reached from here. */
  readonly urls: readonly string[];
}

/** Who could run a session of a store. */
export interface StoreOwners {
  readonly processes: readonly OpencodeProcess[];
  /** Everything that might have the database open was looked into. */
  readonly certain: boolean;
}

/** What an OpenCode program file is called: `opencode`, npm's `opencode.exe` (on Linux too), nix's `.opencode-wrapped`. */
export function isOpencodeName(name: string): boolean {
  return /^\.?opencode(?:$|[.\-_ ])/i.test(name);
}

/** Time that the start of a process may be off, milliseconds. */
const CLOCK_SLACK_MS = 100;

/**
 * The running OpenCode processes of this user, with what they listen on and whether they have `database` open
 * . Linux reads `/proc` and starts nothing; elsewhere the system's tools are asked, so call it there only
 * for an open turn. Never throws.
 */
export async function findOwners(database: string, host: ProcessHost): Promise<StoreOwners> {
  const table = await listProcesses({ where: isOpencode, withCwd: true }, host);
  if (!table.complete) return { processes: [], certain: false };
  const files = storeFiles(database);
  if (host.platform === 'linux') return ownersOnLinux(table.rows, files, host);
  // Nobody runs: nobody can have it open. That is all that Windows can tell.
  if (table.rows.length === 0) return { processes: [], certain: true };
  const found = await findHolders(files, host);
  const holders = new Set(found.holders.map((holder) => holder.pid));
  const known = found.complete;
  return {
    processes: table.rows.map((row) => describe(row, known ? holders.has(row.pid) : undefined, host)),
    certain: known && [...holders].every((pid) => table.rows.some((row) => row.pid === pid)),
  };
}

function storeFiles(database: string): readonly string[] {
  return [...new Set([database, realPath(database)])].flatMap((path) => [path, `${path}-wal`]);
}

function holds(open: OpenFiles, files: readonly string[]): boolean | undefined {
  return open.kind === 'known' ? files.some((file) => open.paths.has(file)) : undefined;
}

async function ownersOnLinux(
  rows: readonly ProcessRow[],
  files: readonly string[],
  host: ProcessHost,
): Promise<StoreOwners> {
  const own = new Set(rows.map((row) => row.pid));
  const mine = rows.filter((row) => mayBeThisUsers(row.pid, host.procRoot));
  const others = await findHolders(files, host, (brief) => !own.has(brief.pid) && !isOurs(brief));
  const looked = mine.map((row) => ({ row, open: openFiles(row.pid, host) }));
  const processes = looked.map(({ row, open }) => describe(row, holds(open, files), host));
  // A holder of another name may be OpenCode run from source: then nobody can be ruled out.
  const certain =
    others.complete && others.holders.length === 0 && looked.every(({ open }) => open.kind === 'known');
  return { processes, certain };
}

/** Another user's OpenCode keeps its sessions in that user's home; root's may use ours. */
function mayBeThisUsers(pid: number, procRoot: string): boolean {
  const me = process.getuid?.();
  try {
    const { uid } = statSync(`${procRoot}/${pid}`);
    return me === undefined || me === 0 || uid === me || uid === 0;
  } catch {
    // It has ended since it was listed.
    return false;
  }
}

function isOpencode(row: ProcessRow): boolean {
  if (isOpencodeName(row.comm)) return true;
  const program = row.argv[0]?.split(/[\\/]/).at(-1) ?? '';
  return isOpencodeName(program);
}

/**
 * The OpenCode processes that listen somewhere, on Linux, without a look at any other process: for every scan.
 * Elsewhere a list costs a program, so none is made.
 */
export async function findServers(database: string, host: ProcessHost): Promise<readonly OpencodeProcess[]> {
  if (host.platform !== 'linux') return [];
  const table = await listProcesses({ comm: isOpencodeName, withCwd: true }, host);
  return table.rows
    .filter((row) => mayBeThisUsers(row.pid, host.procRoot))
    .map((row) => describe(row, holds(openFiles(row.pid, host), storeFiles(database)), host))
    .filter((found) => found.urls.length > 0)
    .sort((a, b) => a.pid - b.pid);
}

/** Our own commands and daemon open the database for moments, to read it. */
function isOurs(brief: ProcessBrief): boolean {
  return brief.pid === process.pid || brief.comm.startsWith('shadowob-connec');
}

function describe(row: ProcessRow, holdsStore: boolean | undefined, host: ProcessHost): OpencodeProcess {
  const urls = host.platform === 'linux' ? listening(row.pid, host.procRoot) : portOf(row.argv);
  const serves = urls.length > 0 || row.argv.slice(1, 3).some((word) => /^(?:serve|web|acp)$/.test(word));
  return {
    pid: row.pid,
    ...(row.startedAt === null ? {} : { startedAt: row.startedAt }),
    ...(row.cwd ? { cwd: row.cwd } : {}),
    ...(holdsStore === undefined ? {} : { holdsStore }),
    serves,
    urls,
  };
}

function listening(pid: number, procRoot: string): readonly string[] {
  const inodes = socketInodes(pid, procRoot);
  if (inodes.size === 0) return [];
  return (listListeners(procRoot) ?? [])
    .filter((listener) => inodes.has(listener.inode))
    .flatMap((listener) => loopbackUrl(listener) ?? []);
}

/** `--port N` or `--port=N`; 0 means that the system chose, so it isn't known. */
function portOf(argv: readonly string[]): readonly string[] {
  const at = argv.findIndex((word) => word === '--port' || word.startsWith('--port='));
  const word = argv[at]?.slice('--port='.length) || argv[at + 1];
  const port = Number(at < 0 ? undefined : word);
  return Number.isInteger(port) && port > 0 && port < 65_536 ? [`http://127.0.0.1:${port}`] : [];
}

/**
 * Whether some process still works on an open turn: one that started before the turn's last write, has the
 * database open, and is a server or runs in the session's directory. A server that was asked and does not run the
 * session (`resting`) is no candidate. `dead` only when nobody is left who could.
 */
export function judgeOwner(
  owners: StoreOwners,
  turn: { readonly lastWriteAt: number; readonly directory?: string },
  resting: ReadonlySet<number> = new Set(),
): { readonly verdict: OwnerVerdict; readonly owner?: OpencodeProcess } {
  const possible = owners.processes.filter(
    (candidate) =>
      candidate.holdsStore !== false &&
      !resting.has(candidate.pid) &&
      (candidate.startedAt ?? 0) <= turn.lastWriteAt + CLOCK_SLACK_MS,
  );
  const owner = possible.find(
    (candidate) =>
      candidate.holdsStore === true &&
      candidate.startedAt !== undefined &&
      (candidate.serves || samePlace(candidate.cwd, turn.directory)),
  );
  if (owner) return { verdict: 'alive', owner };
  return { verdict: owners.certain && possible.length === 0 ? 'dead' : 'unknown' };
}

function samePlace(cwd: string | undefined, directory: string | undefined): boolean {
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
