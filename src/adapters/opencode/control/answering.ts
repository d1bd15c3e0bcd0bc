import { answerAtHost, pendingAtHosts } from '../../../runtime/control/through-host.ts';
import type { ApprovalAnswer, ApprovalResult, PendingRequest, Refusal } from '../../../runtime/control.ts';
import { CONTROL } from '../../../runtime/limits.ts';
import type { ProcessHost } from '../../../runtime/process/types.ts';
import type { SessionRef } from '../../../runtime/session/session.ts';
import type { ControlContext } from '../../adapter.ts';
import { ask, directoriesToAsk, homeOf, readStoreOf } from '../scan.ts';
import type { Refused, Server } from '../servers.ts';
import { LOCAL_INSTANCE, RUNTIME_ID } from '../sightings.ts';
import { errorWords, type Posted } from './post.ts';
import {
  leftOver,
  needsPassword,
  noSuchRequest,
  otherSession,
  serverRefused,
  unreachable,
} from './refusals.ts';
import { type AskedRequest, noteWords, pendingOf, replyOf } from './requests.ts';
import { isStillAsking, listAsked, sendReply } from './server-calls.ts';

/** A request that a server lists, and whether anybody waits for its answer. */
interface Listed {
  readonly server: Server;
  readonly asked: AskedRequest;
  /** Under whose row it is shown: a sub-agent's request belongs to the session that it works for. */
  readonly session: SessionRef;
  readonly live: boolean;
}

/** Folders of a server whose store is not here that are asked about, newest first. */
const REMOTE_DIRECTORIES = 16;

/** Everything that waits now, asked of the servers and of our hosts: new on every call (A6). */
export async function pendingRequests(
  context: ControlContext,
  host: ProcessHost,
  only?: SessionRef,
): Promise<readonly PendingRequest[]> {
  const [hosted, { listed }] = await Promise.all([
    pendingAtHosts(context, RUNTIME_ID, only),
    listRequests(context, host),
  ]);
  // A host knows until when its request may be answered.
  const known = new Set(hosted.map(({ requestId }) => requestId));
  const others = listed
    .filter(({ live, asked, session }) => live && !known.has(asked.id) && isMeant(only, session, asked))
    .map(({ asked, session }) => pendingOf(asked, session, context.now()));
  return [...hosted, ...others];
}

function isMeant(only: SessionRef | undefined, session: SessionRef, asked: AskedRequest): boolean {
  if (!only) return true;
  return (
    only.instanceId === session.instanceId && [session.sessionId, asked.sessionId].includes(only.sessionId)
  );
}

/** Answers one request by its id, through the host that follows it or straight at its server. */
export async function answerRequest(
  context: ControlContext,
  host: ProcessHost,
  answer: ApprovalAnswer,
): Promise<ApprovalResult> {
  const hosted = await answerAtHost(context, answer);
  const unknownThere = hosted?.kind === 'refused' && hosted.refusal.kind === 'notFound';
  if (hosted && !unknownThere) return hosted;
  const { listed, refused } = await listRequests(context, host);
  const found = listed.find(({ asked }) => asked.id === answer.requestId);
  const refusal = found ? refusalFor(found, answer, context.now()) : notFound(answer.requestId, refused);
  if (refusal || !found) return { kind: 'refused', refusal: refusal ?? noSuchRequest(answer.requestId) };
  return reply(found, answer);
}

/** A server that asks for a password may be the one that knows the request. */
function notFound(requestId: string, refused: readonly Refused[]): Refusal {
  const locked = refused.find(({ failure }) => failure.kind === 'needs-password');
  return locked ? needsPassword(locked) : noSuchRequest(requestId);
}

function refusalFor(found: Listed, answer: ApprovalAnswer, now: number): Refusal | undefined {
  const { asked, session, live } = found;
  if (!live) return leftOver(asked.id);
  if (!isMeant(answer.session, session, asked)) return otherSession(asked.id);
  const request = pendingOf(asked, session, now);
  if (!request.allows.includes(answer.decision)) {
    return {
      reason: `this ${request.kind} takes ${request.allows.join(', ')}, not ${answer.decision}`,
      kind: 'refused',
      next: `shadowob-connector session-approve ${asked.id} --help`,
    };
  }
  if (answer.decision !== 'answer') return undefined;
  const missing = request.questions?.find(({ id }) => (answer.answers?.[id] ?? []).length === 0);
  if (!missing) return undefined;
  return {
    reason: `question ${missing.id} has no answer: ${missing.text}`,
    kind: 'refused',
    next: `shadowob-connector session-approve ${asked.id} --answers '{"1":["…"]}'`,
  };
}

async function reply({ server, asked }: Listed, answer: ApprovalAnswer): Promise<ApprovalResult> {
  const { endpoint } = server;
  const posted = await sendReply(endpoint, asked.directory, replyOf(asked, answer), CONTROL.ackMs);
  const refusal = refusalOf(posted, asked, endpoint.url);
  if (refusal) return { kind: 'refused', refusal };
  if (posted.kind === 'failed')
    return { kind: 'sent', detail: `OpenCode has not confirmed it: ${posted.reason}` };
  // It says `true` to much; that the request is gone shows that it was taken.
  const left = await listAsked(endpoint, asked.directory);
  const gone = !('reason' in left) && !left.some(({ id }) => id === asked.id);
  return gone
    ? { kind: 'applied', detail: `OpenCode at ${endpoint.url} has the answer${noteWords(asked, answer)}` }
    : { kind: 'sent', detail: 'OpenCode took it and lists the request still' };
}

function refusalOf(posted: Posted, { id }: AskedRequest, url: string): Refusal | undefined {
  if (posted.kind === 'failed') return posted.sent ? undefined : unreachable(url, posted.reason);
  if (posted.status === 200) return undefined;
  return posted.status === 404 ? noSuchRequest(id) : serverRefused(url, posted.status, errorWords(posted));
}

/** Every request that any server lists. */
async function listRequests(
  context: ControlContext,
  host: ProcessHost,
): Promise<{ readonly listed: readonly Listed[]; readonly refused: readonly Refused[] }> {
  const home = homeOf(context);
  const store = readStoreOf(context, home);
  const found = await ask(context, host, home, store, { endpoint: undefined });
  const parents = new Map(
    store.sessions.flatMap(({ info }) => (info.parentId ? [[info.id, info.parentId] as const] : [])),
  );
  const directories = directoriesToAsk(store, context.now());
  const local = found.local.map((server) =>
    listOf(server, directories, (id) => ({
      runtimeId: RUNTIME_ID,
      instanceId: LOCAL_INSTANCE,
      sessionId: rootOf(id, parents),
    })),
  );
  const remote = found.remote.map((server) => listRemote(server));
  const lists = await Promise.all([...local, ...remote]);
  return { listed: lists.flat(), refused: found.refused };
}

async function listRemote(server: Server): Promise<readonly Listed[]> {
  const sessions = await server.api.sessions(100);
  const infos = sessions.kind === 'ok' ? sessions.value : [];
  const parents = new Map(infos.flatMap(({ id, parentId }) => (parentId ? [[id, parentId] as const] : [])));
  const directories = [...new Set(infos.flatMap(({ directory }) => directory ?? []))];
  return listOf(server, directories.slice(0, REMOTE_DIRECTORIES), (id) => ({
    runtimeId: RUNTIME_ID,
    instanceId: server.endpoint.url,
    sessionId: rootOf(id, parents),
  }));
}

/** At most this many parents up: a sub-agent of a sub-agent is seldom, a circle would be damage. */
const DEPTH = 8;

function rootOf(id: string, parents: ReadonlyMap<string, string>): string {
  const chain = { at: id };
  for (let step = 0; step < DEPTH; step += 1) chain.at = parents.get(chain.at) ?? chain.at;
  return chain.at;
}

/** The requests of one server, each once, with whether its session works and its message is unfinished. */
async function listOf(
  server: Server,
  directories: readonly string[],
  refOf: (sessionId: string) => SessionRef,
): Promise<readonly Listed[]> {
  const { endpoint, api } = server;
  const places = [undefined, ...directories];
  const answers = await Promise.all(
    places.map(async (directory) => {
      const [statuses, asked] = await Promise.all([api.statuses(directory), listAsked(endpoint, directory)]);
      const busy = statuses.kind === 'ok' ? statuses.value : new Map();
      return 'reason' in asked ? [] : asked.map((one) => ({ one, busy: busy.has(one.sessionId) }));
    }),
  );
  // Of the server's own folder a request comes twice; the one with the folder's name is the one to reply with.
  const byId = new Map(answers.flat().map((entry) => [entry.one.id, entry]));
  return Promise.all(
    [...byId.values()].map(async ({ one, busy }) => ({
      server,
      asked: one,
      session: refOf(one.sessionId),
      live: busy && (await isStillAsking(endpoint, one)),
    })),
  );
}
