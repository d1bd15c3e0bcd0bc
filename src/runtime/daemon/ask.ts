import { WIRE } from '../limits.ts';

/**
 * One request and its one line of answer, for what has some milliseconds in all: a prompt. Undefined where nobody
 * answers in time. `Bun.connect` and nothing else, since a client with reconnecting and streams takes longer to load than this takes
 * to run. Never rejects.
 */
export function askBriefly(address: string, line: string, waitMs: number): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const timer = setTimeout(() => resolve(undefined), waitMs);
  const chunks: Buffer[] = [];
  const state = { rest: Buffer.from(line, 'utf8'), bytes: 0, end: () => {} };
  const push = (socket: { write(bytes: Uint8Array): number }): void => {
    state.rest = state.rest.subarray(Math.max(0, socket.write(state.rest)));
  };
  const none = (): void => resolve(undefined);

  Bun.connect({
    unix: address,
    socket: {
      open(socket) {
        state.end = () => void socket.end();
        push(socket);
      },
      drain(socket) {
        if (state.rest.length > 0) push(socket);
      },
      data(_socket, chunk) {
        chunks.push(chunk);
        state.bytes += chunk.length;
        if (chunk.includes(10)) resolve(firstLine(Buffer.concat(chunks)));
        else if (state.bytes > WIRE.lineBytes) none();
      },
      end: none,
      close: none,
      error: none,
      connectError: none,
    },
  }).catch(none);

  return promise.finally(() => {
    clearTimeout(timer);
    state.end();
  });
}

function firstLine(bytes: Buffer): string {
  return bytes.subarray(0, bytes.indexOf(10)).toString('utf8');
}
