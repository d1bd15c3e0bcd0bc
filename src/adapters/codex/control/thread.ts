import { CONTROL } from '../../../runtime/limits.ts';
import { asFields, type Fields, listOf, objectOf, textOf } from '../fields.ts';
import type { Rpc, RpcAnswer } from './rpc.ts';

/** A thread that this connection has joined: its items, turns and pending requests come here from now on. */
export interface Joined {
  readonly kind: 'joined';
  readonly threadId: string;
  /** Its approval policy as it stands: `never` asks for nothing. Granular ones are named `granular`. */
  readonly policy: string | undefined;
  readonly workDir: string | undefined;
  readonly parentId: string | undefined;
  /** What it waits for, and the turn that runs, where one does. */
  readonly active: ActiveTurn | undefined;
}

export interface ActiveTurn {
  /** Undefined when the server does not say. */
  readonly turnId: string | undefined;
  readonly waits: 'approval' | 'input' | undefined;
  /** What it has done so far. */
  readonly items: readonly unknown[];
}

export type Join = Joined | Exclude<RpcAnswer, { kind: 'result' }>;

/**
 * Joins a thread: loads it where nobody has it, and subscribes where the server runs it, which sends its pending
 * requests again (A6). Without overrides nothing of the thread changes.
 */
export async function joinThread(rpc: Rpc, threadId: string): Promise<Join> {
  const answer = await rpc.call('thread/resume', { threadId, excludeTurns: true }, CONTROL.acceptMs);
  if (answer.kind !== 'result') return answer;
  const thread = objectOf(answer.result, 'thread');
  const status = objectOf(thread, 'status');
  const isActive = textOf(status, 'type') === 'active';
  return {
    kind: 'joined',
    threadId,
    policy: policyOf(answer.result['approvalPolicy']),
    workDir: textOf(answer.result, 'cwd'),
    parentId: textOf(thread, 'parentThreadId'),
    active: isActive ? await activeTurn(rpc, threadId, listOf(status, 'activeFlags')) : undefined,
  };
}

async function activeTurn(rpc: Rpc, threadId: string, flags: readonly unknown[]): Promise<ActiveTurn> {
  const turn = await newestTurn(rpc, threadId);
  const runs = textOf(turn, 'status') === 'inProgress';
  return {
    turnId: runs ? textOf(turn, 'id') : undefined,
    waits: flags.includes('waitingOnApproval')
      ? 'approval'
      : flags.includes('waitingOnUserInput')
        ? 'input'
        : undefined,
    items: listOf(turn, 'items'),
  };
}

/** The newest turn of a thread that this server has loaded; one that hasn't calls foreign turns interrupted. */
export async function newestTurn(rpc: Rpc, threadId: string): Promise<Fields | undefined> {
  const [turn] = await newestTurns(rpc, threadId, 1);
  return turn;
}

/** The newest turns, newest first. */
export async function newestTurns(rpc: Rpc, threadId: string, limit: number): Promise<readonly Fields[]> {
  const params = { threadId, limit, itemsView: 'full' };
  const answer = await rpc.call('thread/turns/list', params, CONTROL.ackMs);
  if (answer.kind !== 'result') return [];
  return listOf(answer.result, 'data').flatMap((one): Fields[] => {
    const turn = asFields(one);
    return turn ? [turn] : [];
  });
}

function policyOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  return asFields(value) === undefined ? undefined : 'granular';
}
