import { identityFromProc, isAlive, isErrorWithCode } from './identity.ts';
import { listBriefs, type ProcessBrief } from './table.ts';
import type { KillReport, ProcessHost, ProcessIdentity } from './types.ts';

/** How a tree is ended. */
export interface KillOptions {
  /** From TERM to KILL, milliseconds; default 2,000. 0 sends KILL at once. */
  readonly graceMs?: number;
  /** How long after KILL the end is waited for; default 2,000. A process in a system call may need it. */
  readonly proveMs?: number;
  /** Processes of the tree that are left alone, with what is below them: a daemon of the runtime's own. */
  readonly spare?: (process: ProcessBrief) => boolean;
}

const DEFAULT_GRACE_MS = 2_000;
const DEFAULT_PROVE_MS = 2_000;
const LONGEST_PAUSE_MS = 25;

/**
 * Ends a process and all that it started, and says what was seen to be gone (K1). The tree is: the group that
 * the process leads (also after the leader itself has ended: K3), and every descendant, also one that made a
 * group of its own, as the shells of coding agents do. TERM first; KILL for what is left after the grace; then
 * the list is read again until nothing new turns up. Never signals a pid of 1 or below, ourselves, or a pid that
 * by its start token now belongs to somebody else.
 *
 * Windows has neither groups nor TERM for console programs: `taskkill /T`, then `/T /F`.
 */
export async function killTree(
  target: number | ProcessIdentity,
  options: KillOptions,
  host: ProcessHost,
): Promise<KillReport> {
  const root = typeof target === 'number' ? { pid: target, startToken: null } : target;
  if (!Number.isInteger(root.pid) || root.pid <= 1 || root.pid === process.pid)
    return { gone: false, survivors: [] };
  if (isReused(root, host)) return { gone: true, survivors: [] };
  return host.platform === 'win32' ? killOnWindows(root, options, host) : killOnPosix(root, options, host);
}

/** Whether a process group has no running member; zombies may still make it look inhabited. */
export function isGroupEmpty(pgid: number, host: Pick<ProcessHost, 'kill'>): boolean {
  try {
    host.kill(-pgid, 0);
    return false;
  } catch (error) {
    return isErrorWithCode(error, 'ESRCH');
  }
}

function isReused(root: ProcessIdentity, host: ProcessHost): boolean {
  if (root.startToken === null || host.platform !== 'linux') return false;
  const now = identityFromProc(root.pid, host.procRoot);
  return now !== null && now.startToken !== root.startToken;
}

async function killOnPosix(
  root: ProcessIdentity,
  options: KillOptions,
  host: ProcessHost,
): Promise<KillReport> {
  const tree = new Tree(root, options.spare, host);
  const graceMs = options.graceMs ?? DEFAULT_GRACE_MS;
  await tree.look();
  if (graceMs > 0) {
    tree.signal('SIGTERM');
    await until(() => tree.settled(), graceMs);
  }
  const report = await tree.report();
  if (report.gone) return report;
  tree.signal('SIGKILL');
  await until(async () => {
    if (!(await tree.settled())) return false;
    // What was born between the last look and the kill is found now, and gets its own KILL.
    await tree.look();
    tree.signal('SIGKILL');
    return tree.settled();
  }, options.proveMs ?? DEFAULT_PROVE_MS);
  return tree.report();
}

/** What is known of the processes to end; grows with every look, because a tree can fork while it dies. */
class Tree {
  readonly #known = new Map<number, ProcessIdentity>();
  readonly #root: ProcessIdentity;
  readonly #spare: ((process: ProcessBrief) => boolean) | undefined;
  readonly #host: ProcessHost;
  /** Without a process list (a `ps` that fails) only the group can be addressed and asked. */
  #listed = true;
  /** Some of the group must live on. */
  #partial = false;

  constructor(
    root: ProcessIdentity,
    spare: ((process: ProcessBrief) => boolean) | undefined,
    host: ProcessHost,
  ) {
    this.#root = root;
    this.#spare = spare;
    this.#host = host;
  }

  /** Adds all members that run now. */
  async look(): Promise<void> {
    const briefs = await listBriefs(this.#host);
    this.#listed = briefs !== null;
    if (briefs === null) return;
    // Run by one of its tools we are a member ourselves: then the group must not be signalled as a whole.
    this.#partial ||= briefs.some((brief) => brief.pid === process.pid && brief.pgid === this.#root.pid);
    const parents = new Set([this.#root.pid, ...this.#known.keys()]);
    const spared = new Set<number>();
    // A child can stand before its parent in the list, so pass over it until nothing is added.
    for (let added = true; added; ) {
      added = false;
      for (const brief of briefs) {
        if (this.#known.has(brief.pid) || spared.has(brief.pid) || !this.#belongs(brief, parents)) continue;
        added = true;
        if (this.#spare?.(brief)) {
          spared.add(brief.pid);
          continue;
        }
        parents.add(brief.pid);
        this.#known.set(brief.pid, { pid: brief.pid, startToken: brief.startToken });
      }
    }
    this.#partial ||= spared.size > 0;
  }

  #belongs(brief: ProcessBrief, parents: ReadonlySet<number>): boolean {
    if (brief.pid <= 1 || brief.pid === process.pid) return false;
    return brief.pid === this.#root.pid || brief.pgid === this.#root.pid || parents.has(brief.ppid);
  }

  signal(signal: 'SIGTERM' | 'SIGKILL'): void {
    // The group at once, so that none of it can fork away between two calls.
    if (this.#host.platform !== 'win32' && !this.#partial && !isGroupEmpty(this.#root.pid, this.#host))
      this.#send(-this.#root.pid, signal);
    for (const member of this.#alive()) this.#send(member.pid, signal);
  }

  #send(pid: number, signal: 'SIGTERM' | 'SIGKILL'): void {
    try {
      this.#host.kill(pid, signal);
    } catch {
      // Gone meanwhile, or not ours to end: the report that follows tells which.
    }
  }

  get partial(): boolean {
    return this.#partial;
  }

  async settled(): Promise<boolean> {
    if (!this.#listed)
      return isGroupEmpty(this.#root.pid, this.#host) && !isAlive(this.#root.pid, this.#host);
    return this.#alive().length === 0;
  }

  async report(): Promise<KillReport> {
    await this.look();
    const survivors = this.#alive();
    const gone = await this.settled();
    return { gone, survivors: gone || survivors.length > 0 ? survivors : [this.#root] };
  }

  #alive(): readonly ProcessIdentity[] {
    return [...this.#known.values()].filter((member) => {
      if (!isAlive(member.pid, this.#host)) return false;
      if (this.#host.platform !== 'linux' || member.startToken === null) return true;
      return identityFromProc(member.pid, this.#host.procRoot)?.startToken === member.startToken;
    });
  }
}

async function killOnWindows(
  root: ProcessIdentity,
  options: KillOptions,
  host: ProcessHost,
): Promise<KillReport> {
  const pid = String(root.pid);
  // taskkill forgets a child whose parent has ended, so the members are written down first.
  const tree = new Tree(root, options.spare, host);
  await tree.look();
  const taskkill = async (...flags: string[]) =>
    // taskkill can't leave anyone out; with somebody to spare the members are ended one by one below.
    tree.partial ? null : host.run({ argv: ['taskkill.exe', ...flags, '/PID', pid], timeoutMs: 10_000 });
  const graceMs = options.graceMs ?? DEFAULT_GRACE_MS;
  if (graceMs > 0) {
    const asked = await taskkill('/T');
    // A console program can't be asked: taskkill says so at once, and waiting would be for nothing.
    if (asked?.kind === 'exited' && asked.code === 0) await until(() => tree.settled(), graceMs);
  }
  if (await tree.settled()) return { gone: true, survivors: [] };
  await taskkill('/T', '/F');
  tree.signal('SIGKILL');
  await until(() => tree.settled(), options.proveMs ?? DEFAULT_PROVE_MS);
  return tree.report();
}

/** Waits for a condition that gives no event, asking at growing pauses; false when the time is over first. */
async function until(condition: () => Promise<boolean>, limitMs: number): Promise<boolean> {
  const end = performance.now() + limitMs;
  for (let pause = 1; !(await condition()); pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    if (performance.now() >= end) return false;
    await Bun.sleep(pause);
  }
  return true;
}
