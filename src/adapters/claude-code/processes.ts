import { readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { listProcesses, type ProcessRow } from '../../runtime/process/table.ts';
import type { ProcessHost } from '../../runtime/process/types.ts';
import type { OtherLife } from './session.ts';

/** The running `claude` processes, by the name of the program and never by words of a command line (P2). */
export interface ClaudeProcesses {
  readonly rows: readonly ProcessRow[];
  /** Whether all are known: only then "none" proves anything. */
  readonly complete: boolean;
}

/** Lists the running `claude` processes with their folders. Linux reads `/proc`; elsewhere programs are started. */
export async function listClaude(host: ProcessHost): Promise<ClaudeProcesses> {
  const table = await listProcesses({ comm: (name) => /^claude(\.exe)?$/i.test(name), withCwd: true }, host);
  return { rows: table.rows, complete: table.complete && table.unreadable === 0 };
}

/** A session of a version that writes no live file, with what is needed to find its process. */
export interface OldSession {
  readonly sessionId: string;
  readonly workDir?: string;
  /** The last write of its file, epoch milliseconds. */
  readonly mtimeMs: number;
}

/**
 * Finds owners for sessions of versions without live files (as R-19 does): a `claude` process that runs in the
 * session's folder, started before the last write, and has no live file itself. One process has one session: the one
 * that was written last. That no such process runs proves death, if all are known with their folders.
 */
export function findOwners(
  sessions: readonly OldSession[],
  processes: ClaudeProcesses,
  taken: ReadonlySet<number>,
): ReadonlyMap<string, OtherLife> {
  const free = processes.rows.filter((row) => !taken.has(row.pid));
  const known = processes.complete && free.every((row) => row.cwd !== undefined);
  const used = new Set<number>();
  const newestFirst = [...sessions].sort((a, b) => b.mtimeMs - a.mtimeMs);
  return new Map(
    newestFirst.map((session): [string, OtherLife] => {
      const owner = free.find((row) => !used.has(row.pid) && couldOwn(row, session));
      if (owner) used.add(owner.pid);
      if (owner) {
        const why = `process ${owner.pid} runs Claude Code in its folder`;
        return [session.sessionId, { kind: 'present', pid: owner.pid, why }];
      }
      return [
        session.sessionId,
        known ? { kind: 'gone', why: 'no Claude Code runs in its folder' } : { kind: 'unknown' },
      ];
    }),
  );
}

/** Clocks of processes and files differ a little. */
const START_SLACK_MS = 1_000;

function couldOwn(row: ProcessRow, session: OldSession): boolean {
  if (row.cwd === undefined || row.cwd !== session.workDir) return false;
  return row.startedAt === null || row.startedAt <= session.mtimeMs + START_SLACK_MS;
}

/** Words with which `claude` does something else than open a conversation in a terminal. */
const OTHER_WORK =
  /^(agents|mcp|doctor|update|upgrade|install|config|plugin|plugins|setup-token|auth|daemon|attach|logs|stop|rm|respawn|migrate-installer|bg-pty-host|-p|--print|-v|--version|-h|--help|--bg)$/;
/** How long a start may take until the live file is there, milliseconds (2 s were seen). */
const START_MS = 5_000;

/**
 * Processes that sit in a terminal without a session: at the trust dialog, a theme picker, a log-in, a warning about
 * settings (S8). Before it is answered there is no live file, no transcript and no hook, only the process. One whose
 * home is another than those that were read has its live file there. Linux only.
 */
export function atStartDialog(
  processes: ClaudeProcesses,
  taken: ReadonlySet<number>,
  roots: readonly string[],
  host: ProcessHost,
): readonly ProcessRow[] {
  if (host.platform !== 'linux') return [];
  const claudes = new Set(processes.rows.map((row) => row.pid));
  return processes.rows.filter((row) => {
    if (taken.has(row.pid) || claudes.has(row.ppid) || row.startedAt === null) return false;
    if (host.now() - row.startedAt < START_MS || row.argv.some((word) => OTHER_WORK.test(word))) return false;
    return hasTerminal(row.pid, host.procRoot) && roots.includes(rootOf(row.pid, host.procRoot) ?? '');
  });
}

/** Claude's home of a process, from two names in its environment; nothing else of it is looked at. */
function rootOf(pid: number, procRoot: string): string | undefined {
  try {
    const entries = readFileSync(`${procRoot}/${pid}/environ`, 'utf8').split('\0');
    const named = (name: string) =>
      entries.find((entry) => entry.startsWith(`${name}=`))?.slice(name.length + 1);
    const home = named('HOME');
    return named('CLAUDE_CONFIG_DIR') || (home && join(home, '.claude'));
  } catch {
    // Another user's process: its sessions are not ours to tell of.
    return undefined;
  }
}

function hasTerminal(pid: number, procRoot: string): boolean {
  try {
    return /^\/dev\/(pts\/|tty)/.test(readlinkSync(`${procRoot}/${pid}/fd/0`));
  } catch {
    // Gone, or another user's: then it is no session of ours either.
    return false;
  }
}
