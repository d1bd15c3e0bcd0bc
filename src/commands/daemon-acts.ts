import { isAbsolute } from 'node:path';
import { createUploads } from '../runtime/control/uploads.ts';
import type { ControlEvent, SendRequest } from '../runtime/control.ts';
import {
  type ApprovePayload,
  type CreatePayload,
  readAct,
  type SendPayload,
} from '../runtime/daemon/connector/act-schema.ts';
import { CONNECTOR_VERSION } from '../runtime/daemon/connector/schema.ts';
import type { Act, ConnectorSource } from '../runtime/daemon/connector/service.ts';
import { RequestError } from '../runtime/daemon/protocol.ts';
import type { OpHandler, RequestContext } from '../runtime/daemon/service.ts';
import { ConnectorError } from '../runtime/errors.ts';
import { CONTROL } from '../runtime/limits.ts';
import { capable, controlContext, controlOf, hostedSession, sweepLines, type Target } from './acting.ts';
import { readAnswers } from './answers.ts';
import { requestData } from './output/control-data.ts';
import { jsonError } from './output/json.ts';
import { resolveSession } from './resolve.ts';
import { type Named, refuseSetUp } from './send-order.ts';
import { abortDocument, abortTarget } from './session-abort.ts';
import { answerDocument, applyAnswer, chosenRequest, waitingRequests } from './session-approve.ts';
import { createDocument } from './session-create.ts';
import { sendDocument } from './session-send.ts';
import type { World } from './world.ts';

type Handled = (payload: unknown, context: RequestContext) => Promise<object>;

/**
 * The operations that act on sessions, for the `connector` service (R-43): the same ways and the same documents as
 * the commands, with sessions taken from the daemon's registry. What can't be done is an answer with `error`, as in
 * the commands' documents; only what isn't understood is refused on the wire.
 */
export function actHandlers(
  world: World,
  sourceOf: () => ConnectorSource | undefined,
): Readonly<Record<Exclude<Act, 'focus'>, OpHandler>> {
  const uploads = createUploads();
  const handled =
    (run: Handled): OpHandler =>
    async (payload, context) => {
      await sourceOf()?.ready;
      return { version: CONNECTOR_VERSION, ...(await orError(() => run(payload, context))) };
    };
  return {
    upload(payload) {
      const { id, index, bytes } = readAct.upload(payload);
      const part = Buffer.from(bytes, 'base64');
      uploads.add(id, index, part);
      return { version: CONNECTOR_VERSION, index, bytes: part.length };
    },
    send: handled(async (payload, { signal }) => {
      const order = readAct.send(payload);
      const text = order.text ?? (order.parts ? uploads.take(order.parts.id, order.parts.count) : '');
      return send(world, sourceOf(), { order, text }, signal);
    }),
    abort: handled(async (payload) => {
      const { session, runtime, kill } = readAct.abort(payload);
      const target = targetOf(world, sourceOf(), session, runtime ?? undefined);
      const control = await controlOf(world, target.ref.runtimeId);
      return abortDocument(target.ref, await abortTarget(controlContext(world), control, target, kill));
    }),
    approve: handled((payload) => approve(world, readAct.approve(payload))),
    create: handled((payload) => create(world, readAct.create(payload))),
  };
}

async function orError(run: () => Promise<object>): Promise<object> {
  try {
    return await run();
  } catch (thrown) {
    if (thrown instanceof ConnectorError) return Object(jsonError(thrown));
    throw thrown;
  }
}

/** The session that an id means, among those of the registry and those of our own processes. */
function targetOf(
  world: World,
  source: ConnectorSource | undefined,
  id: string,
  runtime: string | undefined,
): Target {
  const all = source?.sessions() ?? [];
  const sessions = all.filter(({ ref }) => runtime === undefined || ref.runtimeId === runtime);
  const find = (ref: Target['ref']) => source?.find(ref);
  try {
    const known = resolveSession({ registry: { sessions: () => sessions, find, size: sessions.length } }, id);
    return { ref: known.ref, known };
  } catch (thrown) {
    const hosted = hostedSession(world, id, runtime);
    if (hosted) return { ref: hosted };
    throw thrown;
  }
}

interface Sending {
  readonly order: SendPayload;
  readonly text: string;
}

async function send(
  world: World,
  source: ConnectorSource | undefined,
  { order, text }: Sending,
  signal: AbortSignal,
): Promise<object> {
  if (text.trim() === '') throw new RequestError('invalid `send` payload: text: is empty');
  const { target, ref } = targetOfSend(world, source, order);
  const control = await controlOf(world, ref.runtimeId);
  const context = controlContext(world);
  const way = capable(control, 'send', ref.runtimeId).bind(control);
  await sweepLines(context);
  const request: SendRequest = {
    target,
    text,
    whenOwned: order.whenOwned,
    ...policyOf(order),
    ...(order.model ? { model: order.model } : {}),
    ...(order.followMs ? { followMs: order.followMs } : {}),
  };
  const events: ControlEvent[] = [];
  for await (const event of way(context, request, signal)) if (event.type !== 'progress') events.push(event);
  return sendDocument({ request, ref }, fitting(events));
}

function targetOfSend(
  world: World,
  source: ConnectorSource | undefined,
  order: SendPayload,
): { readonly target: SendRequest['target']; readonly ref: Named } {
  if (order.new) {
    const { runtime, dir } = order.new;
    return { target: { kind: 'new', workDir: absolute('send', dir) }, ref: { runtimeId: runtime } };
  }
  const { known, ref } = targetOf(world, source, order.session ?? '', order.runtime ?? undefined);
  if (!known)
    throw new ConnectorError('notFound', 'this session is not listed yet', 'Try again in a moment.');
  refuseSetUp(known.shown.state);
  return { target: { kind: 'session', session: known }, ref };
}

/** The daemon has no folder of its own that a relative one could mean. */
function absolute(op: string, dir: string): string {
  if (isAbsolute(dir)) return dir;
  throw new RequestError(`invalid \`${op}\` payload: dir: must be absolute`);
}

function policyOf(order: Pick<SendPayload, 'approvals' | 'approvalMs' | 'keepMs' | 'managedServer'>) {
  const { approvals, approvalMs, keepMs } = order;
  return {
    approvals,
    approvalMs,
    ...(keepMs == null ? {} : { keepMs }),
    ...(order.managedServer === true ? { managedServer: true } : {}),
  };
}

/** Whatever a long turn has asked for, the answer must fit on one line (S-304): old requests go first. */
function fitting(events: readonly ControlEvent[]): readonly ControlEvent[] {
  const sizes = events.map((event) => Buffer.byteLength(JSON.stringify(event)));
  const state = { over: sizes.reduce((sum, size) => sum + size, 0) - CONTROL.replyBytes };
  return events.filter((event, index) => {
    const canGo = event.type === 'request' || event.type === 'resolved' || event.type === 'note';
    if (state.over <= 0 || !canGo) return true;
    state.over -= sizes[index] ?? 0;
    return false;
  });
}

async function approve(world: World, order: ApprovePayload): Promise<object> {
  const { request: id, decision, session, runtime } = order;
  const only = { ...(session ? { session } : {}), ...(runtime ? { runtime } : {}) };
  const waiting = await waitingRequests(world, only);
  if (!id) return { requests: waiting.map(requestData) };
  const request = chosenRequest(waiting, id);
  if (!decision) return { requests: [requestData(request)] };
  const answers =
    decision === 'answer' ? readAnswers(request, undefined, JSON.stringify(order.answers ?? {})) : undefined;
  const answer = {
    session: request.session,
    requestId: request.requestId,
    decision,
    ...(order.note ? { note: order.note } : {}),
    ...(answers ? { answers } : {}),
  };
  return answerDocument(request, answer, await applyAnswer(world, answer, controlContext(world)));
}

async function create(world: World, order: CreatePayload): Promise<object> {
  const { runtime, dir, title, model } = order;
  const workDir = absolute('create', dir);
  const control = await controlOf(world, runtime);
  const begin = capable(control, 'create', runtime).bind(control);
  const result = await begin(controlContext(world), {
    workDir,
    ...policyOf(order),
    ...(model ? { model } : {}),
    ...(title ? { title } : {}),
  });
  return createDocument(runtime, order.approvals, result);
}
