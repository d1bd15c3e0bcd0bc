import { statSync } from 'node:fs';
import type { Refusal } from '../../../runtime/control.ts';
import { CONTROL } from '../../../runtime/limits.ts';
import type { ControlContext } from '../../adapter.ts';
import { objectOf, textOf } from '../fields.ts';
import { startOwnServer } from './own-server.ts';
import { cantBegin, codexRefused, noSuchFolder } from './refusals.ts';
import type { Rpc, RpcAnswer } from './rpc.ts';

/** Asks nothing of a person: no turn runs while a thread is made. */
const QUIET = { notified() {}, asked() {}, lost() {} };

export interface Beginning {
  readonly workDir: string;
  readonly model?: string;
  readonly title?: string;
}

/**
 * Begins a thread in a folder, puts it into Codex's own store, and lets it go, so that it waits for its first message
 * without any process. Its id, or why there is none.
 */
export async function beginThread(
  context: ControlContext,
  { workDir, model, title }: Beginning,
): Promise<{ readonly threadId: string } | Refusal> {
  if (statSync(workDir, { throwIfNoEntry: false })?.isDirectory() !== true) return noSuchFolder(workDir);
  return atOwnServer(context, workDir, async (rpc) => {
    const params = { cwd: workDir, ...(model === undefined ? {} : { model }) };
    const answer = await rpc.call('thread/start', params, CONTROL.acceptMs);
    const threadId = threadOf(answer);
    if (threadId === undefined) return cantBegin(wordsOf(answer));
    const kept = await keep(rpc, threadId, title);
    return kept ?? { threadId };
  });
}

/** A thread is on disk from its first message, or from whatever has to be kept of it: a name, or its (empty) turns. */
async function keep(rpc: Rpc, threadId: string, title: string | undefined): Promise<Refusal | undefined> {
  if (title !== undefined) {
    const named = await rpc.call('thread/name/set', { threadId, name: title }, CONTROL.ackMs);
    return named.kind === 'result' ? undefined : cantBegin(wordsOf(named));
  }
  // It writes the file, and then says that it no longer answers this for such threads (0.171).
  await rpc.call('thread/read', { threadId, includeTurns: true }, CONTROL.ackMs);
  return undefined;
}

/** Copies a thread under a new id; whoever has it open is not touched. */
export async function forkThread(
  context: ControlContext,
  threadId: string,
  workDir: string,
): Promise<{ readonly threadId: string } | Refusal> {
  return atOwnServer(context, workDir, async (rpc) => {
    const answer = await rpc.call('thread/fork', { threadId, excludeTurns: true }, CONTROL.acceptMs);
    const copy = threadOf(answer);
    return copy === undefined ? codexRefused(wordsOf(answer), threadId) : { threadId: copy };
  });
}

async function atOwnServer<T>(
  context: ControlContext,
  workDir: string,
  use: (rpc: Rpc) => Promise<T | Refusal>,
): Promise<T | Refusal> {
  const started = await startOwnServer(context, workDir, QUIET);
  if (started.kind === 'refused') return started.refusal;
  if (started.kind === 'unusable') return cantBegin(started.reason);
  try {
    return await use(started.rpc);
  } finally {
    await started.leave();
  }
}

function threadOf(answer: RpcAnswer): string | undefined {
  return answer.kind === 'result' ? textOf(objectOf(answer.result, 'thread'), 'id') : undefined;
}

function wordsOf(answer: RpcAnswer): string {
  return answer.kind === 'result' ? 'it named no thread' : answer.message;
}
