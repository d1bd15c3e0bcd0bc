import type { SessionRef } from './session/session.ts';

/**
 * The interfaces for acting on sessions. "Accepted" means that the runtime said
 * so, "done" means that the turn's own end was seen; neither is ever assumed (A1, M6, M7).
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

export interface SendRequest {
  /** The session to continue; absent for a new one. */
  readonly session?: SessionRef;
  /** The whole text, any Unicode, within the limit of `limits.ts`. Never put on a command line. */
  readonly text: string;
  /** Start folder of a new session; absent means where the session began. */
  readonly workDir?: string;
  readonly model?: string;
  readonly whenOwned: WhenOwned;
  readonly approvals: ApprovalPolicy;
  /** How long the turn is followed; afterwards it goes on without us. Milliseconds; absent: accepted-and-return. */
  readonly followMs?: number;
}

/** A permission or a question that the runtime waits for. Bound to the exact action: a stale id is refused (A2). */
export interface PendingRequest {
  /** The runtime's own id, or one of ours for a request that has none; unique within its session. */
  readonly requestId: string;
  readonly session: SessionRef;
  readonly kind: 'permission' | 'plan' | 'question' | 'form';
  /** Epoch milliseconds at which it was asked, where known. */
  readonly askedAt?: number;
  /** The tool's name, or what asks. */
  readonly subject: string;
  /** The exact command, path or plan that would be allowed: local use only. */
  readonly detail: string;
  readonly questions?: readonly Question[];
  /** Which answers the runtime takes. */
  readonly allows: readonly Decision[];
}

export interface Question {
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
  /** Answers by question id, in the order asked. */
  readonly answers?: Readonly<Record<string, readonly string[]>>;
}

/** One event of an action, in order. The first is `accepted` or `refused`; after `done` or `refused` nothing comes. */
export type ControlEvent =
  | {
      readonly type: 'accepted';
      readonly at: number;
      readonly session: SessionRef;
      readonly mode: PushMode;
      readonly detail: string;
    }
  | {
      readonly type: 'progress';
      readonly at: number;
      readonly doing: 'running' | 'streaming' | 'tool' | 'retrying';
      readonly text?: string;
      readonly tool?: string;
    }
  | { readonly type: 'request'; readonly at: number; readonly request: PendingRequest }
  | { readonly type: 'resolved'; readonly at: number; readonly requestId: string; readonly decision: string }
  | {
      readonly type: 'done';
      readonly at: number;
      readonly outcome: 'completed' | 'failed' | 'stopped' | 'limited';
      readonly text?: string;
      readonly error?: string;
      readonly exitCode?: number | null;
    }
  | { readonly type: 'left'; readonly at: number; readonly reason: 'followed long enough' | 'caller left' }
  | {
      readonly type: 'refused';
      readonly at: number;
      readonly reason: string;
      readonly kind: RefusalKind;
      readonly next: string;
    };

/** Why the runtime, or we, would not. Each has its exit code (`errors.ts`). */
export type RefusalKind =
  | 'ownedElsewhere'
  | 'refused'
  | 'unsupported'
  | 'runtimeMissing'
  | 'notFound'
  | 'timedOut'
  | 'network';

export interface AbortRequest {
  readonly session: SessionRef;
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
  | {
      readonly kind: 'refused';
      readonly reason: string;
      readonly refusal: RefusalKind;
      readonly next: string;
    };

export type ApprovalResult =
  | { readonly kind: 'applied'; readonly detail: string }
  /** Sent, but the runtime has not acknowledged it in time (A1). */
  | { readonly kind: 'sent'; readonly detail: string }
  | {
      readonly kind: 'refused';
      readonly reason: string;
      readonly refusal: RefusalKind;
      readonly next: string;
    };

/** What of a runtime can be acted on. A capability is an optional member; what is absent can't be done. */
export interface RuntimeControl<Context> {
  /** Sends a message, or starts a session with it. Ends by itself after `done`, `left` or `refused`. */
  send?(context: Context, request: SendRequest, signal: AbortSignal): AsyncIterable<ControlEvent>;
  abort?(context: Context, request: AbortRequest): Promise<AbortResult>;
  /** Everything that waits for an answer now, asked of the runtime itself. */
  pending?(context: Context, session?: SessionRef): Promise<readonly PendingRequest[]>;
  approve?(context: Context, answer: ApprovalAnswer): Promise<ApprovalResult>;
  /** Starts a session without a prompt, where the runtime can. */
  create?(
    context: Context,
    request: { readonly workDir: string; readonly model?: string; readonly title?: string },
  ): Promise<SessionRef>;
}
