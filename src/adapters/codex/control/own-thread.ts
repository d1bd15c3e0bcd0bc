import type { HostSpec, TurnSink } from '../../../runtime/control/driver.ts';
import type { Refusal } from '../../../runtime/control.ts';
import type { ControlContext } from '../../adapter.ts';
import { type OwnServer, startOwnServer } from './own-server.ts';
import { codexRefused, onlyExec, subAgent } from './refusals.ts';
import type { RpcListener } from './rpc.ts';
import { type Joined, joinThread } from './thread.ts';

/** An app-server of ours, with one thread in it. */
export interface OwnThread {
  readonly server: OwnServer;
  readonly joined: Joined;
}

/** This Codex has no app-server that can be used: as a refusal, with why. */
export type Unusable = Refusal & { readonly unusable: string };

/**
 * Starts one and loads the thread, which takes its lock; whoever has it already is never joined here, since Codex keeps
 * a second writer out. A sub-agent's thread is let go again (G9).
 */
export async function openOwnThread(
  context: ControlContext,
  { session, workDir }: HostSpec,
  listener: RpcListener,
  sink: Pick<TurnSink, 'child'>,
): Promise<OwnThread | Unusable | Refusal> {
  const started = await startOwnServer(context, workDir, listener);
  if (started.kind === 'refused') return started.refusal;
  if (started.kind === 'unusable')
    return { ...onlyExec(started.reason, session.sessionId), unusable: started.reason };
  sink.child(started.identity);
  const joined = await joinThread(started.rpc, session.sessionId);
  if (joined.kind === 'joined' && joined.parentId === undefined) return { server: started, joined };
  await started.leave();
  sink.child(undefined);
  if (joined.kind === 'joined') return subAgent(joined.parentId ?? '');
  return codexRefused(joined.message, session.sessionId);
}
