/** What a handler knows of its request. */
export interface RequestContext {
  /**
   * Aborted when the connection breaks, or when the drain at shutdown has lasted too long. A client that has
   * only said all it had to say still waits for its answer, and looks the same as one that left quietly.
   */
  readonly signal: AbortSignal;
}

/** Answers one operation. What it returns is the reply's payload; what it throws is its error text (S-303). */
export type OpHandler = (payload: unknown, context: RequestContext) => unknown;

/** Something that can be watched as whole snapshots (S-319 … S-324). */
export interface SnapshotSource {
  /** Moves whenever a watcher would see something new. */
  version(): number;
  /** Calls back after every move; returns the function that ends it. */
  onChange(listener: () => void): () => void;
  /** The payload of a frame as it is now. Must not move the version (S-121). */
  sample(): unknown;
}

/** One line of `status` (S-310). */
export interface ServiceStatus {
  readonly healthy: boolean;
  readonly summary: string;
  readonly detail?: unknown;
}

/** A named set of operations behind the socket. */
export interface Service {
  readonly name: string;
  readonly ops: Readonly<Record<string, OpHandler>>;
  /**
   * Operations that take their connection over. Each reads its payload and may refuse it by throwing; the client
   * then gets an error reply and the connection stays as it was (S-325).
   */
  readonly subscriptions?: Readonly<Record<string, (payload: unknown) => SnapshotSource>>;
  status?(): ServiceStatus;
  /** Called when accepting has failed for a while, with how long (S-209). */
  creditOutage?(ms: number): void;
  /** Called once at shutdown, after the connections have ended (S-336). */
  stop?(): Promise<void>;
}
