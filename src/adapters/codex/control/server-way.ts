import type { TurnSink } from '../../../runtime/control/driver.ts';
import { CONTROL } from '../../../runtime/limits.ts';
import { isAlive } from '../../../runtime/process/identity.ts';
import { objectOf, textOf } from '../fields.ts';
import type { ServerAddress } from '../server-find.ts';
import { codexRefused, subAgent, unreachable } from './refusals.ts';
import type { RpcListener } from './rpc.ts';
import type { Served, ServedTurn } from './served-turn.ts';
import { linkServer, type ServerLink } from './socket.ts';
import { type Joined, joinThread } from './thread.ts';

export interface ServerWay {
  readonly address: ServerAddress;
  readonly turn: ServedTurn;
  readonly threadId: string;
  /** Hands everything that the server tells to `turn`. */
  readonly listener: RpcListener;
  readonly sink: Pick<TurnSink, 'note'>;
  /** Aborted when our process is told to end: a lost connection is then left lost. */
  readonly leaving: AbortSignal;
}

/** Tries to reach a server again whose connection was lost in the middle of a turn, and the pause before each. */
const RELINKS = 3;
const RELINK_MS = 500;

/** Runs one turn at somebody else's server, over a connection of our own that is closed after it. */
export async function runAtServer(way: ServerWay): Promise<Served> {
  const linked = await linkServer(way.address.path, way.listener);
  if (linked.kind !== 'linked') return { kind: 'refused', refusal: unreachable(linked.reason) };
  const links: ServerLink[] = [linked];
  try {
    const joined = await joinThread(linked.rpc, way.threadId);
    if (joined.kind !== 'joined')
      return { kind: 'refused', refusal: codexRefused(joined.message, way.threadId) };
    if (joined.parentId !== undefined) return { kind: 'refused', refusal: subAgent(joined.parentId) };
    tellOfWait(joined, way.sink);
    const served = await way.turn.run(linked.rpc, joined);
    return await throughLosses(served, way, links);
  } finally {
    for (const link of links) link.close();
  }
}

/** A4: a message that goes into a turn which waits is read after the answer. */
function tellOfWait({ active }: Joined, sink: ServerWay['sink']): void {
  if (active?.waits === undefined) return;
  const what = active.waits === 'approval' ? 'an approval' : 'an answer';
  sink.note(`its turn waits for ${what}, and reads the message after it: session-approve`);
}

/** The server may outlive the connection; the turn's end is then asked for. */
async function throughLosses(first: Served, way: ServerWay, links: ServerLink[]): Promise<Served> {
  const { pid, path } = way.address;
  const state = { served: first };
  for (let attempt = 0; attempt < RELINKS && state.served.kind === 'lost'; attempt += 1) {
    if (way.leaving.aborted || (pid !== undefined && !isAlive(pid))) break;
    await Bun.sleep(RELINK_MS);
    const linked = await linkServer(path, way.listener);
    if (linked.kind !== 'linked') continue;
    links.push(linked);
    state.served = await way.turn.resume(linked.rpc);
  }
  return state.served;
}

const DEAF: RpcListener = { notified() {}, asked() {}, lost() {} };

/** Whether a server has a thread loaded; one that can't be asked has not. */
export async function hasLoaded(address: ServerAddress, threadId: string): Promise<boolean> {
  const linked = await linkServer(address.path, DEAF);
  if (linked.kind !== 'linked') return false;
  const read = await linked.rpc.call('thread/read', { threadId }, CONTROL.ackMs);
  linked.close();
  const status = read.kind === 'result' ? objectOf(objectOf(read.result, 'thread'), 'status') : undefined;
  const type = textOf(status, 'type');
  return type !== undefined && type !== 'notLoaded';
}
