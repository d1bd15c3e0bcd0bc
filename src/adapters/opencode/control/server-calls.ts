import type { Endpoint } from '../endpoints.ts';
import { getJson, type HttpFailure, type HttpJson } from '../http.ts';
import { readSessionInfo, type SessionInfo } from '../info.ts';
import { ANSWER_BYTES, ANSWER_MS } from '../server-api.ts';
import { listOf, numberOf, objectOf, textOf } from '../values.ts';
import { type Posted, post } from './post.ts';
import { type AskedRequest, type Reply, readAsked } from './requests.ts';

/** A model as OpenCode names it in two words. */
export interface ModelName {
  readonly providerID: string;
  readonly modelID: string;
}

/** `provider/model`; the model's own name may hold more slashes. Undefined for anything else. */
export function readModel(text: string): ModelName | undefined {
  const [, providerID, modelID] = /^([^/\s]+)\/(\S+)$/.exec(text.trim()) ?? [];
  return providerID && modelID ? { providerID, modelID } : undefined;
}

/** How long a prompt may take to be taken: a cold instance needs seconds to load. Milliseconds. */
const PROMPT_MS = 60_000;
/** The same for a new session, a reply and an abort. */
const CALL_MS = 30_000;

/** Where a session lives: a server, its folder. Routes without the folder answer for the server's own (scope). */
export interface Place {
  readonly endpoint: Endpoint;
  readonly sessionId: string;
  readonly directory: string | undefined;
}

function pathOf({ sessionId }: Place, rest = ''): string {
  return `/session/${encodeURIComponent(sessionId)}${rest}`;
}

/** The writing half of OpenCode's HTTP API (1.18.33), and what is asked right before. No call throws. */

/** Hands a message over. The 204 says nothing yet: an unknown agent or model fails later, by an event. */
export function prompt(place: Place, text: string, model: ModelName | undefined): Promise<Posted> {
  return post(place.endpoint, {
    path: pathOf(place, '/prompt_async'),
    query: { directory: place.directory },
    // No id of ours: OpenCode orders messages by it, and a random one can make it answer nothing.
    body: { parts: [{ type: 'text', text }], ...(model ? { model } : {}) },
    timeoutMs: PROMPT_MS,
  });
}

/** Asks for the turn's end. Answers `true` whatever happens, so its end has to be seen. */
export function abortTurn(place: Place, timeoutMs: number = CALL_MS): Promise<Posted> {
  return post(place.endpoint, {
    path: pathOf(place, '/abort'),
    query: { directory: place.directory },
    timeoutMs,
  });
}

/** Replies to a request. `true` also for one that nobody waits for any more, so look before. */
export function sendReply(
  endpoint: Endpoint,
  directory: string | undefined,
  reply: Reply,
  timeoutMs: number = CALL_MS,
): Promise<Posted> {
  return post(endpoint, {
    path: reply.path,
    query: { directory },
    ...(reply.body === undefined ? {} : { body: reply.body }),
    timeoutMs,
  });
}

/** Begins a session in a folder. */
export function createSession(
  endpoint: Endpoint,
  directory: string,
  about: { readonly title?: string; readonly model?: ModelName },
): Promise<Posted> {
  const { title, model } = about;
  return post(endpoint, {
    path: '/session',
    query: { directory },
    body: {
      ...(title === undefined ? {} : { title }),
      ...(model ? { model: { providerID: model.providerID, id: model.modelID } } : {}),
    },
    timeoutMs: CALL_MS,
  });
}

/** Copies a session; the copy has a new id, and goes its own way. */
export function forkSession(place: Place): Promise<Posted> {
  return post(place.endpoint, {
    path: pathOf(place, '/fork'),
    query: { directory: place.directory },
    body: {},
    timeoutMs: CALL_MS,
  });
}

/** The session of an answer. */
export function sessionOfAnswer(posted: Posted): SessionInfo | undefined {
  return posted.kind === 'answer' && posted.status === 200 ? readSessionInfo(posted.value) : undefined;
}

function get(
  endpoint: Endpoint,
  path: string,
  directory: string | undefined,
  timeoutMs = ANSWER_MS,
): Promise<HttpJson> {
  const query = directory === undefined ? '' : `?${new URLSearchParams({ directory })}`;
  return getJson({
    url: `${endpoint.url}${path}${query}`,
    timeoutMs,
    maxBytes: ANSWER_BYTES,
    ...(endpoint.credentials ? { credentials: endpoint.credentials } : {}),
  });
}

/** A session by its id; `missing` when the server has none of that name. */
export async function findSession(place: Place): Promise<SessionInfo | 'missing' | HttpFailure> {
  const answer = await get(place.endpoint, pathOf(place), undefined);
  if (answer.kind === 'status' && answer.status === 404) return 'missing';
  if (answer.kind !== 'json') return answer;
  return readSessionInfo(answer.value) ?? 'missing';
}

/** Everything that is listed as waiting in a folder, stale requests among it (tricky case 2). */
export async function listAsked(
  endpoint: Endpoint,
  directory: string | undefined,
): Promise<readonly AskedRequest[] | HttpFailure> {
  const kinds = ['permission', 'question'] as const;
  const answers = await Promise.all(kinds.map((kind) => get(endpoint, `/${kind}`, directory)));
  const failure = answers.find((answer) => answer.kind !== 'json');
  if (failure) return failure;
  return answers.flatMap((answer, index) => {
    const kind = kinds[index];
    if (answer.kind !== 'json' || !kind) return [];
    return listOf(answer.value).flatMap((entry) => readAsked(kind, entry, directory) ?? []);
  });
}

/**
 * Whether the message that asks is unfinished. An abort ends it but leaves its request listed, and a reply to that
 * would still grant (`stale-permission-after-abort`). True also where the server does not tell.
 */
export async function isStillAsking(endpoint: Endpoint, asked: AskedRequest): Promise<boolean> {
  if (asked.messageId === undefined) return true;
  const path = `/session/${encodeURIComponent(asked.sessionId)}/message/${encodeURIComponent(asked.messageId)}`;
  const answer = await get(endpoint, path, asked.directory);
  if (answer.kind === 'status' && answer.status === 404) return false;
  if (answer.kind !== 'json') return true;
  const info = objectOf(objectOf(answer.value)?.['info']);
  const completed = numberOf(objectOf(info?.['time'])?.['completed']);
  return completed === undefined && objectOf(info?.['error']) === undefined;
}

/** How long the list of models may take: it is large, and a cold instance builds it first. Milliseconds. */
const MODELS_MS = 20_000;

/** The models that can be used, as `provider/model`; undefined where the server does not tell. */
export async function listModels(
  endpoint: Endpoint,
  directory: string | undefined,
): Promise<ReadonlySet<string> | undefined> {
  const answer = await get(endpoint, '/config/providers', directory, MODELS_MS);
  if (answer.kind !== 'json') return undefined;
  const providers = listOf(objectOf(answer.value)?.['providers']);
  const names = providers.flatMap((value) => {
    const provider = objectOf(value);
    const id = textOf(provider?.['id']);
    const models = objectOf(provider?.['models']);
    return id && models ? Object.keys(models).map((model) => `${id}/${model}`) : [];
  });
  return names.length > 0 ? new Set(names) : undefined;
}
