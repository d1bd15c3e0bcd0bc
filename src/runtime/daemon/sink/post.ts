/** What became of a report (S-936). */
export type PostOutcome = 'delivered' | 'daemon_rejected' | 'timeout' | 'transport_failed';

/** Longest reply that is looked at; ours are some bytes. */
const REPLY_BYTES = 64 * 1024;

/** How long a report may take, milliseconds. */
export interface Patience {
  /** Connecting, writing and the reply (S-403). */
  readonly allMs: number;
  /** The reply, once the whole line is with the system: from then on it arrives, whoever has left. */
  readonly replyMs?: number;
}

/**
 * Sends one line to the service and waits for its reply, as long as its caller has patience. What comes back decides the outcome and nothing else (S-402). Never rejects.
 *
 * `Bun.connect` rather than `node:net`: the latter takes as long to load as the rest of the sink.
 */
export function post(address: string, line: string, patience: Patience): Promise<PostOutcome> {
  const { promise, resolve } = Promise.withResolvers<PostOutcome>();
  const timers = [setTimeout(() => resolve('timeout'), patience.allMs)];
  const state = { rest: Buffer.from(line, 'utf8'), reply: '' };

  const push = (socket: { write(bytes: Uint8Array): number }): void => {
    const written = socket.write(state.rest);
    state.rest = state.rest.subarray(Math.max(0, written));
    if (state.rest.length > 0 || patience.replyMs === undefined) return;
    timers.push(setTimeout(() => resolve('timeout'), patience.replyMs));
  };

  Bun.connect({
    unix: address,
    socket: {
      open: push,
      drain: (socket) => {
        if (state.rest.length > 0) push(socket);
      },
      data: (socket, chunk) => {
        state.reply += chunk.toString('utf8');
        if (!state.reply.includes('\n') && state.reply.length < REPLY_BYTES) return;
        resolve(isGood(state.reply) ? 'delivered' : 'daemon_rejected');
        socket.end();
      },
      end: () => resolve('transport_failed'),
      close: () => resolve('transport_failed'),
      error: () => resolve('transport_failed'),
      connectError: () => resolve('transport_failed'),
    },
  }).catch(() => resolve('transport_failed'));

  return promise.finally(() => timers.forEach(clearTimeout));
}

function isGood(reply: string): boolean {
  try {
    const value: unknown = JSON.parse(reply.slice(0, reply.indexOf('\n')));
    return typeof value === 'object' && value !== null && 'ok' in value && value.ok === true;
  } catch {
    // Whatever answers there, it is not our service.
    return false;
  }
}
