import type { Endpoint } from './endpoints.ts';
import { readRequest } from './events.ts';
import { getJson, type HttpFailure, type HttpJson } from './http.ts';
import { readSessionInfo, type SessionInfo } from './info.ts';
import type { Wait } from './live.ts';
import { errorLine } from './outcome.ts';
import { listOf, numberOf, objectOf, textOf } from './values.ts';

/** How long one answer may take, milliseconds. */
export const HEALTH_MS = 2_000;
export const ANSWER_MS = 3_000;
/** Largest answer that is read, bytes: 100 sessions are some 50 KB, a message may carry a tool's whole output. */
export const ANSWER_BYTES = 8 * 1024 * 1024;

/** What a server says of a session that is not idle. */
export interface ServerStatus {
  readonly type: 'busy' | 'retry';
  /** What the provider said, for a retry. */
  readonly message?: string;
}

/** An open permission or question, with the session that asks. */
export interface ServerRequest {
  readonly id: string;
  readonly sessionId: string;
  readonly wait: Wait;
}

export type ApiResult<T> =
  | {
      readonly kind: 'ok';
      readonly value: T /** Entries that did not fit. */;
      readonly skipped: number;
      readonly next?: string;
    }
  | HttpFailure;

/** The reading half of OpenCode's HTTP API (1.18.33). Every call ends in time and none throws. */
export interface ServerApi {
  readonly endpoint: Endpoint;
  /** The version of a healthy server. */
  health(): Promise<ApiResult<string>>;
  /** Sessions of all projects, newest first. `cursor` is `next` of the page before. */
  sessions(limit: number, cursor?: string): Promise<ApiResult<readonly SessionInfo[]>>;
  /** Sessions of a directory that are not idle; without a directory: of the server's own. */
  statuses(directory?: string): Promise<ApiResult<ReadonlyMap<string, ServerStatus>>>;
  /** Sessions of the `/api/session` routes that run; `/session/status` never shows them (tricky case 14). */
  active(): Promise<ApiResult<ReadonlySet<string>>>;
  permissions(directory?: string): Promise<ApiResult<readonly ServerRequest[]>>;
  questions(directory?: string): Promise<ApiResult<readonly ServerRequest[]>>;
  /** The newest messages with their parts, oldest first, as they come. */
  messages(sessionId: string, limit: number): Promise<ApiResult<readonly unknown[]>>;
}

/** @param now epoch milliseconds, injected */
export function createServerApi(endpoint: Endpoint, now: () => number, signal?: AbortSignal): ServerApi {
  const get = (
    path: string,
    query: Record<string, string | undefined>,
    timeoutMs = ANSWER_MS,
  ): Promise<HttpJson> =>
    getJson({
      url: `${endpoint.url}${path}${searchOf(query)}`,
      timeoutMs,
      maxBytes: ANSWER_BYTES,
      ...(endpoint.credentials ? { credentials: endpoint.credentials } : {}),
      ...(signal ? { signal } : {}),
    });

  const requests = async (
    path: string,
    directory: string | undefined,
  ): Promise<ApiResult<readonly ServerRequest[]>> =>
    list(await get(path, { directory }), (entry) => readServerRequest(entry, now()));

  return {
    endpoint,
    async health() {
      const answer = await get('/global/health', {}, HEALTH_MS);
      if (answer.kind !== 'json') return answer;
      const health = objectOf(answer.value);
      const version = textOf(health?.['version']);
      if (health?.['healthy'] !== true || version === undefined) return strange;
      return { kind: 'ok', value: version.slice(0, 60), skipped: 0 };
    },
    async sessions(limit, cursor) {
      const global = await get('/experimental/session', { limit: String(limit), cursor });
      // Older servers have only the list of one project.
      const older = global.kind === 'not-opencode' || global.kind === 'status';
      return list(
        older && !cursor ? await get('/session', { limit: String(limit) }) : global,
        readSessionInfo,
      );
    },
    async statuses(directory) {
      const answer = await get('/session/status', { directory });
      if (answer.kind !== 'json') return answer;
      return readStatuses(answer.value);
    },
    async active() {
      const answer = await get('/api/session/active', {});
      if (answer.kind !== 'json') return answer;
      const entries = objectOf(objectOf(answer.value)?.['data']);
      if (!entries) return strange;
      return {
        kind: 'ok',
        value: new Set(Object.keys(entries).filter((id) => id.startsWith('ses'))),
        skipped: 0,
      };
    },
    permissions: (directory) => requests('/permission', directory),
    questions: (directory) => requests('/question', directory),
    async messages(sessionId, limit) {
      const path = `/session/${encodeURIComponent(sessionId)}/message`;
      return list(await get(path, { limit: String(limit) }), (entry) => objectOf(entry));
    },
  };
}

const strange: HttpFailure = { kind: 'not-opencode', reason: 'its answer is not OpenCode’s' };

function searchOf(query: Record<string, string | undefined>): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
}

function list<T>(answer: HttpJson, read: (entry: unknown) => T | undefined): ApiResult<readonly T[]> {
  if (answer.kind !== 'json') return answer;
  if (!Array.isArray(answer.value)) return strange;
  const entries = answer.value as readonly unknown[];
  const value = entries.flatMap((entry) => read(entry) ?? []);
  const next = answer.headers['x-next-cursor'];
  return {
    kind: 'ok',
    value,
    skipped: entries.length - value.length,
    ...(typeof next === 'string' && next !== '' ? { next } : {}),
  };
}

function readStatuses(answer: unknown): ApiResult<ReadonlyMap<string, ServerStatus>> {
  const entries = objectOf(answer);
  if (!entries) return strange;
  const statuses = new Map<string, ServerStatus>();
  const counts = { skipped: 0 };
  for (const [id, raw] of Object.entries(entries)) {
    const status = objectOf(raw);
    const type = status?.['type'];
    if (type === 'idle') continue;
    if (!id.startsWith('ses') || (type !== 'busy' && type !== 'retry')) {
      counts.skipped += 1;
      continue;
    }
    const message = errorLine(status?.['message']);
    statuses.set(id, { type, ...(message ? { message } : {}) });
  }
  return { kind: 'ok', value: statuses, skipped: counts.skipped };
}

function readServerRequest(entry: unknown, now: number): ServerRequest | undefined {
  const request = objectOf(entry);
  const id = textOf(request?.['id']);
  const sessionId = textOf(request?.['sessionID']);
  if (!request || id === undefined || sessionId === undefined) return undefined;
  return { id, sessionId, wait: readRequest(id, request, now) };
}

/** A message of the API as its info and its parts. */
export function splitMessage(entry: unknown):
  | {
      readonly info: Readonly<Record<string, unknown>>;
      readonly parts: readonly unknown[];
      readonly createdAt: number;
    }
  | undefined {
  const message = objectOf(entry);
  const info = objectOf(message?.['info']);
  const createdAt = numberOf(objectOf(info?.['time'])?.['created']);
  return info && createdAt !== undefined ? { info, parts: listOf(message?.['parts']), createdAt } : undefined;
}
