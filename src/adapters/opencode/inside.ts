import type { FeedSink, InsideProgram, InsideReader } from '../../runtime/feed.ts';
import { systemTimers } from '../../runtime/files/coalesce.ts';
import { readBusEvent } from './bus.ts';
import type { StreamTimers } from './stream.ts';
import { createStreamSessions } from './stream-sessions.ts';

/** Tells two plugins of one process apart: it has one for each of its directories. */
const counter = { last: 0 };

/**
 * Reads the bus of one OpenCode process as our plugin in it passes it on: the same events as those of a server's stream,
 * exact about what that process runs and about nothing else.
 *
 * @param now epoch milliseconds
 */
export function createInsideReader(
  sink: Pick<FeedSink, 'sighted' | 'lost'>,
  { pid }: InsideProgram,
  now: () => number,
  timers: StreamTimers = systemTimers,
): InsideReader {
  counter.last += 1;
  const sessions = createStreamSessions({
    server: { endpoint: { url: `inside ${pid} ${counter.last}`, named: false }, version: '' },
    inside: { pid },
    local: true,
    sink: { ...sink, changed: () => {} },
    timers,
    now,
  });
  return {
    hear(data) {
      const event = readBusEvent(data);
      if (event) sessions.hear(event);
    },
    close: sessions.lose,
  };
}
