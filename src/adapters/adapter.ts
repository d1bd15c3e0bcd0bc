import type { ActingContext } from '../runtime/control/context.ts';
import type { RuntimeControl } from '../runtime/control.ts';
import type { RuntimeFeed } from '../runtime/feed.ts';
import type { FileSystemPort } from '../runtime/files/file-system.ts';
import type { SessionIndex } from '../runtime/store/session-index.ts';

/** Diagnostics of an adapter. Goes to stderr or the log file, never to stdout; never holds content (S-903). */
export interface Logger {
  debug(message: string): void;
  warn(message: string): void;
}

/** Everything an adapter may touch of the outside world, injected. */
export interface AdapterContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The user's home folder. */
  readonly home: string;
  readonly platform: NodeJS.Platform;
  /** Epoch milliseconds. */
  now(): number;
  /** What is known of unchanged files; absent when the connector home can't be used. */
  readonly index?: SessionIndex;
  /** File operations; absent means the real ones. Tests count and disturb through it. */
  readonly files?: FileSystemPort;
  readonly log: Logger;
  readonly signal?: AbortSignal;
}

/** What acting on sessions needs beyond reading them. */
export interface ControlContext extends AdapterContext, ActingContext {}

/** All our knowledge of one runtime. A capability is an optional member: what is absent can't be done. */
export interface Adapter extends RuntimeFeed<AdapterContext> {
  /** How it is acted on; loaded on demand, so that reading commands don't pay for it. */
  control?(): Promise<RuntimeControl<ControlContext>>;
  /** Whether a process holds a session's writer lock (S-522); asked rarely, so it may read anew each time. */
  lockOf?(context: AdapterContext, sessionId: string): 'held' | 'free' | 'absent' | 'unknown';
}
