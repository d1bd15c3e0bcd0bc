import type { Endpoint } from './endpoints.ts';
import type { HttpFailure } from './http.ts';
import type { ApiResult, ServerApi, ServerRequest, ServerStatus } from './server-api.ts';

/** What one server says at one moment, and which part of it was asked. */
export interface ServerView {
  readonly endpoint: Endpoint;
  readonly version: string;
  /** Sessions that are not idle. */
  readonly statuses: ReadonlyMap<string, ServerStatus>;
  /** Open requests of all sessions; only those of a busy one count (tricky case 2). */
  readonly requests: readonly ServerRequest[];
  /** Whether silence about a session of this directory means that the server does not run it. */
  covers(directory: string | undefined): boolean;
  /** Of a turn that was opened after this, its silence says so wherever it runs: only a stream hears that. Epoch milliseconds. */
  readonly listeningSince?: number;
  /** The same for a turn of the `/api/session` routes. */
  readonly coversV2: boolean;
  /** When the session's newest turn was heard to end, epoch milliseconds; only a stream hears that. */
  endedAt?(sessionId: string): number | undefined;
  /** Answers that did not come, or did not fit. */
  readonly failures: readonly HttpFailure[];
  readonly skipped: number;
}

/**
 * Directories that are asked at most. Asking makes the server start that directory's instance, so only those count
 * in which a turn may be open.
 */
export const MAX_DIRECTORIES = 16;

/** Statuses, permissions and questions of the server's own directory and of `directories`. */
export async function pollServer(
  api: ServerApi,
  { version }: { readonly version: string },
  directories: readonly string[],
): Promise<ServerView> {
  const asked = [undefined, ...new Set(directories)].slice(0, MAX_DIRECTORIES + 1);
  const [active, ...answers] = await Promise.all([
    api.active(),
    ...asked.map((directory) => pollDirectory(api, directory)),
  ]);
  const running = active.kind === 'ok' ? [...active.value] : [];
  const statuses = new Map<string, ServerStatus>([
    ...running.map((id) => [id, { type: 'busy' }] as const),
    ...answers.flatMap((answer) => [...answer.statuses]),
  ]);
  const covered = new Set(answers.flatMap((answer) => (answer.answered ? [answer.directory] : [])));
  return {
    endpoint: api.endpoint,
    version,
    statuses,
    requests: answers.flatMap((answer) => answer.requests),
    covers: (directory) => directory !== undefined && covered.has(directory),
    // A server without these routes has no such sessions.
    coversV2: active.kind === 'ok' || isAbsent(active),
    failures: answers.flatMap((answer) => answer.failures),
    skipped: answers.reduce((sum, answer) => sum + answer.skipped, 0),
  };
}

function isAbsent({ kind }: HttpFailure): boolean {
  return kind === 'not-opencode' || kind === 'status';
}

interface DirectoryAnswer {
  readonly directory: string | undefined;
  readonly answered: boolean;
  readonly statuses: ReadonlyMap<string, ServerStatus>;
  readonly requests: readonly ServerRequest[];
  readonly failures: readonly HttpFailure[];
  readonly skipped: number;
}

async function pollDirectory(api: ServerApi, directory: string | undefined): Promise<DirectoryAnswer> {
  const status = await api.statuses(directory);
  const nothing = { directory, answered: false, statuses: new Map(), requests: [], failures: [], skipped: 0 };
  if (status.kind !== 'ok') return { ...nothing, failures: [status] };
  const answer = { ...nothing, answered: true, statuses: status.value, skipped: status.skipped };
  // Nobody is at work, so what is still listed waits for nobody.
  if (status.value.size === 0) return answer;
  const results = await Promise.all([api.permissions(directory), api.questions(directory)]);
  return {
    ...answer,
    requests: results.flatMap((result) => (result.kind === 'ok' ? result.value : [])),
    failures: results.flatMap(failureOf),
    skipped: results.reduce(
      (sum, result) => sum + (result.kind === 'ok' ? result.skipped : 0),
      answer.skipped,
    ),
  };
}

function failureOf(result: ApiResult<unknown>): readonly HttpFailure[] {
  return result.kind === 'ok' ? [] : [result];
}
