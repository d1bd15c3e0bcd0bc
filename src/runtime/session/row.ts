import type { Confidence } from './evidence.ts';
import { type PetActivity, type PetReaction, petSignals } from './pet.ts';
import { needsUser, type PublicState, publicState } from './project.ts';
import type {
  ContextUsage,
  Lineage,
  Session,
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

/** Makes the row of one session. */
export function sessionRow(session: Session): SessionRow {
  const { facts, shown } = session;
  const state = shown.state;
  return {
    ...session.ref,
    title: facts.title ?? null,
    workDir: facts.workDir ?? null,
    state: publicState(state),
    ...petSignals(state),
    model: facts.model ?? null,
    lastActivityAt: iso(facts.lastActivityAt),
    startedAt: iso(facts.startedAt),
    source: facts.source ?? 'transcript',
    ...(facts.native ? { native: facts.native } : {}),
    ...evidenceOf(session),
    life: shown.life,
    ...(needsUser(shown) ? { needsYou: true as const } : {}),
    ...(state.kind === 'waiting' && state.on !== 'unspecified' ? { waitingOn: state.on } : {}),
    ...(state.kind === 'working' && state.retrying ? { retrying: true as const } : {}),
    ...(shown.backgroundWork > 0 ? { backgroundWork: shown.backgroundWork } : {}),
    ...(shown.error ? { error: shown.error } : {}),
    ...(facts.note ? { note: facts.note } : {}),
    origin: session.origin,
    visibility: session.visibility,
    ...familyOf(session),
    ...(facts.contextUsage ? { contextUsage: facts.contextUsage } : {}),
    ...(facts.endpoint ? { endpoint: facts.endpoint } : {}),
    ...(facts.headless ? { headless: true as const } : {}),
    ...(facts.archived ? { archived: true as const } : {}),
    ...(facts.pids && facts.pids.length > 0 ? { pids: facts.pids } : {}),
    ...(facts.sizeBytes === undefined ? {} : { sizeBytes: facts.sizeBytes }),
  };
}

function evidenceOf(session: Session): Pick<SessionRow, 'evidence'> {
  const { evidence } = session.shown;
  const at = iso(evidence?.at);
  return evidence && at ? { evidence: { source: evidence.source, at, confidence: evidence.confidence } } : {};
}

function familyOf(session: Session): Pick<SessionRow, 'lineage' | 'subAgents' | 'shownFrom'> {
  const { lineage } = session.facts;
  return {
    ...(lineage && Object.keys(lineage).length > 0 ? { lineage } : {}),
    ...(session.subAgents.length > 0 ? { subAgents: session.subAgents.map((ref) => ref.sessionId) } : {}),
    ...(session.shownFrom ? { shownFrom: session.shownFrom } : {}),
  };
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
