import type { Obstacle } from '../../../runtime/control/driver.ts';
import type { RefusalKind } from '../../../runtime/control.ts';
import { systemFiles } from '../../../runtime/files/file-system.ts';
import { listBriefs } from '../../../runtime/process/table.ts';
import type { ProcessHost } from '../../../runtime/process/types.ts';
import type { AdapterContext } from '../../adapter.ts';
import { discoverTranscripts } from '../discover.ts';
import { claudeHomes } from '../homes.ts';
import { readRoster } from '../jobs.ts';
import { readLiveFiles } from '../live-files.ts';
import { judgeOwners, ownerPids } from '../living.ts';
import { type ClaudeProcesses, findOwners, listClaude } from '../processes.ts';
import { writesLiveFile } from '../version.ts';

/** A process that has a session open, and how it is known. */
export interface Possessor {
  readonly pid: number;
  /** Its start as the system tells it; null where only its file does. */
  readonly startToken: string | null;
  readonly by: 'terminal' | 'headless' | 'background' | 'old version' | 'start dialog' | 'elsewhere';
  /** Short id of a background job, for Claude's own commands. */
  readonly job?: string;
  /** What it does, where it says so. */
  readonly status?: string;
}

/** The session that is asked about. */
export interface Asked {
  readonly sessionId: string;
  readonly workDir: string;
  /** Of the version that wrote its rows last; decides whether a live file is to be expected. */
  readonly version?: string;
  readonly entrypoint?: string;
}

/**
 * Who has the session open now, apart from our own child: live files with their process guard, workers of Claude's
 * daemon (M3), a terminal that was told to resume it and has not got there yet (S8), and for versions without live
 * files a `claude` process in its folder. A process that can't be judged (another container's) counts as one (M1).
 *
 * @param ownGroup pid and process group of our own child
 */
export async function possessorsOf(
  asked: Asked,
  context: AdapterContext,
  host: ProcessHost,
  ownGroup?: number,
): Promise<readonly Possessor[]> {
  const files = context.files ?? systemFiles;
  const homes = claudeHomes(context.env, context.home);
  const registries = await Promise.all(homes.map((home) => readLiveFiles(files, home.sessions, new Map())));
  const live = registries.flatMap((registry) => registry.files);
  const roster = homes.flatMap((home) => readRoster(files, home.roster));
  const owners = await judgeOwners(live, roster, host);
  const known = (owners.get(asked.sessionId) ?? []).filter((owner) => owner.life !== 'dead');
  const found = known.map(
    ({ file, life }): Possessor => ({
      pid: file.pid,
      startToken: host.platform === 'linux' && life === 'alive' ? file.procStart : null,
      by: life === 'unknown' ? 'elsewhere' : file.jobId ? 'background' : byEntrypoint(file.entrypoint),
      ...(file.jobId ? { job: file.jobId } : {}),
      ...(file.status ? { status: file.status } : {}),
    }),
  );
  const processes = await processesOf(asked, host);
  const others = processes ? unlisted(asked, processes, ownerPids(owners), mtimeOf(asked, context)) : [];
  return withoutOwn([...found, ...others], host, ownGroup);
}

function byEntrypoint(entrypoint: string | undefined): Possessor['by'] {
  return entrypoint === 'cli' ? 'terminal' : 'headless';
}

/** Reading processes costs nothing on Linux; elsewhere programs are started, so only where nothing else can tell. */
async function processesOf(asked: Asked, host: ProcessHost): Promise<ClaudeProcesses | undefined> {
  const isOld = asked.version !== undefined && !writesLiveFile(asked.version, asked.entrypoint);
  return host.platform === 'linux' || isOld ? listClaude(host) : undefined;
}

function mtimeOf({ sessionId }: Asked, context: AdapterContext): number {
  const files = context.files ?? systemFiles;
  const times = claudeHomes(context.env, context.home)
    .flatMap((home) => discoverTranscripts(files, home, (id) => id === sessionId).transcripts)
    .map((transcript) => transcript.stat.mtimeMs);
  return Math.max(0, ...times);
}

/** Processes without a live file: one that names the session on its command line, or an old version in its folder. */
function unlisted(
  asked: Asked,
  processes: ClaudeProcesses,
  listed: ReadonlySet<number>,
  mtimeMs: number,
): readonly Possessor[] {
  const free = processes.rows.filter((row) => !listed.has(row.pid));
  const starting = free.filter((row) => row.argv.includes(asked.sessionId));
  if (starting.length > 0) {
    return starting.map(({ pid, startToken }) => ({ pid, startToken, by: 'start dialog' as const }));
  }
  if (writesLiveFile(asked.version, asked.entrypoint) || asked.version === undefined) return [];
  const { sessionId, workDir } = asked;
  const owner = findOwners([{ sessionId, workDir, mtimeMs }], processes, listed).get(sessionId);
  if (owner?.kind !== 'present') return [];
  const row = free.find(({ pid }) => pid === owner.pid);
  return [{ pid: owner.pid, startToken: row?.startToken ?? null, by: 'old version' }];
}

/** A launcher script's child has another pid than what we started, and the same group. */
async function withoutOwn(
  found: readonly Possessor[],
  host: ProcessHost,
  ownGroup: number | undefined,
): Promise<readonly Possessor[]> {
  if (ownGroup === undefined || found.length === 0) return found;
  const briefs = host.platform === 'win32' ? null : await listBriefs(host);
  const groups = new Map(briefs?.map(({ pid, pgid }) => [pid, pgid]));
  return found.filter(({ pid }) => pid !== ownGroup && groups.get(pid) !== ownGroup);
}

/** What stands in the way of a message, with the choices there are (M1, A4, S8). */
export function obstacleOf(possessors: readonly Possessor[], sessionId: string): Obstacle | undefined {
  const [first] = possessors;
  if (!first) return undefined;
  if (first.by === 'start dialog') {
    return {
      kind: 'other',
      refusal: {
        reason: `process ${first.pid} is starting with this session and may wait at a set-up screen, where text would go into a menu`,
        kind: 'refused',
        next: 'Finish the set-up in its terminal, or close it there; then send again.',
      },
      until: `process ${first.pid} has started`,
    };
  }
  const kind: RefusalKind = 'ownedElsewhere';
  return {
    kind: 'owned',
    refusal: { reason: `the session is ${openWords(first)}`, kind, next: choices(first, sessionId) },
    until: `it is sent when process ${first.pid} leaves the session${waitWords(first)}`,
  };
}

function openWords(possessor: Possessor): string {
  const { pid } = possessor;
  switch (possessor.by) {
    case 'terminal':
      return `open in a terminal (process ${pid}${waitWords(possessor)}), which would not see the message and would later drop it`;
    case 'headless':
      return `being worked on by another program (process ${pid})`;
    case 'background':
      return `run by Claude Code’s own daemon in the background (process ${pid})`;
    case 'old version':
      return `probably open in an older Claude Code (process ${pid} runs in its folder)`;
    case 'elsewhere':
      return `perhaps open in a container or on another computer (process ${pid} there)`;
    case 'start dialog':
      return `about to be opened (process ${pid})`;
  }
}

function waitWords({ status }: Possessor): string {
  return status === 'waiting' ? ', which waits for an answer there' : '';
}

function choices({ by, job }: Possessor, sessionId: string): string {
  const own = by === 'background' && job ? `Claude’s own way in: claude attach ${job}. ` : '';
  return [
    `${own}Choose with --when-owned:`,
    `queue (sent when it leaves; deleted after a day),`,
    `fork (goes on in a copy with a new id, this one stays as it is),`,
    `or force (the open program never sees it, and what it writes next hides it).`,
    `Or close it there and send again: session-send --session ${sessionId}`,
  ].join(' ');
}
