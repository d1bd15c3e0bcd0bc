import type { SessionRef, Sighting } from './session/session.ts';

/**
 * The interfaces that the core calls and that adapters fill. The core never imports an adapter;
 * commands and the daemon hand them in.
 */

/** Capability words of an instance: the reference's ten, and the existing connector's `processWatch`. */
export type Capability =
  | 'sessionList'
  | 'sessionHistory'
  | 'liveWatch'
  | 'sendMessage'
  | 'sendAsync'
  | 'abort'
  | 'approval'
  | 'attachments'
  | 'nativeStatus'
  | 'connectorOwnedOnly'
  | 'processWatch';

/** A running gateway, server or bridge of a runtime, or the store its sessions lie in (`cli-surface.md` §5). */
export interface RuntimeInstance {
  readonly runtimeId: string;
  readonly instanceId: string;
  readonly label: string;
  readonly status: 'running' | 'available' | 'stopped' | 'missing' | 'error';
  readonly endpoint?: string;
  /** One line: what is wrong, and what to do about it. */
  readonly error?: string;
  readonly capabilities: readonly Capability[];
  readonly metadata?: Readonly<Record<string, string | number | boolean | null>>;
}

/** Something a scan could not read. The rest of the list is always there; `session-why` and stderr show these. */
export interface ScanProblem {
  /** A file, an endpoint or a process, as the user knows it. */
  readonly subject: string;
  /** One line naming the reason. */
  readonly reason: string;
  /** How many things were left out because of it. */
  readonly skipped: number;
}

/** One runtime's whole inventory at one moment. */
export interface FeedScan {
  readonly instances: readonly RuntimeInstance[];
  readonly sightings: readonly Sighting[];
  readonly problems: readonly ScanProblem[];
}

export interface ScanOptions {
  /** Only the sessions that matter to this id (may be shortened); the feed may ignore it. */
  readonly only?: string;
  /** Skip live sources that need a connection (a watch already holds them). */
  readonly withoutLive?: boolean;
  /** Epoch milliseconds: sessions whose files are older need not be read beyond what the index holds. */
  readonly since?: number;
  /** An endpoint the user named (`--opencode-url`). */
  readonly endpoint?: string;
}

/** What a watch tells its owner. */
export interface FeedSink {
  /** Something may have changed: scan this feed again soon. Cheap to call often. */
  changed(): void;
  /** A live source spoke: standing claims, by the live source's own scope name. */
  sighted(scope: string, sightings: readonly Sighting[]): void;
  /** A live source was lost: its claims no longer stand. */
  lost(scope: string, reason: string): void;
}

export interface FeedWatch {
  close(): Promise<void>;
  /** How it watches, in words, for `daemon status` ("files", "polling every 5 s: too many watches"). */
  status(): string;
}

/** One entry of a session's history, bounded and cleaned. */
export interface HistoryEntry {
  /** Epoch milliseconds, where the runtime says. */
  readonly at?: number;
  readonly role: 'user' | 'assistant' | 'tool' | 'system';
  readonly text: string;
  /** True when the text was cut to the bound. */
  readonly cut?: boolean;
}

export interface History {
  /** Oldest first. */
  readonly entries: readonly HistoryEntry[];
  /** True when older entries were left out. */
  readonly more: boolean;
  readonly skipped: number;
}

export interface HistoryBounds {
  readonly entries: number;
  /** Bytes of UTF-8 in all entries together. */
  readonly bytes: number;
}

/** A program with our extension inside it, as it names itself. */
export interface InsideProgram {
  readonly pid: number;
}

/** Reads what the extension inside one program reports, for as long as it is connected. */
export interface InsideReader {
  /** One of the runtime's own events, as it came. What does not fit is skipped. */
  hear(event: unknown): void;
  /** The program has left, or the connection is lost: nothing that it said stands any more. */
  close(reason: string): void;
}

/** What every runtime's feed can do; what one can't do is absent. `Context` is what its owner injects. */
export interface RuntimeFeed<Context> {
  readonly id: string;
  scan(context: Context, options?: ScanOptions): Promise<FeedScan>;
  watch?(context: Context, sink: FeedSink): Promise<FeedWatch>;
  /** For a runtime whose extension sends events; each program has a reader of its own. */
  inside?(context: Context, sink: Pick<FeedSink, 'sighted' | 'lost'>, program: InsideProgram): InsideReader;
  history?(context: Context, session: SessionRef, bounds: HistoryBounds): Promise<History>;
}
