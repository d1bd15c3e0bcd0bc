import type { HostDriver, HostSpec, TurnSink } from './control/driver.ts';
import type { Session, SessionRef } from './session/session.ts';

/**
 * The interfaces for acting on sessions. "Accepted" means that the runtime said so, "done" means that the turn's own
 * end was seen; neither is ever assumed (A1, M6, M7). Nothing is approved by sending a message.
 *
 * A runtime that is driven through a process of ours needs only a `HostDriver` (`control/driver.ts`) and the helpers
 * of `control/through-host.ts`; one with a server of its own fills the members itself and yields the same events.
 */

/** How a message reaches the runtime. */
export type PushMode =
  /** A server or socket of the runtime's own. */
  | 'server'
  /** A fresh process that resumes the session for one turn. */
  | 'process'
  /** A long-lived process that we own. */
  | 'owned'
  /** Inside the program's own process, through our extension. */
  | 'inside'
  /** Left with the runtime, or with us, until the owner rests or leaves. */
  | 'queue';

/** What to do when another process has the session open (M1): refuse is the default. */
export type WhenOwned = 'refuse' | 'queue' | 'fork' | 'force';

/** What a turn may do without asking. `ask` surfaces requests; the others are the runtime's own policies by name. */
export type ApprovalPolicy = 'ask' | 'deny' | 'runtime-default' | 'allow-edits';

export const APPROVAL_POLICIES: readonly ApprovalPolicy[] = ['ask', 'deny', 'allow-edits', 'runtime-default'];

/** A session that is known, as the list has it, or one that begins with this message. */
export type SendTarget =
  | { readonly kind: 'session'; readonly session: Session }
  | { readonly kind: 'new'; readonly workDir: string };

export interface SendRequest {
  readonly target: SendTarget;
  /** The whole text, any Unicode, within the limit of `limits.ts`. Never put on a command line. */
  readonly text: string;
  readonly model?: string;
  readonly whenOwned: WhenOwned;
  readonly approvals: ApprovalPolicy;
  /** After how long an unanswered request is denied (A8), milliseconds. */
  readonly approvalMs: number;
  /** How long a process of ours stays after the turn, for more messages, milliseconds; absent: the runtime's own. */
  readonly keepMs?: number;
  /** How long it is followed once accepted, or queued; it then goes on without us. Milliseconds; absent: not. */
  readonly followMs?: number;
  /** Where the runtime needs a server of ours: one that stays for later turns, which the owner asked for. */
  readonly managedServer?: boolean;
}

/** A permission or a question that the runtime waits for. Bound to the exact action: a stale id is refused (A2). */
export interface PendingRequest {
  /** The runtime's own id, or one of ours for a request that has none; unique within its session. */
  readonly requestId: string;
  readonly session: SessionRef;
  readonly kind: 'permission' | 'plan' | 'question' | 'form';
  /** Epoch milliseconds at which it was asked, where known. */
  readonly askedAt?: number;
  /** Epoch milliseconds at which it is denied for want of an answer (A8). */
  readonly expiresAt?: number;
  /** The tool's name, or what asks. */
  readonly subject: string;
  /** The exact command, path or plan that would be allowed: local use only. */
  readonly detail: string;
  /** True when `detail` is longer than what is shown of it. */
  readonly detailCut?: boolean;
  readonly questions?: readonly Question[];
  /** Which answers the runtime takes. */
  readonly allows: readonly Decision[];
  /** What `allow-session` would allow from then on, in the runtime's own words. */
  readonly sessionScope?: string;
}

export interface Question {
  /** `1`, `2`, … in the order asked. */
  readonly id: string;
  readonly text: string;
  readonly options: readonly { readonly label: string; readonly description?: string }[];
  readonly multiple: boolean;
}

/** Answers in the runtime's own semantics: once, for the session, or no. */
export type Decision = 'allow-once' | 'allow-session' | 'deny' | 'answer';

export interface ApprovalAnswer {
  readonly session: SessionRef;
  readonly requestId: string;
  readonly decision: Decision;
  /** A word to the model with a denial. */
  readonly note?: string;
  /** Answers by question id. */
  readonly answers?: Readonly<Record<string, readonly string[]>>;
}

/** Why the runtime, or we, would not. Each has its exit code (`errors.ts`). */
export type RefusalKind =
  | 'ownedElsewhere'
  | 'refused'
  | 'unsupported'
  | 'runtimeMissing'
  | 'notFound'
  | 'timedOut'
  | 'network';

/** A no, with its reason and what to try next. */
export interface Refusal {
  readonly reason: string;
  readonly kind: RefusalKind;
  /** A command or an action, one line. */
  readonly next: string;
}

/** How a turn ended. */
export interface TurnEnd {
  readonly outcome: 'completed' | 'failed' | 'stopped' | 'limited';
  readonly text?: string;
  readonly error?: string;
  /** The exit code of the process that ran it, where it has ended; null when a signal ended it. */
  readonly exitCode?: number | null;
  /** What the caller should know besides: calls that were denied, work that goes on in the background. */
  readonly notes?: readonly string[];
}

/**
 * One event of an action, in order. Before `accepted` or `refused` come only `queued` and `note`; after `done`,
 * `left` or `refused` nothing comes. Times are epoch milliseconds.
 */
export type ControlEvent =
  /** The message lies with us; `behind` names the request of ours that everything waits for (A4). */
  | {
      readonly type: 'queued';
      readonly at: number;
      readonly reason: string;
      readonly behind?: { readonly requestId: string; readonly subject: string };
    }
  /** Something to know that changes nothing: a huge session, an owner that was overridden. */
  | { readonly type: 'note'; readonly at: number; readonly text: string }
  | {
      readonly type: 'accepted';
      readonly at: number;
      readonly session: SessionRef;
      readonly mode: PushMode;
      readonly detail: string;
      /** The command with which the user goes on in a terminal (M4). */
      readonly resume?: string;
    }
  | {
      readonly type: 'progress';
      readonly at: number;
      readonly doing: 'running' | 'streaming' | 'tool' | 'retrying';
      readonly text?: string;
      readonly tool?: string;
    }
  | { readonly type: 'request'; readonly at: number; readonly request: PendingRequest }
  | {
      readonly type: 'resolved';
      readonly at: number;
      readonly requestId: string;
      /** A decision, or `expired` and `withdrawn` for one that nobody answered. */
      readonly decision: Decision | 'expired' | 'withdrawn';
    }
  | ({ readonly type: 'done'; readonly at: number } & TurnEnd)
  | {
      readonly type: 'left';
      readonly at: number;
      readonly reason: 'followed long enough' | 'caller left' | 'host lost';
    }
  | ({ readonly type: 'refused'; readonly at: number } & Refusal);

export interface AbortRequest {
  readonly session: SessionRef;
  /** The session as the list has it; absent for one that only a process of ours knows yet. */
  readonly known?: Session;
  /** Ends the process tree instead of asking the runtime to stop its turn. */
  readonly kill: boolean;
}

/** `stopped` only when the turn's end, or the tree's, was seen; survivors are named (K1). */
export type AbortResult =
  | { readonly kind: 'stopped'; readonly detail: string }
  | {
      readonly kind: 'survived';
      readonly survivors: readonly { readonly pid: number; readonly command: string }[];
    }
  | ({ readonly kind: 'refused' } & { readonly refusal: Refusal });

export type ApprovalResult =
  /** The runtime has acknowledged it. */
  | { readonly kind: 'applied'; readonly detail: string }
  /** Sent, but the runtime has not acknowledged it in time (A1). */
  | { readonly kind: 'sent'; readonly detail: string }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

export interface CreateRequest {
  readonly workDir: string;
  readonly model?: string;
  readonly title?: string;
  readonly approvals: ApprovalPolicy;
  readonly approvalMs: number;
  readonly keepMs?: number;
  /** As for {@link SendRequest}. */
  readonly managedServer?: boolean;
}

export type CreateResult =
  | { readonly kind: 'created'; readonly session: SessionRef; readonly detail: string }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/** What of a runtime can be acted on. A capability is an optional member; what is absent can't be done. */
export interface RuntimeControl<Context> {
  /** Sends a message, or starts a session with it. Ends by itself after `done`, `left` or `refused`. */
  send?(context: Context, request: SendRequest, signal: AbortSignal): AsyncIterable<ControlEvent>;
  abort?(context: Context, request: AbortRequest): Promise<AbortResult>;
  /** Everything that waits for an answer now, asked of the runtime itself: new on every call (A6). */
  pending?(context: Context, session?: SessionRef): Promise<readonly PendingRequest[]>;
  approve?(context: Context, answer: ApprovalAnswer): Promise<ApprovalResult>;
  /** Starts a session without a prompt, where the runtime can. */
  create?(context: Context, request: CreateRequest): Promise<CreateResult>;
  /** What a host of ours runs for a session; called in the host's own process. */
  host?(context: Context, spec: HostSpec, sink: TurnSink): HostDriver;
}
