/**
 * A client of the socket that shares no code with the service: bytes in, lines out, written from the text of
 * the protocol alone. It is what a stranger would write.
 */
import { createConnection, type Socket } from 'node:net';

export interface WireClient {
  readonly socket: Socket;
  /** Sends text as it is; the caller writes the line end. */
  raw(text: string | Uint8Array): void;
  /** Sends one value as a line and waits for the next line. */
  ask(value: unknown): Promise<Record<string, unknown>>;
  /** The next line, parsed. Rejects when the connection ends before one comes. */
  next(): Promise<Record<string, unknown>>;
  /** The next line as text. */
  nextText(): Promise<string>;
  /** Lines that have come and were not taken. */
  readonly waiting: number;
  /** Resolves when the server has ended the connection. */
  readonly ended: Promise<void>;
  close(): void;
}

/** Connects; rejects when nobody listens. */
export async function connectWire(path: string): Promise<WireClient> {
  const socket = createConnection({ path, allowHalfOpen: true });
  const lines: string[] = [];
  const takers: { resolve: (line: string) => void; reject: (error: Error) => void }[] = [];
  let rest = Buffer.alloc(0);
  const { promise: ended, resolve: markEnded } = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();

  const finish = (): void => {
    markEnded();
    opened.reject(new Error('closed before it was open'));
    for (const taker of takers.splice(0)) taker.reject(new Error('the connection ended'));
  };
  socket.on('connect', () => opened.resolve());
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    for (let lf = rest.indexOf(10); lf >= 0; lf = rest.indexOf(10)) {
      const line = rest.subarray(0, lf).toString('utf8');
      rest = rest.subarray(lf + 1);
      const taker = takers.shift();
      if (taker) taker.resolve(line);
      else lines.push(line);
    }
  });
  socket.on('end', finish);
  socket.on('close', finish);
  socket.on('error', (error) => {
    opened.reject(error);
    finish();
  });
  await opened.promise;

  const nextText = (): Promise<string> => {
    const line = lines.shift();
    if (line !== undefined) return Promise.resolve(line);
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    takers.push({ resolve, reject });
    return promise;
  };
  const next = async (): Promise<Record<string, unknown>> => JSON.parse(await nextText());

  return {
    socket,
    raw: (text) => void socket.write(text),
    ask(value) {
      socket.write(`${JSON.stringify(value)}\n`);
      return next();
    },
    next,
    nextText,
    get waiting() {
      return lines.length;
    },
    ended,
    close: () => void socket.destroy(),
  };
}
