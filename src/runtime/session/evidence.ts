import type { Outcome, SessionState } from './state.ts';

/** `exact`: the runtime's own API, stream or live file. `reported`: a hook. `inferred`: a file was read. */
export type Confidence = 'exact' | 'reported' | 'inferred';

/** What a state rests on, as every list shows it. `at` is epoch milliseconds. */
export interface Evidence {
  readonly source: string;
  readonly at: number;
  readonly confidence: Confidence;
}

/** The newest turn that a feed knows of. Times are the runtime's own, epoch milliseconds. */
export interface TurnFacts {
  /** When the newest prompt of a turn was given. */
  readonly openedAt?: number;
  /** When that turn ended, if this feed saw an end. Always >= `openedAt` of the same turn. */
  readonly endedAt?: number;
  readonly end?: Outcome;
  /** What went wrong, already one line, for `failed`. */
  readonly error?: string;
}

/** A feed says nothing about the turn, only that somebody lives (a lock, a process, a file without status). */
export interface Silent {
  readonly kind: 'silent';
}

/**
 * One feed's standing statement about one session. A feed replaces its own claim; claims never edit each
 * other. `fuse` decides between them, and `session-why` prints them all.
 */
export interface Claim {
  /** Stable name of the feed, `<runtime>.<feed>`, for example `claude-code.live-file`. */
  readonly feed: string;
  /** Tells apart several speakers of one feed: a pid, an endpoint. */
  readonly owner?: string;
  readonly confidence: Confidence;
  /** When the runtime dates the fact that the state rests on, epoch milliseconds. */
  readonly at: number;
  readonly says: SessionState | Silent;
  readonly turn?: TurnFacts;
  /** Proof about the owner process: `alive`, proven `dead`, or nothing known. */
  readonly life?: 'alive' | 'dead';
  /**
   * Epoch milliseconds of the newest parsed record that answers a wait: the result of the pending call, an
   * interrupt, a new typed prompt. Only a record can be an answer; growth and silence never are.
   */
  readonly answeredAt?: number;
  /**
   * How long an open turn stands on this claim alone while its owner lives, in milliseconds. Absent means
   * for ever: a tool call may run for hours.
   */
  readonly staleAfterMs?: number;
  /**
   * Every wait of this owner shows here, within a moment: a hook's wait is not raised over it. So it is
   * where a program without a user refuses by itself what it would have to ask.
   */
  readonly showsWaits?: boolean;
  /**
   * The program writes down here when each turn begins and ends, and what is done in it, at once. Between feeds these
   * records then decide that (`ledger.ts`); reports add only what can't stand in them.
   */
  readonly ledger?: boolean;
  /** Background shells or jobs still running although the turn is over. */
  readonly backgroundWork?: number;
  /** One line for `session-why`: the record, event or answer that was seen, without its content. */
  readonly detail: string;
  /** Records of this feed that did not fit and were skipped. */
  readonly skipped?: number;
}

/** One line of the evidence chain: what a feed said and what became of it. */
export interface EvidenceLink {
  readonly feed: string;
  readonly owner?: string;
  readonly at: number;
  readonly confidence: Confidence;
  readonly says: SessionState | Silent;
  readonly verdict: 'decides' | 'agrees' | 'refines' | 'overruled' | 'life only';
  /** Why it did not decide, or by which rule it did. */
  readonly why: string;
  readonly detail: string;
  readonly skipped?: number;
}
