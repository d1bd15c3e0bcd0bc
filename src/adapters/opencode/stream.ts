import { type BusEvent, mayMatter, readBusEvent } from './bus.ts';
import type { Endpoint } from './endpoints.ts';
import { openStream } from './http.ts';
import { createSseParser } from './sse.ts';
import { parseJson } from './values.ts';

/** How long a server may say nothing before its stream counts as lost: heartbeats come every 10 s. Milliseconds. */
export const SILENCE_MS = 35_000;
const OPEN_MS = 3_000;

export interface StreamListener {
  /**
   * The first bytes are there, so that from now on nothing is missed: the server answers before it listens to itself.
   * What happened before is not repeated.
   */
  heard(): void;
  event(event: BusEvent): void;
}

/** Timers, injected. */
export interface StreamTimers {
  after(milliseconds: number, call: () => void): () => void;
}

/**
 * Listens to `/global/event` until the stream ends or `signal` aborts. Resolves with the reason it ended, one
 * line; never throws. Events that can't matter are dropped unparsed.
 */
export async function listen(
  endpoint: Endpoint,
  listener: StreamListener,
  timers: StreamTimers,
  signal: AbortSignal,
): Promise<string> {
  const stream = await openStream({
    url: `${endpoint.url}/global/event`,
    timeoutMs: OPEN_MS,
    maxBytes: 0,
    signal,
    ...(endpoint.credentials ? { credentials: endpoint.credentials } : {}),
  });
  if (stream.kind !== 'stream') return stream.reason;
  const silence = watchdog(timers, () => stream.close());
  const parser = createSseParser();
  try {
    silence.feed();
    let first = true;
    for await (const chunk of stream.chunks) {
      silence.feed();
      if (first) listener.heard();
      first = false;
      for (const data of parser.push(chunk)) {
        const event = mayMatter(data) ? readBusEvent(parseJson(data)) : undefined;
        if (event) listener.event(event);
      }
    }
  } catch (error) {
    // A killed server cuts the connection; that is how most streams end.
    return error instanceof Error
      ? `the stream was cut (${error.message.split('\n', 1)[0]})`
      : 'the stream was cut';
  } finally {
    silence.stop();
    stream.close();
  }
  return silence.bitten() ? `nothing came for ${SILENCE_MS / 1_000} s` : 'the server closed the stream';
}

function watchdog(timers: StreamTimers, bite: () => void) {
  const state = { cancel: () => {}, bitten: false };
  return {
    feed(): void {
      state.cancel();
      state.cancel = timers.after(SILENCE_MS, () => {
        state.bitten = true;
        bite();
      });
    },
    stop: () => state.cancel(),
    bitten: () => state.bitten,
  };
}
