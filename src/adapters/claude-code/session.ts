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
  return {
    session: { runtimeId: RUNTIME_ID, instanceId: INSTANCE_ID, sessionId: parts.sessionId },
    facts: factsOf(parts),
    claims: [
      ...(transcript ? transcriptClaims(transcript, owners) : []),
      ...owners.map((owner) => liveClaim(owner.file, owner.life)),
      ...lifeClaims(parts),
    ],
  };
}

/**
 * How long an open turn without an open call stands on its rows alone while its process lives: a model that
 * thinks writes nothing until its message is complete, but a turn can die without a trace (S1).
 */
const SILENT_TURN_MS = 15 * 60_000;

function transcriptClaims(transcript: Transcript, owners: readonly Owner[]): readonly Claim[] {
  const { turn, skipped } = transcript.summary;
  if (turn.state.kind === 'unknown') return [];
  // Records dated in the future (a clock that was set back) count as written when the file was (C21).
  const clamp = (time: number): number => Math.min(time, transcript.mtimeMs);
  const alive = owners.some((owner) => owner.life === 'alive');
  const goesOn = turn.provisional && alive;
  const says = goesOn ? RUNNING : turn.state;
  const quiet = says.kind === 'working' && says.doing !== 'tool';
  return [
    {
      feed: 'claude-code.transcript',
      confidence: 'inferred',
      at: clamp(turn.at ?? transcript.mtimeMs),
      says,
      turn: goesOn ? openOnly(turn.turn, clamp) : clampTimes(turn.turn, clamp),
      ...(turn.answeredAt !== undefined ? { answeredAt: clamp(turn.answeredAt) } : {}),
      ...(quiet ? { staleAfterMs: SILENT_TURN_MS } : {}),
      ...(turn.pendingAgents > 0 && !hasOpenTurn(says) ? { backgroundWork: turn.pendingAgents } : {}),
      detail: `the newest record is ${turn.last}`,
      ...(skipped > 0 ? { skipped } : {}),
    },
  ];
}

function clampTimes(turn: TurnFacts, clamp: (time: number) => number): TurnFacts {
  return {
    ...turn,
    ...(turn.openedAt !== undefined ? { openedAt: clamp(turn.openedAt) } : {}),
    ...(turn.endedAt !== undefined ? { endedAt: clamp(turn.endedAt) } : {}),
  };
}

/** A reply cut at the output limit is no end while the program lives to go on with it. */
function openOnly(turn: TurnFacts, clamp: (time: number) => number): TurnFacts {
  return turn.openedAt === undefined ? {} : { openedAt: clamp(turn.openedAt) };
}

function lifeClaims(parts: SessionParts): readonly Claim[] {
  const { otherLife, transcript } = parts;
  if (otherLife.kind === 'unknown') return [];
  const present = otherLife.kind === 'present';
  return [
    {
      feed: 'claude-code.process',
      ...(present ? { owner: String(otherLife.pid) } : {}),
      confidence: 'inferred',
      at: (present ? undefined : otherLife.at) ?? transcript?.mtimeMs ?? 0,
      says: { kind: 'silent' },
      life: present ? 'alive' : 'dead',
      detail: otherLife.why,
    },
  ];
}

function factsOf(parts: SessionParts): SessionFacts {
  const { transcript, owners } = parts;
  const summary = transcript?.summary;
  const owner = owners.find((o) => o.life === 'alive') ?? owners[0];
  const title = (summary && chooseTitle(summary.titles)) ?? owner?.file.name;
  const workDir = summary?.cwd ?? owner?.file.cwd;
  const startedAt = summary?.startedAt ?? owner?.file.startedAt;
  const lastActivityAt = activityOf(transcript) ?? parts.unread?.stat.mtimeMs ?? owner?.file.statusAt;
  const entrypoint = owner?.file.entrypoint ?? summary?.entrypoint;
  const pids = owners.filter((o) => o.life === 'alive').map((o) => o.file.pid);
  const present = parts.otherLife.kind === 'present' ? [parts.otherLife.pid] : [];
  const lineage = lineageOf(parts);
  return {
    source: 'transcript',
    ...(title ? { title } : {}),
    ...(workDir ? { workDir } : {}),
    ...(summary?.turn.model ? { model: summary.turn.model } : {}),
    ...(startedAt !== undefined ? { startedAt } : {}),
    ...(lastActivityAt !== undefined ? { lastActivityAt } : {}),
    ...(summary?.turn.usedTokens !== undefined
      ? { contextUsage: { usedTokens: summary.turn.usedTokens } }
      : {}),
    ...(entrypoint ? { headless: entrypoint !== 'cli' } : {}),
    ...(pids.length + present.length > 0 ? { pids: [...pids, ...present] } : {}),
    ...(lineage ? { lineage } : {}),
    ...(parts.note ? { note: parts.note } : {}),
    ...fileOf(parts),
    native: nativeOf(parts),
  };
}

function fileOf({ transcript, unread }: SessionParts): Pick<SessionFacts, 'sizeBytes' | 'file'> {
  if (transcript) return { sizeBytes: transcript.size, file: transcript.path };
  return unread ? { sizeBytes: unread.stat.size, file: unread.path } : {};
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
  return {
    ...(path ? { transcriptFile: baseName(path) } : {}),
    ...(version ? { version } : {}),
    ...(summary?.gitBranch ? { gitBranch: summary.gitBranch } : {}),
    ...(jobId ? { jobId } : {}),
  };
}

function baseName(path: string): string {
  return path.split(/[\\/]/).at(-1) ?? path;
}
