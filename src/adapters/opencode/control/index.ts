import { randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
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
import type { Server } from '../servers.ts';
import { LOCAL_INSTANCE, RUNTIME_ID } from '../sightings.ts';
import { abortSession } from './abort.ts';
import { answerRequest, pendingRequests } from './answering.ts';
import { createOpencodeDriver } from './driver.ts';
import { endOwnServer, ensureManaged, reachOwn, startOwnServer, sweepServers } from './own-server.ts';
import { isMine, listServers, type OwnServer } from './own-servers.ts';
import { errorWords, type Posted } from './post.ts';
import { badModel, serverRefused, unknownModel, unreachable } from './refusals.ts';
import {
  createSession,
  forkSession,
  listModels,
  type ModelName,
  readModel,
  sessionOfAnswer,
} from './server-calls.ts';
import { isServerBusy } from './servers-work.ts';
import { chooseServer, type Survey, surveyLocal, surveyRemote } from './survey.ts';
import { controlHost } from './system.ts';

/**
 * How OpenCode is acted on (1.18.33). A message goes to the server that runs the session or that the user has; where
 * there is none, to one of ours on loopback with a generated password: for the one turn, or, if the owner asks for it,
 * one that stays. Every push goes through a host of ours, which holds the session's lock and follows the turn.
 *
 * @param hostOf this computer's processes; tests give their own
 */
export function createOpencodeControl(
  hostOf: (context: ControlContext) => ProcessHost = controlHost,
): RuntimeControl<ControlContext> {
  return {
    send: (context, request, signal) => send(context, hostOf(context), request, signal),
    create: (context, request) => create(context, hostOf(context), request),
    async abort(context, request) {
      const host = hostOf(context);
      const result = await abortSession(context, host, request);
      await sweep(context, host);
      return result;
    },
    async pending(context, session) {
      const host = hostOf(context);
      await sweep(context, host);
      return pendingRequests(context, host, session);
    },
    approve: (context, answer) => answerRequest(context, hostOf(context), answer),
    host: (context, spec, sink) => createOpencodeDriver(context, spec, sink, hostOf(context)),
  };
}

/** OpenCode's control on this computer. */
export const opencodeControl: RuntimeControl<ControlContext> = createOpencodeControl();

/** No server of ours may run on unseen. */
function sweep(context: ControlContext, host: ProcessHost): Promise<void> {
  return sweepServers(context, host, (server) => isServerBusy(context, server));
}

async function* send(
  context: ControlContext,
  host: ProcessHost,
  request: SendRequest,
  signal: AbortSignal,
): AsyncGenerator<ControlEvent, void> {
  await sweep(context, host);
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
  try {
    yield* sendThroughHost(context, plan.spec, message, {
      signal,
      ...(followMs === undefined ? {} : { followMs }),
    });
  } finally {
    await endUntaken(context, host);
  }
}

/** A server that we have started for the host and that it has not taken over is ended. */
async function endUntaken(context: ControlContext, host: ProcessHost): Promise<void> {
  const left = listServers(context.connectorHome).filter(
    (server) => server.life === 'turn' && isMine(server),
  );
  for (const server of left) await endOwnServer(context, host, server);
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
  const { target } = request;
  if (request.model !== undefined && !readModel(request.model)) return badModel(request.model);
  if (target.kind === 'new') {
    const made = await begin(context, host, { ...request, workDir: target.workDir });
    if ('reason' in made) return made;
    return { spec: specOf(localRef(made.sessionId), target.workDir, request, made.server), notes: [] };
  }
  const { session } = target;
  const spec = specOf(session.ref, session.facts.workDir ?? context.home, request, undefined);
  if (request.whenOwned !== 'fork') return { spec, notes: [] };
  return forkPlan(context, host, request, session, spec);
}

function localRef(sessionId: string): SessionRef {
  return { runtimeId: RUNTIME_ID, instanceId: LOCAL_INSTANCE, sessionId };
}

type Wishes = Pick<SendRequest, 'approvalMs' | 'keepMs' | 'managedServer'>;

function specOf(
  session: SessionRef,
  workDir: string,
  request: Wishes,
  server: OwnServer | undefined,
): HostSpec {
  const managed = request.managedServer === true;
  return {
    session,
    start: { kind: 'resume' },
    workDir,
    approvalMs: request.approvalMs,
    // Nothing of a session lives in a process, so there is nothing to keep but a server's warmth.
    keepMs: request.keepMs ?? (managed ? CONTROL.keepMs : 0),
    native: {
      ...(managed ? { managed: 'yes' } : {}),
      ...(server ? { server: String(server.process.pid) } : {}),
    },
  };
}

/** A copy with an id of its own, made only where somebody is in the way (M1). */
async function forkPlan(
  context: ControlContext,
  host: ProcessHost,
  request: SendRequest,
  { ref }: Session,
  spec: HostSpec,
): Promise<Plan | Refusal> {
  const survey =
    ref.instanceId === LOCAL_INSTANCE
      ? await surveyLocal(context, host, ref.sessionId, spec.workDir)
      : await surveyRemote(context, ref.instanceId, ref.sessionId);
  if ('reason' in survey) return survey;
  if (survey.obstacle?.kind !== 'owned') return { spec, notes: [] };
  const used = await serverFor(context, host, survey, spec.workDir, request);
  if ('reason' in used) return used;
  const { endpoint } = used.server;
  const posted = await forkSession({ endpoint, sessionId: ref.sessionId, directory: survey.directory });
  const copy = sessionOfAnswer(posted);
  if (!copy) return whyNot(posted, endpoint.url);
  const session = { ...ref, sessionId: copy.id };
  const forked = specOf(session, copy.directory ?? spec.workDir, request, used.own);
  return {
    spec: { ...forked, native: { ...forked.native, copy: 'yes' } },
    notes: [`a copy goes on as ${copy.id}; what the open turn writes from now on is not in it`],
  };
}

function whyNot(posted: Posted, url: string): Refusal {
  if (posted.kind === 'failed') return unreachable(url, posted.reason);
  return serverRefused(url, posted.status, errorWords(posted));
}

interface Used {
  readonly server: Server;
  /** Started for this; to be taken over, or ended. */
  readonly own?: OwnServer;
}

/** The server for something that is no turn yet: one that runs, else one of ours. */
async function serverFor(
  context: ControlContext,
  host: ProcessHost,
  survey: Pick<Survey, 'candidates'>,
  directory: string,
  { managedServer }: Pick<SendRequest, 'managedServer'>,
): Promise<Used | Refusal> {
  const { candidates } = survey;
  const chosen = chooseServer({ candidates });
  if (chosen) return { server: chosen.server };
  if (managedServer) {
    const managed = await ensureManaged(context, host, directory);
    return 'reason' in managed ? managed : { server: managed.server };
  }
  const own = await startOwnServer(context, host, { life: 'turn', directory });
  if ('reason' in own) return own;
  const server = await reachOwn(own, context);
  if (server) return { server, own };
  await endOwnServer(context, host, own);
  return unreachable(own.url, 'it was started and does not answer');
}

interface Begun {
  readonly sessionId: string;
  readonly server: OwnServer | undefined;
}

/** Begins a session in a folder. */
async function begin(
  context: ControlContext,
  host: ProcessHost,
  request: Pick<CreateRequest, 'workDir' | 'model' | 'title' | 'managedServer'>,
): Promise<Begun | Refusal> {
  const { workDir, title } = request;
  if (statSync(workDir, { throwIfNoEntry: false })?.isDirectory() !== true) return noSuchFolder(workDir);
  const model = request.model === undefined ? undefined : readModel(request.model);
  if (request.model !== undefined && !model) return badModel(request.model);
  const survey = await surveyLocal(context, host, '', workDir);
  if (survey.obstacle) return survey.obstacle.refusal;
  const used = await serverFor(context, host, survey, workDir, request);
  if ('reason' in used) return used;
  const made = await makeSession(used.server, workDir, title, model);
  if (!('reason' in made)) return { sessionId: made.id, server: used.own };
  if (used.own) await endOwnServer(context, host, used.own);
  return made;
}

async function makeSession(
  { endpoint }: Server,
  workDir: string,
  title: string | undefined,
  model: ModelName | undefined,
): Promise<{ readonly id: string } | Refusal> {
  if (model) {
    const known = await listModels(endpoint, workDir);
    const name = `${model.providerID}/${model.modelID}`;
    if (known && !known.has(name)) return unknownModel(name);
  }
  const posted = await createSession(endpoint, workDir, {
    ...(title === undefined ? {} : { title }),
    ...(model ? { model } : {}),
  });
  return sessionOfAnswer(posted) ?? whyNot(posted, endpoint.url);
}

function noSuchFolder(workDir: string): Refusal {
  return { reason: `there is no folder ${workDir}`, kind: 'refused', next: 'Name one that is there: --dir' };
}

async function create(
  context: ControlContext,
  host: ProcessHost,
  request: CreateRequest,
): Promise<CreateResult> {
  await sweep(context, host);
  const made = await begin(context, host, request);
  if ('reason' in made) return { kind: 'refused', refusal: made };
  // The session lies in OpenCode's own store, so no process has to stay for it.
  if (made.server) await endOwnServer(context, host, made.server);
  const detail = 'it is in OpenCode’s own store, and waits for its first message as long as you like';
  return { kind: 'created', session: localRef(made.sessionId), detail };
}
