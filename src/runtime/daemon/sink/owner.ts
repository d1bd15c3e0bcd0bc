import { HOOK } from '../../limits.ts';
import { readProcStat } from '../../process/proc-stat.ts';
import type { JournalAgent } from '../journal/record.ts';

/** What is known of a process: its program's name and its parent. */
export interface ProcessGlance {
  readonly name: string;
  readonly parent: number;
}

export interface OwnerOptions {
  readonly agent: JournalAgent;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The parent of the sink. */
  readonly parent: number;
  /** Looks at a process without starting one; `undefined` when there is none or the system doesn't tell. */
  readonly glance: (pid: number) => ProcessGlance | undefined;
}

/** Programs that run hook commands, and what such a command may itself begin with. */
const SHELLS =
  /^-?(?:sh|bash|dash|zsh|fish|ksh|mksh|ash|busybox|tcsh|csh|nu|elvish|xonsh|env|cmd|pwsh|powershell)(?:\.exe)?$/i;

/**
 * The agent's process that a hook belongs to. Agents run hooks through a shell, so the parent is seldom it:
 * `CLAUDE_PID` for Claude Code (2.1.332), never for Codex, which inherits it inside of Claude; else the first of at
 * most three ancestors that is no shell; else `undefined`, and the service finds the owner by the session's id.
 * Never a pid up to 1 (S-406).
 */
export function ownerPid(options: OwnerOptions): number | undefined {
  const named = options.agent === 'claude' ? Number(options.env['CLAUDE_PID']) : Number.NaN;
  if (Number.isInteger(named) && named > 1) return named;
  let pid = options.parent;
  for (let step = 0; step < HOOK.ancestors; step += 1) {
    const seen = pid > 1 ? options.glance(pid) : undefined;
    if (!seen) return undefined;
    if (!SHELLS.test(seen.name)) return pid;
    pid = seen.parent;
  }
  return undefined;
}

/** A look through `/proc`. */
export function glanceOnLinux(pid: number): ProcessGlance | undefined {
  const stat = readProcStat(pid);
  return stat === null ? undefined : { name: stat.comm, parent: stat.ppid };
}
