import type { Claim } from '../../runtime/session/evidence.ts';
import { IDLE, RUNNING, type SessionState, waitingOn } from '../../runtime/session/state.ts';
import { numberOf, objectOf, textOf } from './values.ts';

/** What `sessions/<pid>.json` says about the process that writes it (S14, R-16). Times are epoch milliseconds. */
export interface LiveFile {
  readonly pid: number;
  readonly sessionId: string;
  /** The writer's start, as `/proc/<pid>/stat` field 22 on Linux: the guard against a reused pid. */
  readonly procStart: string;
  readonly status?: 'busy' | 'idle' | 'waiting' | 'shell';
  readonly waitingFor?: string;
  /** When the status was last set; without a status, when the file was written. */
  readonly statusAt?: number;
  readonly startedAt?: number;
  readonly cwd?: string;
  readonly version?: string;
  /** `interactive` (also for print mode), `bg`, `daemon`, `daemon-worker`. */
  readonly kind?: string;
  /** `cli` for the terminal, `sdk-cli` for print mode. */
  readonly entrypoint?: string;
  /** A name that the user or the program gave, not one that was derived from the folder. */
  readonly name?: string;
  readonly jobId?: string;
  /** Which pid numbering the pid belongs to, `linux:<machine>:pid:[<namespace>]` (2.1.332). */
  readonly pidDomain?: string;
}

/**
 * `torn`: caught while it was rewritten in place (seen empty); the caller keeps the old value and reads again.
 * `ignored`: valid JSON that proves nothing: the old generation without `procStart`, or another program's.
 */
export type LiveFileContent =
  | { readonly kind: 'live'; readonly file: LiveFile }
  | { readonly kind: 'torn' }
  | { readonly kind: 'ignored' };

/** Names of live files; `pid-<n>.json` of the old generation and the `.key` files are none. */
export const LIVE_FILE_NAME = /^\d+\.json$/;

/** Reads the text of a live file (2.1.139 and later; fields of 2.1.197 and 2.1.332). */
export function parseLiveFile(text: string): LiveFileContent {
  const parsed = parseJson(text);
  if (parsed === undefined) return { kind: 'torn' };
  const fields = objectOf(parsed);
  const pid = numberOf(fields?.['pid']);
  const sessionId = textOf(fields?.['sessionId']);
  const procStart = textOf(fields?.['procStart']) ?? numberOf(fields?.['procStart'])?.toString();
  if (!fields || !pid || pid <= 1 || !sessionId || !procStart) return { kind: 'ignored' };
  // Claude's own helpers write such files, too; only conversations are sessions.
  if (fields['kind'] === 'daemon' || fields['kind'] === 'daemon-worker') return { kind: 'ignored' };
  return { kind: 'live', file: { pid, sessionId, procStart, ...statusOf(fields), ...descriptionOf(fields) } };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Half written: the only thing that a parse error of this file means.
    return undefined;
  }
}

function statusOf(
  fields: Readonly<Record<string, unknown>>,
): Pick<LiveFile, 'status' | 'waitingFor' | 'statusAt'> {
  const status = knownStatus(fields['status']);
  const waitingFor = textOf(fields['waitingFor']);
  const statusAt =
    numberOf(fields['statusUpdatedAt']) ?? numberOf(fields['updatedAt']) ?? numberOf(fields['startedAt']);
  return {
    ...(status ? { status } : {}),
    ...(status === 'waiting' && waitingFor ? { waitingFor } : {}),
    ...(statusAt !== undefined ? { statusAt } : {}),
  };
}

function knownStatus(value: unknown): LiveFile['status'] {
  return value === 'busy' || value === 'idle' || value === 'waiting' || value === 'shell' ? value : undefined;
}

function descriptionOf(
  fields: Readonly<Record<string, unknown>>,
): Omit<LiveFile, 'pid' | 'sessionId' | 'procStart' | 'status' | 'waitingFor' | 'statusAt'> {
  const startedAt = numberOf(fields['startedAt']);
  const cwd = textOf(fields['cwd']);
  const version = textOf(fields['version']);
  const kind = textOf(fields['kind']);
  const entrypoint = textOf(fields['entrypoint']);
  const name = fields['nameSource'] === 'derived' ? undefined : textOf(fields['name']);
  const jobId = textOf(fields['jobId']);
  const pidDomain = textOf(fields['pidDomain']);
  return {
    ...(startedAt !== undefined ? { startedAt } : {}),
    ...(cwd ? { cwd } : {}),
    ...(version ? { version } : {}),
    ...(kind ? { kind } : {}),
    ...(entrypoint ? { entrypoint } : {}),
    ...(name ? { name } : {}),
    ...(jobId ? { jobId } : {}),
    ...(pidDomain ? { pidDomain } : {}),
  };
}

/** What is known of a live file's writer: it runs, it is gone (or its pid is another's), or it can't be told. */
export type OwnerLife = 'alive' | 'dead' | 'unknown';

/**
 * The standing claim of one live file. It is exact only while its writer is proven to live: what a dead
 * one left behind says how it died, and a writer that can't be judged (another container's) only reports.
 */
export function liveClaim(file: LiveFile, life: OwnerLife): Claim {
  const says = liveState(file);
  const background = life === 'alive' && file.status === 'shell' ? { backgroundWork: 1 } : {};
  return {
    feed: 'claude-code.live-file',
    owner: String(file.pid),
    confidence: life === 'unknown' ? 'reported' : 'exact',
    at: file.statusAt ?? 0,
    says: says ?? { kind: 'silent' },
    ...(life === 'unknown' ? {} : { life }),
    ...background,
    // Print mode without a host refuses in 10 ms what it would have to ask (CC 2.1.332).
    ...(says && file.entrypoint !== 'cli' ? { showsWaits: true } : {}),
    detail: detailOf(file, life),
  };
}

/** `undefined` for a file without a status: proof of life and nothing more. */
function liveState(file: LiveFile): SessionState | undefined {
  switch (file.status) {
    case undefined:
      return undefined;
    case 'busy':
      return RUNNING;
    case 'idle':
    case 'shell':
      return IDLE;
    case 'waiting':
      return waitState(file.waitingFor);
  }
}

const APPROVALS: ReadonlySet<string> = new Set([
  'permission prompt',
  'worker request',
  'sandbox request',
  'goal proposal',
]);

/** `dialog open` is a picker or a start-up screen and stands for no wait; an unknown value asks for something. */
function waitState(waitingFor: string | undefined): SessionState {
  if (waitingFor === 'dialog open') return IDLE;
  return waitingOn(waitingFor && APPROVALS.has(waitingFor) ? 'tool' : 'unspecified');
}

function detailOf(file: LiveFile, life: OwnerLife): string {
  const status = file.status ? `status ${file.status}` : 'no status';
  const waiting = file.waitingFor ? ` (${file.waitingFor})` : '';
  const owner = { alive: 'runs', dead: 'is gone', unknown: 'can’t be seen from here' }[life];
  return `${status}${waiting}; process ${file.pid} ${owner}`;
}
