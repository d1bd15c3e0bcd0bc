import { reasonOf } from '../../../runtime/errors.ts';
import { VERSION } from '../../../version.ts';
import { asFields, type Fields, numberOf, objectOf, parseFields, textOf } from '../fields.ts';

/** What became of a request of ours. Nothing is thrown for what a server does. */
export type RpcAnswer =
  | { readonly kind: 'result'; readonly result: Fields }
  /** The server's own words. */
  | { readonly kind: 'refused'; readonly message: string; readonly code?: number }
  | { readonly kind: 'late'; readonly message: string }
  | { readonly kind: 'lost'; readonly message: string };

/** Something that the server asks its client. Its id is good on this connection only (CX §6). */
export interface ServerRequest {
  readonly rpcId: number | string;
  readonly method: string;
  readonly params: Fields;
}

/** What comes from the server without being asked for, in order. */
export interface RpcListener {
  notified(method: string, params: Fields): void;
  asked(request: ServerRequest): void;
  /** Nothing comes after this. Not called when we close. */
  lost(reason: string): void;
}

/** A conversation with an app-server, over whatever carries its lines. */
export interface Rpc {
  call(method: string, params: Fields, limitMs: number): Promise<RpcAnswer>;
  notify(method: string): Promise<boolean>;
  /** True once the answer is written; whether it was taken only the server can say (A1). */
  reply(rpcId: number | string, result: unknown): Promise<boolean>;
  /** Says that we can't answer this, so that the server does not wait. For servers of our own only. */
  decline(rpcId: number | string, message: string): Promise<boolean>;
  readonly open: boolean;
  /** Ends the conversation from our side. */
  close(reason: string): void;
}

/** Writes one line; false when the other side no longer takes any. Never throws. */
export type SendLine = (line: string) => Promise<boolean>;

/** The reading side, to be fed by the transport. */
export interface RpcFeed {
  readonly rpc: Rpc;
  line(text: string): void;
  lost(reason: string): void;
}

interface Waiting {
  readonly settle: (answer: RpcAnswer) => void;
}

/**
 * JSON-RPC without the `jsonrpc` member, as the app-server speaks it on stdio, unix sockets and WebSockets (0.171).
 * Lines that are no JSON object, or answer nothing of ours, are skipped.
 */
export function createRpc(send: SendLine, listener: RpcListener): RpcFeed {
  const waiting = new Map<number, Waiting>();
  const state = { next: 1, open: true };

  const end = (reason: string): void => {
    state.open = false;
    for (const { settle } of [...waiting.values()]) settle({ kind: 'lost', message: reason });
  };

  const write = async (value: unknown): Promise<boolean> => state.open && send(JSON.stringify(value));

  const rpc: Rpc = {
    call(method, params, limitMs) {
      const id = state.next;
      state.next += 1;
      const { promise, resolve } = Promise.withResolvers<RpcAnswer>();
      const late = `it did not answer ${method} within ${Math.ceil(limitMs / 1_000)} s`;
      const timer = setTimeout(() => settle({ kind: 'late', message: late }), limitMs);
      const settle = (answer: RpcAnswer): void => {
        clearTimeout(timer);
        waiting.delete(id);
        resolve(answer);
      };
      waiting.set(id, { settle });
      void write({ id, method, params }).then((written) => {
        if (!written) settle({ kind: 'lost', message: 'the connection is closed' });
      });
      return promise;
    },
    notify: (method) => write({ method }),
    reply: (id, result) => write({ id, result }),
    decline: (id, message) => write({ id, error: { code: -32601, message } }),
    get open() {
      return state.open;
    },
    close: (reason) => end(reason),
  };

  return {
    rpc,
    line(text) {
      const message = state.open ? parseFields(text) : undefined;
      if (message) deliver(message, waiting, listener);
    },
    lost(reason) {
      if (!state.open) return;
      end(reason);
      listener.lost(reason);
    },
  };
}

function deliver(message: Fields, waiting: ReadonlyMap<number, Waiting>, listener: RpcListener): void {
  const method = textOf(message, 'method');
  const id = message['id'];
  if (method === undefined) {
    const waiter = typeof id === 'number' ? waiting.get(id) : undefined;
    waiter?.settle(answerOf(message));
    return;
  }
  const params = objectOf(message, 'params') ?? {};
  if (typeof id === 'number' || typeof id === 'string') listener.asked({ rpcId: id, method, params });
  else listener.notified(method, params);
}

function answerOf(message: Fields): RpcAnswer {
  const result = asFields(message['result']);
  if (result) return { kind: 'result', result };
  const error = objectOf(message, 'error');
  const code = numberOf(error, 'code');
  const words = textOf(error, 'message') ?? 'it refuses, without a reason';
  return { kind: 'refused', message: reasonOf(words), ...(code === undefined ? {} : { code }) };
}

/**
 * Introduces us. On a server of ours the name becomes the `originator` of the threads that it starts; another one has
 * had its first client before us. The queue's methods need `experimentalApi`.
 */
export async function introduce(rpc: Rpc, limitMs: number): Promise<RpcAnswer> {
  const answer = await rpc.call(
    'initialize',
    {
      clientInfo: { name: 'shadowob-connector', title: 'Shadow Connector', version: VERSION },
      capabilities: { experimentalApi: true, requestAttestation: false },
    },
    limitMs,
  );
  if (answer.kind === 'result') await rpc.notify('initialized');
  return answer;
}
