import type { Confidence } from './evidence.ts';
import { type PetActivity, type PetReaction, petSignals } from './pet.ts';
import { needsUser, type PublicState, publicState } from './project.ts';
import type {
  ContextUsage,
  Lineage,
  Session,
  SessionFacts,
  SessionOrigin,
  SessionSource,
  SessionVisibility,
} from './session.ts';

/**
 * One session as JSON: the existing connector's fields (`cli-surface.md` §5) and ours beside them. Times are ISO,
 * UTC. Fields that say nothing are left out, except those the existing connector writes as null.
 */
export interface SessionRow {
  readonly runtimeId: string;
  readonly instanceId: string;
  readonly sessionId: string;
  readonly title: string | null;
  /** The clear path, for this computer only; null when hidden. */
  readonly workDir: string | null;
  readonly state: PublicState;
  readonly petReaction: PetReaction;
  readonly petActivity?: PetActivity;
  readonly model: string | null;
  readonly lastActivityAt: string | null;
  readonly startedAt: string | null;
  readonly source: SessionSource;
  readonly native?: Readonly<Record<string, string | number | boolean | null>>;
  /** What the state rests on. */
  readonly evidence?: { readonly source: string; readonly at: string; readonly confidence: Confidence };
  /** Whether an owner process lives: proven, proven gone, or not known. */
  readonly life: 'alive' | 'dead' | 'unknown';
  /** True when a live session waits for its user. */
  readonly needsYou?: true;
  /** What a wait is about: `tool`, `plan`, `question`, `form`, `output-limit`, `setup`. */
  readonly waitingOn?: string;
  /** True while the program repeats a failed request to its model. */
  readonly retrying?: true;
  /** Background shells or jobs that outlive the turn. */
  readonly backgroundWork?: number;
  readonly error?: string;
  readonly note?: string;
  readonly origin: SessionOrigin;
  readonly visibility: SessionVisibility;
  readonly lineage?: Lineage;
  readonly subAgents?: readonly string[];
  /** The sub-agent whose state is shown in place of the session's own. */
  readonly shownFrom?: string;
  readonly contextUsage?: ContextUsage;
  readonly endpoint?: string;
  readonly headless?: true;
  readonly archived?: true;
  readonly pids?: readonly number[];
  readonly sizeBytes?: number;
}

const iso = (at: number | undefined): string | null => {
  if (at === undefined || !Number.isFinite(at) || Math.abs(at) > 8.64e15) return null;
  return new Date(at).toISOString();
};

/** Makes the row of one session. Built step by step, since a list has thousands of them. */
export function sessionRow(session: Session): SessionRow {
  const { facts, shown, ref } = session;
  const { state, evidence } = shown;
  const pet = petSignals(state);
  const row: Writable<SessionRow> = {
    runtimeId: ref.runtimeId,
    instanceId: ref.instanceId,
    sessionId: ref.sessionId,
    title: facts.title ?? null,
    workDir: facts.workDir ?? null,
    state: publicState(state),
    petReaction: pet.petReaction,
    model: facts.model ?? null,
    lastActivityAt: iso(facts.lastActivityAt),
    startedAt: iso(facts.startedAt),
    source: facts.source ?? 'transcript',
    life: shown.life,
    origin: session.origin,
    visibility: session.visibility,
  };
  // Mostly the same moment, and a list has thousands of them.
  const isNewest = evidence?.at === facts.lastActivityAt;
  const evidenceAt = isNewest ? row.lastActivityAt : iso(evidence?.at);
  if (pet.petActivity) row.petActivity = pet.petActivity;
  if (facts.native) row.native = facts.native;
  if (evidence && evidenceAt) {
    row.evidence = { source: evidence.source, at: evidenceAt, confidence: evidence.confidence };
  }
  addState(row, session);
  addFamily(row, session);
  addFacts(row, facts);
  return row;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

function addState(row: Writable<SessionRow>, { shown }: Session): void {
  const { state } = shown;
  if (needsUser(shown)) row.needsYou = true;
  if (state.kind === 'waiting' && state.on !== 'unspecified') row.waitingOn = state.on;
  if (state.kind === 'working' && state.retrying) row.retrying = true;
  if (shown.backgroundWork > 0) row.backgroundWork = shown.backgroundWork;
  if (shown.error) row.error = shown.error;
}

function addFamily(row: Writable<SessionRow>, session: Session): void {
  const { lineage } = session.facts;
  if (lineage && Object.keys(lineage).length > 0) row.lineage = lineage;
  if (session.subAgents.length > 0) row.subAgents = session.subAgents.map((ref) => ref.sessionId);
  if (session.shownFrom) row.shownFrom = session.shownFrom;
}

function addFacts(row: Writable<SessionRow>, facts: SessionFacts): void {
  if (facts.note) row.note = facts.note;
  if (facts.contextUsage) row.contextUsage = facts.contextUsage;
  if (facts.endpoint) row.endpoint = facts.endpoint;
  if (facts.headless) row.headless = true;
  if (facts.archived) row.archived = true;
  if (facts.pids && facts.pids.length > 0) row.pids = facts.pids;
  if (facts.sizeBytes !== undefined) row.sizeBytes = facts.sizeBytes;
}

/** Hides what could tell others about the work: title, path and labels (R-37, `--redact`). */
export function redactRow(row: SessionRow): SessionRow {
  const { petActivity, native: _native, error: _error, note: _note, endpoint: _endpoint, ...rest } = row;
  return {
    ...rest,
    title: null,
    workDir: null,
    ...(petActivity ? { petActivity: { kind: petActivity.kind } } : {}),
  };
}
