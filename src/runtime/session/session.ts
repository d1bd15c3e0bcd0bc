import type { Claim, Evidence, EvidenceLink } from './evidence.ts';
import type { Outcome, SessionState } from './state.ts';

/**
 * Identity of a session (design §2, R-32). `instanceId` names the store the session lies in
 * (`transcripts`, `local-data`), or an endpoint only for a store that is not on this computer.
 */
export interface SessionRef {
  readonly runtimeId: string;
  readonly instanceId: string;
  readonly sessionId: string;
}

/** The key of every map, ledger and event: `runtimeId:instanceId:sessionId`. */
export function sessionKey(ref: SessionRef): string {
  return `${ref.runtimeId}:${ref.instanceId}:${ref.sessionId}`;
}

export type SessionOrigin = 'buddy' | 'connectorOwned' | 'unboundLocal';
export type SessionVisibility = 'localSummaryOnly' | 'ownerVisible' | 'buddyBound' | 'serverVisible';

/** Where the inventory of a session was read, in the words of the existing connector (`cli-surface.md` §5). */
export type SessionSource =
  | 'gateway'
  | 'server'
  | 'cli'
  | 'acp'
  | 'transcript'
  | 'statusline'
  | 'database'
  | 'storage';

/** Family of a session: one row with its lineage, never two rows (design rule 6). */
export interface Lineage {
  /** The session this one runs under as a sub-agent. Such a session folds under its parent. */
  readonly parentId?: string;
  /** The session this one was forked from. */
  readonly forkedFromId?: string;
  /** How many files the session is made of, when more than one (rewinds, segments). */
  readonly segments?: number;
  /** Sub-agents of this session that are known by number only. */
  readonly subAgents?: number;
}

export interface ContextUsage {
  readonly usedTokens?: number;
  readonly maxTokens?: number;
  readonly usedPercent?: number;
}

/**
 * Descriptive facts, all best effort. A present value replaces a stored one, an absent value never erases
 * (S-006). Times are epoch milliseconds. `title` is cleaned (`title.ts`) before it gets here.
 */
export interface SessionFacts {
  readonly title?: string;
  readonly workDir?: string;
  readonly model?: string;
  readonly startedAt?: number;
  readonly lastActivityAt?: number;
  readonly source?: SessionSource;
  readonly lineage?: Lineage;
  readonly contextUsage?: ContextUsage;
  readonly endpoint?: string;
  readonly archived?: boolean;
  /** Who began it or runs it, where that isn't just somebody on this computer. */
  readonly origin?: SessionOrigin;
  /** Runs without a terminal (print mode, exec, server turn). */
  readonly headless?: boolean;
  /** Process ids that own the session now, as text for the user. */
  readonly pids?: readonly number[];
  /** Why it is not what it seems, in one line ("needs set-up: trust dialog"). */
  readonly note?: string;
  /** Size of the native file, bytes (a push into a huge session warns, case X10). */
  readonly sizeBytes?: number;
  /** Small, non-secret native metadata, as in `cli-surface.md` §5. Never content, never a full path. */
  readonly native?: Readonly<Record<string, string | number | boolean | null>>;
  /** The native file, local use only (`session-show`, `session-why`); never leaves the computer. */
  readonly file?: string;
}

/** One observed fact about one session. */
export interface Sighting {
  readonly session: SessionRef;
  readonly facts?: SessionFacts;
  readonly claims?: readonly Claim[];
}

/** What `fuse` made of the claims. */
export interface Fused {
  readonly state: SessionState;
  /** Whether an owner process is proven to live, proven gone, or neither. */
  readonly life: 'alive' | 'dead' | 'unknown';
  readonly evidence: Evidence | undefined;
  readonly chain: readonly EvidenceLink[];
  /** Start of the newest turn, epoch milliseconds. */
  readonly turnOpenedAt: number | undefined;
  /** End of that turn, where one is known, epoch milliseconds. */
  readonly turnEndedAt: number | undefined;
  readonly lastOutcome: Outcome | undefined;
  readonly error: string | undefined;
  readonly backgroundWork: number;
}

/** One session as the registry hands it out. */
export interface Session {
  readonly ref: SessionRef;
  readonly facts: SessionFacts;
  /** The state of this thread alone. */
  readonly own: Fused;
  /** The most urgent of its own state and its live sub-agents' (R-14). Equal to `own` without sub-agents. */
  readonly shown: Fused;
  /** The sub-agent whose state is shown, if it is not the session's own. */
  readonly shownFrom?: string;
  /** Sub-agent sessions folded under this one. */
  readonly subAgents: readonly SessionRef[];
  readonly origin: SessionOrigin;
  readonly visibility: SessionVisibility;
}
