import { readdirSync, readlinkSync } from 'node:fs';
import { listBriefs, type ProcessBrief, parseLsofNames } from './table.ts';
import type { ProcessHost, ProcessIdentity } from './types.ts';

const LSOF_MS = 10_000;

/** The files that a process has open, or that this can't be known. */
export type OpenFiles =
  | { readonly kind: 'known'; readonly paths: ReadonlySet<string> }
  | { readonly kind: 'unknown' };

/**
 * Paths that a process has open, on Linux. `unknown` when the process is another user's or has gone, and on
 * every other system (use `findHolders` there). Sockets and pipes are left out; ` (deleted)` is cut off.
 */
export function openFiles(pid: number, host: Pick<ProcessHost, 'platform' | 'procRoot'>): OpenFiles {
  if (host.platform !== 'linux') return { kind: 'unknown' };
  const folder = `${host.procRoot}/${pid}/fd`;
  try {
    const paths = readdirSync(folder).flatMap((fd) => readLink(`${folder}/${fd}`) ?? []);
    return { kind: 'known', paths: new Set(paths.filter((path) => path.startsWith('/')).map(cutDeleted)) };
  } catch {
    // Another user's process, or gone.
    return { kind: 'unknown' };
  }
}

/** Who has a file open. */
export interface Holders {
  readonly holders: readonly ProcessIdentity[];
  /**
   * Processes that might have it open and could not be looked into. "Nobody has it open" is certain only
   * when `holders` is empty, `complete` is true and none of these can be the runtime.
   */
  readonly unreadable: readonly ProcessBrief[];
  readonly complete: boolean;
}

/**
 * Which processes have one of these files open (real paths). Linux looks through `/proc/<pid>/fd` of those that
 * `candidate` lets through; macOS asks `lsof` once; Windows can't tell (`complete: false`). Opens no file and
 * takes no lock.
 */
export async function findHolders(
  paths: readonly string[],
  host: ProcessHost,
  candidate: (brief: ProcessBrief) => boolean = () => true,
): Promise<Holders> {
  if (host.platform === 'win32') return { holders: [], unreadable: [], complete: false };
  if (host.platform !== 'linux') return holdersWithLsof(paths, host);
  const briefs = await listBriefs(host);
  if (briefs === null) return { holders: [], unreadable: [], complete: false };
  // A kernel thread has no files, and its fd folder reads as empty.
  const looked = briefs.filter(candidate).map((brief) => ({ brief, open: openFiles(brief.pid, host) }));
  return {
    holders: looked
      .filter(({ open }) => open.kind === 'known' && paths.some((path) => open.paths.has(path)))
      .map(({ brief }) => ({ pid: brief.pid, startToken: brief.startToken })),
    unreadable: looked.filter(({ open }) => open.kind === 'unknown').map(({ brief }) => brief),
    complete: true,
  };
}

async function holdersWithLsof(paths: readonly string[], host: ProcessHost): Promise<Holders> {
  const result = await host.run({
    argv: ['lsof', '-n', '-P', '-Fpn', '--', ...paths],
    env: { LC_ALL: 'C', PATH: '/usr/sbin:/usr/bin:/bin' },
    timeoutMs: LSOF_MS,
  });
  if (result.kind !== 'exited') return { holders: [], unreadable: [], complete: false };
  const holders = [...parseLsofNames(result.stdout).keys()].map((pid) => ({ pid, startToken: null }));
  // Exit code 1 is lsof's "nobody", also for a file that doesn't exist; its stderr is empty only then.
  return { holders, unreadable: [], complete: result.code === 0 || result.stderr.trim() === '' };
}

function readLink(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    // Closed between the listing and this look.
    return null;
  }
}

function cutDeleted(path: string): string {
  return path.replace(/ \(deleted\)$/, '');
}
