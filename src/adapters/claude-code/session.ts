import type { Claim, TurnFacts } from '../../runtime/session/evidence.ts';
import type { SessionFacts, Sighting } from '../../runtime/session/session.ts';
import { hasOpenTurn, RUNNING } from '../../runtime/session/state.ts';
import type { FoundTranscript } from './discover.ts';
import { type LiveFile, liveClaim, type OwnerLife } from './live-file.ts';
import type { TranscriptSummary } from './summary.ts';
import { chooseTitle } from './titles.ts';

export const RUNTIME_ID = 'claude-code';
/** The store that all sessions lie in, whatever home their file is in. */
export const INSTANCE_ID = 'transcripts';

/** A process that has the session, as its live file says. */
export interface Owner {
  readonly file: LiveFile;
  readonly life: OwnerLife;
}

const isAlive = (owner: Owner): boolean => owner.life === 'alive';

/** A transcript file and what was read of it. */
export interface Transcript {
  readonly path: string;
  readonly mtimeMs: number;
  readonly size: number;
  readonly summary: TranscriptSummary;
}

/**
 * What is known of the owner beside live files: `gone` is proof that no process has the session (`at`: when it was
 * seen to leave, epoch milliseconds), `present` that
 * one seems to (older versions: a `claude` process in its folder).
 */
export type OtherLife =
  | { readonly kind: 'gone'; readonly why: string; readonly at?: number }
  | { readonly kind: 'present'; readonly pid: number; readonly why: string }
  | { readonly kind: 'unknown' };

/** Everything that one scan found about one session. */
export interface SessionParts {
  readonly sessionId: string;
  readonly transcript?: Transcript;
  /** A transcript that was not read: too old to matter, or unreadable. */
  readonly unread?: FoundTranscript;
  readonly owners: readonly Owner[];
  readonly otherLife: OtherLife;
  /** Other files with the same id (a copied home); the newest one counts. */
  readonly otherFiles?: number;
  readonly forkedFromId?: string;
  readonly subAgents?: number;
  readonly note?: string;
  readonly jobId?: string;
}

/** Builds the sighting of one session: its claims, one a feed, and its facts. Pure. */
export function sightingOf(parts: SessionParts): Sighting {
  const { transcript, owners } = parts;
  const claims: Claim[] = [];
  const recorded = transcript && transcriptClaim(transcript, owners);
  if (recorded) claims.push(recorded);
  for (const owner of owners) claims.push(liveClaim(owner.file, owner.life));
  const life = lifeClaim(parts);
  if (life) claims.push(life);
  return {
    session: { runtimeId: RUNTIME_ID, instanceId: INSTANCE_ID, sessionId: parts.sessionId },
    facts: factsOf(parts),
    claims,
  };
}

/**
 * How long an open turn without an open call stands on its rows alone while its process lives: a model that
 * thinks writes nothing until its message is complete, but a turn can die without a trace (S1).
 */
const SILENT_TURN_MS = 15 * 60_000;

function transcriptClaim(transcript: Transcript, owners: readonly Owner[]): Claim | undefined {
  const { turn, skipped } = transcript.summary;
  if (turn.state.kind === 'unknown') return undefined;
  // Records dated in the future (a clock that was set back) count as written when the file was (C21).
  const { mtimeMs } = transcript;
  const goesOn = turn.provisional && owners.some(isAlive);
  const says = goesOn ? RUNNING : turn.state;
  const claim: Writable<Claim> = {
    feed: 'claude-code.transcript',
    confidence: 'inferred',
    at: Math.min(turn.at ?? mtimeMs, mtimeMs),
    says,
    turn: goesOn ? openOnly(turn.turn, mtimeMs) : clampTimes(turn.turn, mtimeMs),
    detail: `the newest record is ${turn.last}`,
  };
  if (turn.answeredAt !== undefined) claim.answeredAt = Math.min(turn.answeredAt, mtimeMs);
  if (says.kind === 'working' && says.doing !== 'tool') claim.staleAfterMs = SILENT_TURN_MS;
  if (turn.pendingAgents > 0 && !hasOpenTurn(says)) claim.backgroundWork = turn.pendingAgents;
  if (skipped > 0) claim.skipped = skipped;
  return claim;
}

function clampTimes(turn: TurnFacts, latest: number): TurnFacts {
  const { openedAt = latest, endedAt = latest } = turn;
  if (openedAt <= latest && endedAt <= latest) return turn;
  const clamped: Writable<TurnFacts> = { ...turn };
  if (turn.openedAt !== undefined) clamped.openedAt = Math.min(openedAt, latest);
  if (turn.endedAt !== undefined) clamped.endedAt = Math.min(endedAt, latest);
  return clamped;
}

/** A reply cut at the output limit is no end while the program lives to go on with it. */
function openOnly(turn: TurnFacts, latest: number): TurnFacts {
  return turn.openedAt === undefined ? {} : { openedAt: Math.min(turn.openedAt, latest) };
}

function lifeClaim({ otherLife, transcript }: SessionParts): Claim | undefined {
  if (otherLife.kind === 'unknown') return undefined;
  const present = otherLife.kind === 'present';
  const claim: Writable<Claim> = {
    feed: 'claude-code.process',
    confidence: 'inferred',
    at: (present ? undefined : otherLife.at) ?? transcript?.mtimeMs ?? 0,
    says: SILENT,
    life: present ? 'alive' : 'dead',
    detail: otherLife.why,
  };
  if (present) claim.owner = String(otherLife.pid);
  return claim;
}

const SILENT = { kind: 'silent' } as const;

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** Built step by step and not from parts, since a scan has thousands of sessions. */
function factsOf(parts: SessionParts): SessionFacts {
  const { transcript, owners } = parts;
  const summary = transcript?.summary;
  const owner = owners.find(isAlive) ?? owners[0];
  const title = (summary && chooseTitle(summary.titles)) ?? owner?.file.name;
  const workDir = summary?.cwd ?? owner?.file.cwd;
  const startedAt = summary?.startedAt ?? owner?.file.startedAt;
  const lastActivityAt = activityOf(transcript) ?? parts.unread?.stat.mtimeMs ?? owner?.file.statusAt;
  const entrypoint = owner?.file.entrypoint ?? summary?.entrypoint;
  const lineage = lineageOf(parts);
  const native = nativeOf(parts);
  // What nearly every session has is there from the start: an object that grows is moved each time.
  const facts: Writable<SessionFacts> = transcript
    ? { source: 'transcript', native, sizeBytes: transcript.size, file: transcript.path }
    : { source: 'transcript', native };
  if (title) facts.title = title;
  if (workDir) facts.workDir = workDir;
  if (summary?.turn.model) facts.model = summary.turn.model;
  if (startedAt !== undefined) facts.startedAt = startedAt;
  if (lastActivityAt !== undefined) facts.lastActivityAt = lastActivityAt;
  if (summary?.turn.usedTokens !== undefined) facts.contextUsage = { usedTokens: summary.turn.usedTokens };
  if (entrypoint) facts.headless = entrypoint !== 'cli';
  const pids = pidsOf(parts);
  if (pids.length > 0) facts.pids = pids;
  if (lineage) facts.lineage = lineage;
  if (parts.note) facts.note = parts.note;
  if (!transcript && parts.unread) {
    facts.sizeBytes = parts.unread.stat.size;
    facts.file = parts.unread.path;
  }
  return facts;
}

const NO_PIDS: readonly number[] = [];

function pidsOf({ owners, otherLife }: SessionParts): readonly number[] {
  if (owners.length === 0 && otherLife.kind !== 'present') return NO_PIDS;
  const alive = owners.filter(isAlive).map((owner) => owner.file.pid);
  return otherLife.kind === 'present' ? [...alive, otherLife.pid] : alive;
}

/** The newest conversation row; a row from the future counts as written when the file was. */
function activityOf(transcript: Transcript | undefined): number | undefined {
  if (!transcript) return undefined;
  return Math.min(transcript.summary.turn.at ?? transcript.mtimeMs, transcript.mtimeMs);
}

function lineageOf(parts: SessionParts): SessionFacts['lineage'] {
  const segments = parts.otherFiles ? parts.otherFiles + 1 : undefined;
  if (!parts.forkedFromId && !segments && !parts.subAgents) return undefined;
  return {
    ...(parts.forkedFromId ? { forkedFromId: parts.forkedFromId } : {}),
    ...(segments ? { segments } : {}),
    ...(parts.subAgents ? { subAgents: parts.subAgents } : {}),
  };
}

function nativeOf(parts: SessionParts): NonNullable<SessionFacts['native']> {
  const summary = parts.transcript?.summary;
  const owner = parts.owners[0]?.file;
  const version = owner?.version ?? summary?.version;
  const jobId = parts.jobId ?? owner?.jobId;
  const path = parts.transcript?.path ?? parts.unread?.path;
  const native: Record<string, string> = {};
  if (path) native['transcriptFile'] = baseName(path);
  if (version) native['version'] = version;
  if (summary?.gitBranch) native['gitBranch'] = summary.gitBranch;
  if (jobId) native['jobId'] = jobId;
  return native;
}

function baseName(path: string): string {
  return path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1);
}
