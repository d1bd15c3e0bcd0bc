import type { FeedSink } from '../../runtime/feed.ts';
import type { MutableLiveServers } from './live-servers.ts';
import type { ServerView } from './server-view.ts';
import type { Server } from './servers.ts';
import { listen, type StreamTimers } from './stream.ts';
import { createStreamSessions } from './stream-sessions.ts';

export interface ConnectionOptions {
  readonly server: Server;
  readonly local: boolean;
  readonly live: MutableLiveServers;
  readonly sink: FeedSink;
  readonly timers: StreamTimers;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Statuses and requests at this moment: the stream does not repeat what it has said before. */
  readonly snapshot: () => Promise<ServerView>;
  readonly signal: AbortSignal;
}

/**
 * Holds the event stream of one server and tells the sink what it says, until the stream is lost. Resolves with
 * the reason, one line, after the claims are withdrawn.
 */
export async function holdStream(options: ConnectionOptions): Promise<string> {
  const { server, local, live, sink, signal } = options;
  const sessions = createStreamSessions(options);

  const seed = async (): Promise<void> => {
    const snapshot = await options.snapshot();
    if (signal.aborted) return;
    sessions.seed(snapshot);
    live.put({ server, local, view: () => sessions.view() });
    sink.changed();
  };

  const seeding = { done: Promise.resolve() };
  const listener = {
    // Asked only now: the server answers the request before it listens to itself, and what happens in between no event
    // tells.
    heard() {
      seeding.done = seed();
    },
    event: sessions.hear,
  };
  const reason = await listen(server.endpoint, listener, options.timers, signal);
  await seeding.done;
  live.drop(server.endpoint.url);
  sessions.lose(reason);
  return reason;
}
