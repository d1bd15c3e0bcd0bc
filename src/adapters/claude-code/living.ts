import type { ProcessHost } from '../../runtime/process/types.ts';
import { hasOpenTurn } from '../../runtime/session/state.ts';
import type { Departures } from './departures.ts';
import type { LiveFile } from './live-file.ts';
import { ownerJudge } from './owners.ts';
import { type ClaudeProcesses, findOwners, listClaude, type OldSession } from './processes.ts';
import type { OtherLife, Owner, Transcript } from './session.ts';
import { writesLiveFile } from './version.ts';

/** The owners of each session, by its id. */
export type Owners = ReadonlyMap<string, readonly Owner[]>;

/**
 * Judges all live files at once. A worker of the roster counts only where no live file has its process: it is the same
 * one, known earlier and by less.
 */
export async function judgeOwners(
  live: readonly LiveFile[],
  roster: readonly LiveFile[],
  host: ProcessHost,
): Promise<Owners> {
  const taken = new Set(live.map((file) => file.pid));
  const workers = roster.filter((worker) => !taken.has(worker.pid));
  const lives = await ownerJudge(host)([...live, ...workers]);
  const owners = new Map<string, Owner[]>();
  for (const [file, life] of lives) {
    // A roster outlives its workers; only a live file that was left behind says how its process died.
    if (life !== 'alive' && workers.includes(file)) continue;
    owners.set(file.sessionId, [...(owners.get(file.sessionId) ?? []), { file, life }]);
  }
  return owners;
}

/** The pids that have a live file or a place in the roster. */
export function ownerPids(owners: Owners): ReadonlySet<number> {
  return new Set([...owners.values()].flat().map((owner) => owner.file.pid));
}

/** The ids of sessions with an owner that lives, or can't be judged. */
export function ownedIds(owners: Owners): ReadonlySet<string> {
  const owned = [...owners].filter(([, all]) => all.some((owner) => owner.life !== 'dead'));
  return new Set(owned.map(([id]) => id));
}

/** How recent a session of an old version must be for programs to be started for it (not on Linux), milliseconds. */
const LOOKUP_AGE_MS = 24 * 3_600_000;

/**
 * The `claude` processes, where they are needed: always on Linux, where reading them costs two milliseconds; elsewhere
 * only for an open turn of an old version that was written lately.
 */
export async function processesFor(
  transcripts: ReadonlyMap<string, Transcript>,
  owners: Owners,
  host: ProcessHost,
): Promise<ClaudeProcesses | undefined> {
  if (host.platform === 'linux') return listClaude(host);
  const since = host.now() - LOOKUP_AGE_MS;
  const needed = [...transcripts].some(
    ([id, t]) => isOldAndUnowned(id, t, owners) && hasOpenTurn(t.summary.turn.state) && t.mtimeMs >= since,
  );
  return needed ? listClaude(host) : undefined;
}

function isOldAndUnowned(id: string, transcript: Transcript, owners: Owners): boolean {
  const { version, entrypoint } = transcript.summary;
  return !owners.has(id) && !writesLiveFile(version, entrypoint);
}

/** What there is to know beside live files about whether each session has an owner (R-16, and as R-19 for old versions). */
export function otherLives(
  transcripts: ReadonlyMap<string, Transcript>,
  owners: Owners,
  processes: ClaudeProcesses | undefined,
  registry: { readonly complete: (path: string) => boolean; readonly departures: Departures },
): ReadonlyMap<string, OtherLife> {
  const lives = new Map<string, OtherLife>();
  const old: OldSession[] = [];
  const gone = new Map<string | undefined, Extract<OtherLife, { kind: 'gone' }>>();
  for (const [sessionId, transcript] of transcripts) {
    if (owners.has(sessionId)) continue;
    const { version, entrypoint, cwd } = transcript.summary;
    if (!writesLiveFile(version, entrypoint)) {
      old.push({ sessionId, mtimeMs: transcript.mtimeMs, ...(cwd ? { workDir: cwd } : {}) });
      continue;
    }
    if (!registry.complete(transcript.path)) continue;
    const at = registry.departures.leftAt(sessionId);
    const plain = gone.get(version) ?? goneSince(version);
    gone.set(version, plain);
    lives.set(sessionId, at === undefined ? plain : { ...plain, at });
  }
  if (!processes || old.length === 0) return lives;
  for (const [sessionId, life] of findOwners(old, processes, ownerPids(owners))) lives.set(sessionId, life);
  return lives;
}

function goneSince(version: string | undefined): Extract<OtherLife, { kind: 'gone' }> {
  return { kind: 'gone', why: `no process has it: Claude Code ${version} would have a live file` };
}
