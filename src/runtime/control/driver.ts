import type {
  ApprovalAnswer,
  ApprovalPolicy,
  ApprovalResult,
  PendingRequest,
  Refusal,
  TurnEnd,
  WhenOwned,
} from '../control.ts';
import type { KillReport, ProcessIdentity } from '../process/types.ts';
import type { SessionRef } from '../session/session.ts';

/**
 * What one session's host is started with. Crosses a pipe as JSON, and holds no message.
 */
export interface HostSpec {
  /** The session that the host owns; for a new one or a fork its id is chosen before it exists. */
  readonly session: SessionRef;
  readonly start:
    | { readonly kind: 'resume' }
    | { readonly kind: 'new' }
    | { readonly kind: 'fork'; readonly of: string };
  /** Where the runtime is started. Absolute. */
  readonly workDir: string;
  /** After how long an unanswered request is denied (A8), milliseconds. */
  readonly approvalMs: number;
  /** How long the process stays after a turn, milliseconds; 0: only while messages wait. */
  readonly keepMs: number;
  /** What the runtime's adapter needs besides: its home folder, a version. Small and not secret. */
  readonly native: Readonly<Record<string, string>>;
}

/** One message for a session. */
export interface Message {
  /** A UUID of the sender's choice; the same id twice is the same message. */
  readonly id: string;
  readonly text: string;
  readonly whenOwned: WhenOwned;
  readonly approvals: ApprovalPolicy;
  readonly model?: string;
}

/** Somebody else has the session, or it can't take a message yet. */
export interface Obstacle {
  /** `owned` passes by itself when the owner leaves or rests, so a message may wait for it; `other` doesn't. */
  readonly kind: 'owned' | 'other';
  readonly refusal: Refusal;
  /** What a message waits for, in words: `until process 12 leaves`. */
  readonly until: string;
}

/** What a driver tells its host. Events belong to the message whose `turn` is running, if one is. */
export interface TurnSink {
  /** The runtime has the message. At most once a turn, and before anything else of it. */
  accepted(detail: string, mode: 'owned' | 'process' | 'server', resume?: string): void;
  progress(doing: 'running' | 'streaming' | 'tool' | 'retrying', text?: string, tool?: string): void;
  note(text: string): void;
  /** Also outside of a turn: background work may ask. False: too many wait, so it must be denied at once. */
  request(request: PendingRequest): boolean;
  /** The runtime no longer waits for this request, whoever saw to that. */
  withdrawn(requestId: string): void;
  /** The process that runs the session now, to be found again if this host is killed; undefined: none. */
  child(identity: ProcessIdentity | undefined): void;
}

/** The result of one turn. */
export type TurnResult =
  | ({ readonly kind: 'done' } & TurnEnd)
  /** Only before `accepted`: the message is not in the session. */
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/**
 * Runs one session for a host: starts, resumes, feeds and ends the runtime's process. The host calls `turn` for one
 * message at a time; `answer`, `interrupt` and `kill` may come while it runs. Nothing here throws for what the
 * runtime does.
 */
export interface HostDriver {
  /** Who is in the way now. Asked with the session's lock held, right before each message. */
  look(): Promise<Obstacle | undefined>;
  /**
   * Hands one message over and follows its turn to the end; starts or resumes the process where none runs.
   *
   * @param last asked at the turn's end: nothing more will come, so the process may be ended to have its exit code
   */
  turn(message: Message, last: () => boolean): Promise<TurnResult>;
  /** Starts the process without a message; a refusal says why it can't. */
  open(message: Pick<Message, 'approvals' | 'model'>): Promise<Refusal | undefined>;
  /** Answers a request that `TurnSink.request` has told of. */
  answer(request: PendingRequest, answer: ApprovalAnswer): Promise<ApprovalResult>;
  /** Asks the runtime to stop the running turn; true once its end was seen. */
  interrupt(): Promise<boolean>;
  /** Work that goes on although no turn runs; the host stays for it. */
  busy(): boolean;
  /** Ends the process: in its own time (`rest`), or with TERM and KILL (`kill`). Says what is left. */
  close(how: 'rest' | 'kill'): Promise<KillReport>;
}
