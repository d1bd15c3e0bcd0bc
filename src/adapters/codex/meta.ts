import { asFields, type Fields, numberOf, objectOf, textOf, timeOf } from './fields.ts';

/** What `session_meta` says about its thread. Only the first one of a file is the file's own (G5). */
export interface SessionMeta {
  /** The thread. */
  readonly id: string;
  /** Root of the session tree; the thread itself unless it is a sub-agent. */
  readonly rootId?: string;
  readonly forkedFromId?: string;
  /** The thread that started this one as a sub-agent (G9). */
  readonly parentId?: string;
  readonly startedAt?: number;
  readonly cwd?: string;
  readonly originator?: string;
  readonly cliVersion?: string;
  /** `exec`, `cli`, `vscode` (every app-server client), or `subagent`. */
  readonly source?: string;
  readonly nickname?: string;
  /** `paginated` since 0.171; absent in older files. */
  readonly historyMode?: string;
  /** Records below this number are copies of the parent's (G6). */
  readonly ownFromOrdinal?: number;
  /** The thread and record at which the history before this file ends (forks, rewinds). */
  readonly base?: { readonly threadId: string; readonly endOrdinal: number };
}

/** Reads the payload of a `session_meta`, or the first line of the bare format; `undefined` without an id. */
export function sessionMetaOf(payload: Fields): SessionMeta | undefined {
  const id = textOf(payload, 'id') ?? textOf(payload, 'session_id');
  if (id === undefined) return undefined;
  return {
    id,
    ...present('rootId', textOf(payload, 'session_id')),
    ...present('forkedFromId', textOf(payload, 'forked_from_id')),
    ...present('parentId', parentOf(payload, id)),
    ...present('startedAt', timeOf(payload, 'timestamp')),
    ...present('cwd', textOf(payload, 'cwd')),
    ...present('originator', textOf(payload, 'originator')),
    ...present('cliVersion', textOf(payload, 'cli_version')),
    ...present('source', sourceOf(payload)),
    ...present('nickname', textOf(payload, 'agent_nickname')),
    ...present('historyMode', textOf(payload, 'history_mode')),
    ...present('ownFromOrdinal', numberOf(payload, 'subagent_history_start_ordinal')),
    ...present('base', baseOf(objectOf(payload, 'history_base'))),
  };
}

function sourceOf(payload: Fields): string | undefined {
  const source = payload['source'];
  if (typeof source === 'string') return source;
  return asFields(source) ? 'subagent' : undefined;
}

/** `source` is an object for sub-agents only; which keys it has depends on the kind of sub-agent. */
function parentOf(payload: Fields, id: string): string | undefined {
  const spawned = objectOf(objectOf(objectOf(payload, 'source'), 'subagent'), 'thread_spawn');
  const named = textOf(spawned, 'parent_thread_id') ?? textOf(payload, 'parent_thread_id');
  if (named !== undefined) return named === id ? undefined : named;
  const isSubAgent = sourceOf(payload) === 'subagent' || textOf(payload, 'thread_source') === 'subagent';
  const root = textOf(payload, 'session_id');
  return isSubAgent && root !== id ? root : undefined;
}

function baseOf(base: Fields | undefined): SessionMeta['base'] {
  const threadId = textOf(base, 'thread_id');
  const endOrdinal = numberOf(base, 'end_ordinal_exclusive');
  return threadId === undefined || endOrdinal === undefined ? undefined : { threadId, endOrdinal };
}

function present<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { [P in K]?: V });
}
