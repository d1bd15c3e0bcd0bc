import { sep } from 'node:path';
import type { Capability, FeedScan, RuntimeInstance, ScanOptions, ScanProblem } from '../../runtime/feed.ts';
import {
  type FileSystemPort,
  notAFile,
  sameContent,
  systemFiles,
  tryStat,
} from '../../runtime/files/file-system.ts';
import { sessionsWereFound } from '../../runtime/process/compile-policy.ts';
import type { ProcessRow } from '../../runtime/process/table.ts';
import type { ProcessHost } from '../../runtime/process/types.ts';
import type { Sighting } from '../../runtime/session/session.ts';
import { hasOpenTurn } from '../../runtime/session/state.ts';
import type { AdapterContext } from '../adapter.ts';
import type { Departures } from './departures.ts';
import { type Discovery, discoverTranscripts, type FoundTranscript } from './discover.ts';
import { type ClaudeHome, claudeHomes } from './homes.ts';
import { type Job, readJobs, readRoster } from './jobs.ts';
import { forkParents } from './lineage.ts';
import type { LiveFile } from './live-file.ts';
import { type LiveMemory, type LiveRegistry, readLiveFiles } from './live-files.ts';
import { judgeOwners, type Owners, otherLives, ownedIds, ownerPids, processesFor } from './living.ts';
import { atStartDialog } from './processes.ts';
import { createReading, INDEX_SCOPE, type TranscriptMemory, type TranscriptReading } from './reading.ts';
import {
  INSTANCE_ID,
  type OtherLife,
  RUNTIME_ID,
  type SessionParts,
  sightingOf,
  type Transcript,
} from './session.ts';
import { countSubAgents } from './sub-agents.ts';

/** What is kept from scan to scan of one process. */
export interface ScanMemory {
  readonly transcripts: TranscriptMemory;
  readonly live: LiveMemory;
  readonly departures: Departures;
}

/** The newest file of each session id, and how many others have the same id. */
type FoundFiles = ReadonlyMap<string, { readonly newest: FoundTranscript; readonly others: number }>;

/** The live side of one home. */
interface HomeLife {
  readonly home: ClaudeHome;
  readonly live: LiveRegistry;
  readonly roster: readonly LiveFile[];
  readonly jobs: readonly Job[];
}

/**
 * Scans all homes: transcripts first, then the live registries, so that a session that was read as working has had its
 * live file since before. One that has lost its owner meanwhile is looked at once more.
 */
export async function scanClaude(
  context: AdapterContext,
  host: ProcessHost,
  memory: ScanMemory,
  options: ScanOptions = {},
): Promise<FeedScan> {
  const files = context.files ?? systemFiles;
  const wanted = wantedBy(options.only);
  const homes = claudeHomes(context.env, context.home);
  const discoveries = homes.map((home) => discoverTranscripts(files, home, wanted));
  const found = newestOfEach(discoveries.flatMap((discovery) => discovery.transcripts));
  sessionsWereFound(found.size);
  if (!options.only) forgetVanished(context, memory, discoveries);

  const reading = createReading(files, context.index, memory.transcripts);
  const read = await readAll(found, reading, context, options.since);
  const lives = await Promise.all(homes.map((home) => readLife(files, home, memory.live)));
  const owners = await judgeOwners(
    lives.flatMap((life) => life.live.files),
    lives.flatMap((life) => life.roster),
    host,
  );
  const transcripts = lookAgain(read, found, owners, reading, files, context.now());
  const processes = await processesFor(transcripts, owners, host);
  memory.departures.note(ownedIds(owners), context.now());
  const others = otherLives(transcripts, owners, processes, {
    complete: completeFor(lives),
    departures: memory.departures,
  });
  const dialogs = processes
    ? atStartDialog(
        processes,
        ownerPids(owners),
        homes.map((home) => home.root),
        host,
      )
    : [];
  return {
    instances: [instanceOf(homes, lives, found, owners, dialogs)],
    sightings: sightingsOf({ files, found, transcripts, owners, others, lives, wanted }),
    problems: [
      ...discoveries.flatMap((discovery) => discovery.problems),
      ...lives.flatMap((life) => life.live.problems),
      ...reading.problems,
      ...dialogs.map(dialogProblem),
    ],
  };
}

/** Whether the live registry of the home that a transcript lies in could be read whole. */
function completeFor(lives: readonly HomeLife[]): (path: string) => boolean {
  const blind = lives.filter(({ live }) => !live.complete).map(({ home }) => home.projects + sep);
  return (path) => blind.length === 0 || !blind.some((folder) => path.startsWith(folder));
}

/** A shortened id chooses by its beginning; anything else chooses everything. */
function wantedBy(only: string | undefined): (sessionId: string) => boolean {
  if (!only || !/^[0-9a-f-]{4,36}$/i.test(only)) return () => true;
  const prefix = only.toLowerCase();
  return (sessionId) => sessionId.toLowerCase().startsWith(prefix);
}

/** One row a session: of several files with one id (a copied home) the one that was written last counts. */
function newestOfEach(transcripts: readonly FoundTranscript[]): FoundFiles {
  const found = new Map<string, { newest: FoundTranscript; others: number }>();
  for (const transcript of transcripts) {
    const before = found.get(transcript.sessionId);
    const newer = !before || transcript.stat.mtimeMs > before.newest.stat.mtimeMs;
    const newest = newer ? transcript : before.newest;
    found.set(transcript.sessionId, { newest, others: before ? before.others + 1 : 0 });
  }
  return found;
}

function forgetVanished(
  context: AdapterContext,
  memory: ScanMemory,
  discoveries: readonly Discovery[],
): void {
  // A folder that can't be read for the moment must not cost the memory of what is in it.
  if (discoveries.some((discovery) => discovery.problems.length > 0)) return;
  const entries = context.index?.load(INDEX_SCOPE);
  if (memory.transcripts.size === 0 && entries && areAll(entries, discoveries)) return;
  const alive = new Set(discoveries.flatMap((discovery) => discovery.transcripts.map((t) => t.path)));
  for (const path of memory.transcripts.keys()) if (!alive.has(path)) memory.transcripts.delete(path);
  context.index?.prune(INDEX_SCOPE, alive);
}

/** Whether the index knows these transcripts and no other: nothing has vanished, as in most scans of a command. */
function areAll(entries: ReadonlyMap<string, unknown>, discoveries: readonly Discovery[]): boolean {
  const count = discoveries.reduce((sum, { transcripts }) => sum + transcripts.length, 0);
  if (entries.size !== count) return false;
  return discoveries.every(({ transcripts }) => transcripts.every(({ path }) => entries.has(path)));
}

/** How long reading goes on before others of this process get a turn, milliseconds. */
const SLICE_MS = 20;

async function readAll(
  found: FoundFiles,
  reading: TranscriptReading,
  context: AdapterContext,
  since: number | undefined,
): Promise<Map<string, Transcript>> {
  const transcripts = new Map<string, Transcript>();
  let sliceEnd = context.now() + SLICE_MS;
  for (const [sessionId, { newest }] of found) {
    const old = since !== undefined && newest.stat.mtimeMs < since && !reading.isKnown(newest);
    const summary = old ? undefined : reading.summary(newest);
    if (summary) transcripts.set(sessionId, transcriptOf(newest, summary));
    if (context.now() < sliceEnd) continue;
    await new Promise<void>((resolve) => setImmediate(resolve));
    context.signal?.throwIfAborted();
    sliceEnd = context.now() + SLICE_MS;
  }
  return transcripts;
}

function transcriptOf(found: FoundTranscript, summary: Transcript['summary']): Transcript {
  return { path: found.path, mtimeMs: found.stat.mtimeMs, size: found.stat.size, summary };
}

async function readLife(files: FileSystemPort, home: ClaudeHome, memory: LiveMemory): Promise<HomeLife> {
  const live = await readLiveFiles(files, home.sessions, memory);
  return { home, live, roster: readRoster(files, home.roster), jobs: readJobs(files, home.jobs) };
}

/**
 * Reads again what the first reading can't settle: with a live owner, the label of an open call and the words of an
 * error, which the index does not hold; without one, an open turn whose end may have been written meanwhile.
 */
function lookAgain(
  transcripts: ReadonlyMap<string, Transcript>,
  found: FoundFiles,
  owners: Owners,
  reading: TranscriptReading,
  files: FileSystemPort,
  now: number,
): ReadonlyMap<string, Transcript> {
  const again = new Map<string, Transcript>();
  const owned = ownedIds(owners);
  for (const [sessionId, transcript] of transcripts) {
    const { state, failure } = transcript.summary.turn;
    const isOpen = hasOpenTurn(state);
    if (!isOpen && !failure) continue;
    const file = found.get(sessionId)?.newest;
    const isOwned = owned.has(sessionId);
    if (!file || !(isOpen || isOwned)) continue;
    if (!isOwned && now - file.stat.mtimeMs > STILL_WRITTEN_MS) continue;
    const latest = isOwned ? file : changedSince(file, files);
    const summary = latest && reading.full(latest);
    if (latest && summary) again.set(sessionId, transcriptOf(latest, summary));
  }
  return again.size > 0 ? new Map([...transcripts, ...again]) : transcripts;
}

/** A file that was not written for this long does not change between two looks of one scan. */
const STILL_WRITTEN_MS = 60_000;

function changedSince(file: FoundTranscript, files: FileSystemPort): FoundTranscript | undefined {
  const stat = tryStat(files, file.path);
  if (notAFile(stat) || !('size' in stat) || sameContent(stat, file.stat)) return undefined;
  return { ...file, stat };
}

interface Inventory {
  readonly files: FileSystemPort;
  readonly found: FoundFiles;
  readonly transcripts: ReadonlyMap<string, Transcript>;
  readonly owners: Owners;
  readonly others: ReadonlyMap<string, OtherLife>;
  readonly lives: readonly HomeLife[];
  readonly wanted: (sessionId: string) => boolean;
}

function sightingsOf(inventory: Inventory): readonly Sighting[] {
  const { found, transcripts, owners, wanted } = inventory;
  const parents = forkParents(transcripts);
  const jobs = new Map(
    inventory.lives.flatMap((life) => life.jobs.map((job) => [job.sessionId, job] as const)),
  );
  const owned = ownedIds(owners);
  const sightings: Sighting[] = [];
  const sight = (id: string): void => {
    sightings.push(sightingOf(partsOf(inventory, id, parents.get(id), jobs.get(id), owned.has(id))));
  };
  for (const id of found.keys()) sight(id);
  for (const id of owned) if (!found.has(id) && wanted(id)) sight(id);
  return sightings;
}

function partsOf(
  { files, found, transcripts, owners, others }: Inventory,
  sessionId: string,
  forkedFromId: string | undefined,
  job: Job | undefined,
  isOwned: boolean,
): SessionParts {
  const file = found.get(sessionId);
  const transcript = transcripts.get(sessionId);
  const companion = isOwned ? file?.newest.companion : undefined;
  const subAgents = companion ? countSubAgents(files, companion) : 0;
  const parts: { -readonly [K in keyof SessionParts]: SessionParts[K] } = {
    sessionId,
    owners: owners.get(sessionId) ?? NO_OWNERS,
    otherLife: jobLife(job, isOwned) ?? others.get(sessionId) ?? NOT_KNOWN,
  };
  if (transcript) parts.transcript = isOwned ? transcript : withoutWords(transcript);
  else if (file) parts.unread = file.newest;
  if (file && file.others > 0) parts.otherFiles = file.others;
  if (forkedFromId) parts.forkedFromId = forkedFromId;
  if (subAgents > 0) parts.subAgents = subAgents;
  if (job?.needs && isOwned) parts.note = `the background job needs you: ${job.needs}`;
  if (job) parts.jobId = job.id;
  return parts;
}

/**
 * The error of a session that nobody holds, in the words of its code: the index keeps no others (R-38), and a list must
 * not say something else when it reads the file anew.
 */
function withoutWords(transcript: Transcript): Transcript {
  const { turn } = transcript.summary;
  if (!turn.failure) return transcript;
  const { code, status } = turn.failure;
  const words = `${code.replaceAll('_', ' ')}${status === undefined ? '' : ` (${status})`}`;
  const told = { ...turn, turn: { ...turn.turn, error: words } };
  return { ...transcript, summary: { ...transcript.summary, turn: told } };
}

const NO_OWNERS: SessionParts['owners'] = [];
const NOT_KNOWN: OtherLife = { kind: 'unknown' };

/** A background job that the program calls ended has no process any more, whatever its version writes. */
function jobLife(job: Job | undefined, isOwned: boolean): OtherLife | undefined {
  if (job?.state !== 'over' || isOwned) return undefined;
  return { kind: 'gone', why: `its background job ${job.id} has ended` };
}

/** What can be done: by files, processes, and for a push by a process that resumes the session (`docs/acting.md`). */
const CAPABILITIES: readonly Capability[] = [
  'sessionList',
  'sessionHistory',
  'liveWatch',
  'sendMessage',
  'abort',
  'approval',
  'nativeStatus',
  'processWatch',
];

function instanceOf(
  homes: readonly ClaudeHome[],
  lives: readonly HomeLife[],
  found: FoundFiles,
  owners: Owners,
  dialogs: readonly ProcessRow[],
): RuntimeInstance {
  const exists = found.size > 0 || lives.some((life) => life.live.complete);
  const running = ownedIds(owners).size > 0 || dialogs.length > 0;
  return {
    runtimeId: RUNTIME_ID,
    instanceId: INSTANCE_ID,
    label: 'Claude Code sessions',
    status: running ? 'running' : exists ? 'available' : 'missing',
    capabilities: CAPABILITIES,
    metadata: {
      transcriptRoot: homes[0]?.projects ?? null,
      ...(homes.length > 1
        ? {
            otherRoots: homes
              .slice(1)
              .map((home) => home.projects)
              .join(', '),
          }
        : {}),
      ...(dialogs.length > 0 ? { waitingAtStart: dialogs.length } : {}),
    },
  };
}

/** S8: there is no session yet, so nothing may be listed or sent to; but the user should know. */
function dialogProblem(row: ProcessRow): ScanProblem {
  return {
    subject: `Claude Code in ${row.cwd ?? 'an unknown folder'} (process ${row.pid})`,
    reason: 'waits at a start-up dialog and needs set-up there; it has no session yet',
    skipped: 0,
  };
}
