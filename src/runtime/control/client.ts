import { connect, type Socket } from 'node:net';
import { endpointOf } from '../daemon/endpoint.ts';
import { createLineDecoder, encodeLine, type Frame } from '../daemon/line-codec.ts';
import { CLIENT } from '../limits.ts';
import { HOST_SERVICE } from './host-service.ts';

/** A host can't be reached any more, or said no to the form of a request. */
export class HostError extends Error {
  override readonly name = 'HostError';
}

/** One connection to a host: one request at a time, each with its reply. */
export interface HostClient {
  /**
   * The payload of the reply.
   *
   * @throws HostError when the host refused the request, has gone, or does not answer within `timeoutMs`
   */
  call(op: string, payload?: unknown, timeoutMs?: number): Promise<unknown>;
  close(): void;
}

/** Connects to the host behind a socket; undefined when nobody listens there. */
export async function connectHost(
  socketPath: string,
  platform: NodeJS.Platform,
): Promise<HostClient | undefined> {
  const socket = await opened(endpointOf(socketPath, platform).path);
  return socket && clientOver(socket);
}

function opened(path: string): Promise<Socket | undefined> {
  const { promise, resolve } = Promise.withResolvers<Socket | undefined>();
  const socket = connect(path);
  const timer = setTimeout(() => {
    socket.destroy();
    resolve(undefined);
  }, CLIENT.requestMs);
  socket.once('connect', () => resolve(socket));
  // Missing, refused, or a stale file of a host that was killed: all mean that nobody is there.
  socket.once('error', () => resolve(undefined));
  return promise.finally(() => clearTimeout(timer));
}

function clientOver(socket: Socket): HostClient {
  const decoder = createLineDecoder();
  const state = { waiting: undefined as ((frame: Frame | undefined) => void) | undefined, gone: false };
  const settle = (frame: Frame | undefined): void => {
    const waiting = state.waiting;
    state.waiting = undefined;
    waiting?.(frame);
  };
  const end = (): void => {
    state.gone = true;
    settle(undefined);
  };
  socket.on('data', (chunk: Buffer) => {
    for (const frame of decoder.push(chunk)) settle(frame);
  });
  socket.on('close', end);
  socket.on('error', end);

  return {
    async call(op, payload, timeoutMs = CLIENT.requestMs) {
      const line = encodeLine({ service: HOST_SERVICE, op, payload });
      if (!line) throw new HostError(`the request ${op} is over the line limit`);
      if (state.gone) throw new HostError('the host has gone');
      const { promise, resolve } = Promise.withResolvers<Frame | undefined>();
      const timer = setTimeout(() => {
        socket.destroy();
        settle(undefined);
      }, timeoutMs);
      state.waiting = resolve;
      socket.write(line);
      const frame = await promise;
      clearTimeout(timer);
      if (frame?.kind !== 'line') throw new HostError('the host has gone');
      return payloadOf(frame.text);
    },
    close: () => socket.destroy(),
  };
}

function payloadOf(line: string): unknown {
  const reply: unknown = JSON.parse(line);
  if (typeof reply !== 'object' || reply === null || !('ok' in reply)) throw new HostError('no reply');
  if (reply.ok === true) return 'payload' in reply ? reply.payload : undefined;
  throw new HostError('error' in reply ? String(reply.error) : 'refused');
}
