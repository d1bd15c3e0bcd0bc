import { randomUUID } from 'node:crypto';
import type { HostSpec, Message } from '../../../runtime/control/driver.ts';
import { sendThroughHost } from '../../../runtime/control/through-host.ts';
import type {
  ControlEvent,
  CreateRequest,
  CreateResult,
  Refusal,
  RuntimeControl,
  SendRequest,
} from '../../../runtime/control.ts';
import { CONTROL } from '../../../runtime/limits.ts';
import type { ProcessHost } from '../../../runtime/process/types.ts';
import type { Session, SessionRef } from '../../../runtime/session/session.ts';
import type { ControlContext } from '../../adapter.ts';
import { INSTANCE_ID, RUNTIME_ID } from '../sightings.ts';
import { abortSession } from './abort.ts';
import { answerRequest, pendingRequests } from './answering.ts';
import { beginThread, forkThread } from './begin.ts';
import { createCodexDriver } from './driver.ts';
import { obstacleOf } from './obstacle.ts';
import { ownerOf } from './owner.ts';
import { archived, cantForce, subAgent } from './refusals.ts';
import { controlHost } from './system.ts';

/**
 * How Codex is acted on (0.171). A message goes to the app-server that has the thread; where nobody has it, to one of
 * ours on stdio for the one turn; where a terminal without a server has it, into Codex's own queue. Every push goes
 * through a host of ours, which holds the session's lock and follows the turn.
 *
 * @param hostOf this computer's processes; tests give their own
 */
export function createCodexControl(
  hostOf: (context: ControlContext) => ProcessHost = controlHost,
): RuntimeControl<ControlContext> {
  return {
    send: (context, request, signal) => send(context, hostOf(context), request, signal),
    create,
    abort: (context, request) => abortSession(context, hostOf(context), request),
    pending: (context, session) => pendingRequests(context, hostOf(context), session),
    approve: (context, answer) => answerRequest(context, hostOf(context), answer),
    host: (context, spec, sink) => createCodexDriver(context, spec, sink, hostOf(context)),
  };
}

/** Codex's control on this computer. */
export const codexControl: RuntimeControl<ControlContext> = createCodexControl();

async function* send(
  context: ControlContext,
  host: ProcessHost,
  request: SendRequest,
  signal: AbortSignal,
): AsyncGenerator<ControlEvent, void> {
  const plan = await planFor(context, host, request);
  if ('reason' in plan) {
    yield { type: 'refused', at: context.now(), ...plan };
    return;
  }
  for (const text of plan.notes) yield { type: 'note', at: context.now(), text };
  const message: Message = {
    id: randomUUID(),
    text: request.text,
    whenOwned: request.whenOwned,
    approvals: request.approvals,
    ...(request.model === undefined ? {} : { model: request.model }),
  };
  const { followMs } = request;
  yield* sendThroughHost(context, plan.spec, message, {
    signal,
    ...(followMs === undefined ? {} : { followMs }),
  });
}

interface Plan {
  readonly spec: HostSpec;
  readonly notes: readonly string[];
}

async function planFor(
  context: ControlContext,
  host: ProcessHost,
  request: SendRequest,
): Promise<Plan | Refusal> {
  const { target, model } = request;
  if (target.kind === 'new') {
    const { workDir } = target;
    const begun = await beginThread(context, { workDir, ...(model === undefined ? {} : { model }) });
    if ('reason' in begun) return begun;
    return { spec: specOf(refOf(begun.threadId), workDir, request), notes: [] };
  }
  const { session } = target;
  const { facts, ref } = session;
  // G9: resumed on its own it dies on the first message.
  if (facts.lineage?.parentId !== undefined) return subAgent(facts.lineage.parentId);
  if (facts.archived === true) return archived(ref.sessionId);
  const workDir = facts.workDir ?? context.home;
  const notes = hugeNotes(session);
  const owner = ownerOf(context, ref.sessionId, host);
  const obstacle = obstacleOf(owner, context, ref.sessionId);
  if (!obstacle || request.whenOwned === 'refuse' || request.whenOwned === 'queue') {
    return { spec: specOf(ref, workDir, request), notes };
  }
  if (request.whenOwned === 'force') return cantForce(owner, ref.sessionId);
  const copy = await forkThread(context, ref.sessionId, workDir);
  if ('reason' in copy) return copy;
  const told = `a copy goes on as ${copy.threadId}; what the open turn writes from now on is not in it`;
  return { spec: specOf(refOf(copy.threadId), workDir, request), notes: [...notes, told] };
}

function refOf(sessionId: string): SessionRef {
  return { runtimeId: RUNTIME_ID, instanceId: INSTANCE_ID, sessionId };
}

function specOf(
  session: SessionRef,
  workDir: string,
  request: Pick<SendRequest, 'approvalMs' | 'keepMs'>,
): HostSpec {
  return {
    session,
    start: { kind: 'resume' },
    workDir,
    approvalMs: request.approvalMs,
    // While our process stays, nobody else can write the thread: it is let go at once, unless the owner says otherwise.
    keepMs: request.keepMs ?? 0,
    native: {},
  };
}

/** X10: the whole history is read before the first word of an answer. */
function hugeNotes({ facts }: Session): readonly string[] {
  const size = facts.sizeBytes ?? 0;
  if (size < CONTROL.hugeSessionBytes) return [];
  return [`a huge session: ${Math.round(size / (1024 * 1024))} MiB are read before its turn begins`];
}

async function create(context: ControlContext, request: CreateRequest): Promise<CreateResult> {
  const { workDir, model, title } = request;
  const begun = await beginThread(context, {
    workDir,
    ...(model === undefined ? {} : { model }),
    ...(title === undefined ? {} : { title }),
  });
  if ('reason' in begun) return { kind: 'refused', refusal: begun };
  const named =
    model === undefined ? '' : `; Codex keeps no model without a turn, so name it again: --model ${model}`;
  return {
    kind: 'created',
    session: refOf(begun.threadId),
    detail: `it is in Codex’s own store, and waits for its first message as long as you like${named}`,
  };
}
