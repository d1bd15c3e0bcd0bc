/** A transcript of Claude Code as a listing shows it; nothing of it was opened (S-602). */
export interface TranscriptSeen {
  /** The stem of its name, a UUID (S-604). */
  readonly id: string;
  readonly path: string;
  readonly size: number;
  /** Epoch milliseconds. */
  readonly mtimeMs: number;
}

/** A rollout of Codex as a listing shows it; a packed file stands under its unpacked name. */
export interface RolloutSeen {
  readonly path: string;
  readonly size: number;
  readonly mtimeMs: number;
}

/** What the first line of a rollout says (S-621). */
export type RolloutHead =
  | { readonly kind: 'thread'; readonly id: string; readonly cwd?: string }
  /** No line end yet: it is still being written. */
  | { readonly kind: 'unfinished' }
  /** Never a session of its own, whatever it grows to. */
  | { readonly kind: 'skip'; readonly gate: 'sub_agent' | 'no_meta' | 'no_id' | 'too_long' | 'unreadable' };

/** A thread's writer lock, by its id (S-623). */
export type LockProbe = (id: string) => 'held' | 'free' | 'absent' | 'unknown';

/** Lists by `stat` alone. Throws only when nothing at all can be said. */
export interface TranscriptPort {
  list(): readonly TranscriptSeen[];
}

/** The same for rollouts, their heads and the locks of their threads. */
export interface RolloutPort {
  list(): readonly RolloutSeen[];
  head(path: string): RolloutHead;
  /** Reads all locks once; the function tells one thread's (S-623, R-22). */
  locks(): LockProbe;
}

/** What the two discovery feeds look at; adapters know where it is, and commands hand it in. */
export interface DiscoveryPorts {
  readonly transcripts?: TranscriptPort;
  readonly rollouts?: RolloutPort;
}
