import { reasonOf } from '../../../runtime/errors.ts';
import { CONTROL } from '../../../runtime/limits.ts';
import { createRpc, introduce, type Rpc, type RpcListener } from './rpc.ts';

/** A connection of our own to a server that isn't ours. */
export interface ServerLink {
  readonly rpc: Rpc;
  /** Leaves; whatever runs there goes on. */
  close(): void;
}

export type Linked =
  | ({ readonly kind: 'linked' } & ServerLink)
  | { readonly kind: 'unreachable'; readonly reason: string };

/**
 * Connects to a server's socket and introduces us. Only for a server that holds a thread: it has had its first client
 * . Never throws.
 *
 * @param path the socket's real path
 */
export async function linkServer(path: string, listener: RpcListener): Promise<Linked> {
  const socket = openSocket(path);
  if (typeof socket === 'string') return { kind: 'unreachable', reason: socket };
  const feed = createRpc(async (line) => sendOn(socket, line), listener);
  const opened = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => opened.resolve(false), CONTROL.ackMs);
  socket.onopen = () => opened.resolve(true);
  socket.onerror = () => opened.resolve(false);
  socket.onmessage = (event) => {
    if (typeof event.data === 'string') feed.line(event.data);
  };
  socket.onclose = () => {
    opened.resolve(false);
    feed.lost('the app-server closed the connection');
  };
  const isOpen = await opened.promise;
  clearTimeout(timer);
  const close = (): void => {
    feed.rpc.close('we have closed the connection');
    socket.close();
  };
  const hello = isOpen ? await introduce(feed.rpc, CONTROL.ackMs) : undefined;
  if (hello?.kind === 'result') return { kind: 'linked', rpc: feed.rpc, close };
  close();
  return { kind: 'unreachable', reason: hello?.message ?? 'it does not accept' };
}

function openSocket(path: string): WebSocket | string {
  try {
    return new WebSocket(`ws+unix://${path}`);
  } catch (thrown) {
    return reasonOf(thrown);
  }
}

function sendOn(socket: WebSocket, line: string): boolean {
  if (socket.readyState !== WebSocket.OPEN) return false;
  socket.send(line);
  return true;
}
