import { createWaiters } from '../../../runtime/control/waiters.ts';
import type { ApprovalAnswer } from '../../../runtime/control.ts';
import { CONTROL } from '../../../runtime/limits.ts';
import { asFields, type Fields, listOf, objectOf, textOf } from '../fields.ts';
import { type Ask, readAsk } from './asks.ts';
import type { Rpc, ServerRequest } from './rpc.ts';

/** What became of an answer. `gone`: nobody waits for it on this connection. */
export type Answered = 'applied' | 'sent' | 'gone';

/** The requests that wait on one connection, by the ids that users see. */
export interface AskBook {
  /** Undefined for a request that is no person's to answer. */
  take(request: ServerRequest): Ask | undefined;
  /**
   * Learns from a notification; gives the id of a request that it settles, whoever answered it.
   */
  learn(method: string, params: Fields): string | undefined;
  /** What the items of a turn would change, for requests that come without saying so. */
  learnItems(items: readonly unknown[]): void;
  /** The files that an item would change; none where that isn't known. */
  changedBy(itemId: string): readonly string[];
  get(requestId: string): Ask | undefined;
  list(): readonly Ask[];
  /** Sends an answer and waits for the server to say that the request is settled (A1). */
  answer(
    rpc: Rpc,
    requestId: string,
    answer: Pick<ApprovalAnswer, 'decision' | 'answers'>,
  ): Promise<Answered>;
  /** The connection has ended: nothing waits on it any more. Gives the ids that did. */
  clear(): readonly string[];
}

/** Changes of more items than this are not remembered: one turn seldom has as many. */
const ITEMS = 256;

/** An empty book. */
export function createAskBook(): AskBook {
  const waiting = new Map<string, Ask>();
  /** Every id of this connection: an id that was answered never comes to mean another request (A2). */
  const used = new Set<string>();
  const changes = new Map<string, Change>();
  const settled = createWaiters();

  const learnItem = (item: Fields | undefined): void => {
    const id = textOf(item, 'id');
    if (id === undefined || textOf(item, 'type') !== 'fileChange') return;
    const change = changeOf(item);
    if (change.paths.length === 0) return;
    changes.set(id, change);
    const oldest = changes.size > ITEMS ? changes.keys().next() : undefined;
    if (oldest && !oldest.done) changes.delete(oldest.value);
  };

  const idOf = (rpcId: unknown): string | undefined =>
    [...waiting.values()].find((ask) => ask.request.rpcId === rpcId)?.pending.requestId;

  return {
    take(request) {
      const read = readAsk(request, (itemId) => changes.get(itemId)?.words);
      if (!read) return undefined;
      const ask = named(read, freeId(read.pending.requestId, used));
      used.add(ask.pending.requestId);
      waiting.set(ask.pending.requestId, ask);
      return ask;
    },
    learn(method, params) {
      if (method === 'item/started') learnItem(objectOf(params, 'item'));
      if (method !== 'serverRequest/resolved') return undefined;
      const requestId = idOf(params['requestId']);
      if (requestId === undefined) return undefined;
      waiting.delete(requestId);
      settled.resolve(requestId);
      return requestId;
    },
    learnItems(items) {
      for (const item of items) learnItem(asFields(item));
      for (const ask of [...waiting.values()]) {
        // Read again, now that it is known what it would change.
        const again = readAsk(ask.request, (itemId) => changes.get(itemId)?.words);
        if (again) waiting.set(ask.pending.requestId, named(again, ask.pending.requestId));
      }
    },
    changedBy: (itemId) => changes.get(itemId)?.paths ?? [],
    get: (requestId) => waiting.get(requestId),
    list: () => [...waiting.values()],
    async answer(rpc, requestId, answer) {
      const ask = waiting.get(requestId);
      if (!ask) return 'gone';
      const done = settled.waitFor(requestId, CONTROL.ackMs);
      if (!(await rpc.reply(ask.request.rpcId, ask.reply(answer)))) {
        settled.resolve(requestId);
        return 'gone';
      }
      if (await done) return 'applied';
      return rpc.open ? 'sent' : 'gone';
    },
    clear() {
      const ids = [...waiting.keys()];
      waiting.clear();
      used.clear();
      settled.cancelAll();
      return ids;
    },
  };
}

interface Change {
  readonly paths: readonly string[];
  /** The whole of it, as it would be written: each file with its diff. */
  readonly words: string;
}

function changeOf(item: Fields | undefined): Change {
  const parts = listOf(item, 'changes').flatMap((one) => {
    const change = asFields(one);
    const path = textOf(change, 'path');
    if (path === undefined) return [];
    const kind = objectOf(change, 'kind');
    const move = textOf(kind, 'move_path');
    const diff = textOf(change, 'diff');
    const head = `${textOf(kind, 'type') ?? 'change'} ${path}${move ? ` → ${move}` : ''}`;
    return [
      { paths: move ? [path, move] : [path], words: [head, ...(diff ? [diff.trimEnd()] : [])].join('\n') },
    ];
  });
  return { paths: parts.flatMap(({ paths }) => paths), words: parts.map(({ words }) => words).join('\n') };
}

function named(ask: Ask, requestId: string): Ask {
  return { ...ask, pending: { ...ask.pending, requestId } };
}

/** Two requests of a tool server may be alike in all that they say, and still are two. */
function freeId(id: string, used: ReadonlySet<string>): string {
  const after = (count: number): string => (used.has(`${id}-${count}`) ? after(count + 1) : `${id}-${count}`);
  return used.has(id) ? after(2) : id;
}
