import type { Claim } from '../../runtime/session/evidence.ts';
import type { SessionFacts, Sighting } from '../../runtime/session/session.ts';
import { IDLE, RUNNING, type SessionState, waitingOn } from '../../runtime/session/state.ts';
import { cleanTitle } from '../../runtime/session/text.ts';
import { asFields, type Fields, listOf, objectOf, textOf } from './fields.ts';
import { sessionMetaOf } from './meta.ts';

/** A `ThreadStatus` of the app-server. */
export type ThreadStatus =
  | { readonly kind: 'not-loaded' }
  | { readonly kind: 'idle' }
  | { readonly kind: 'error' }
  | { readonly kind: 'active'; readonly approval: boolean; readonly input: boolean };

/** One thread as its server tells of it. */
export interface ServerThread {
  readonly id: string;
  readonly status: ThreadStatus;
  /** When that status was set, or first seen, epoch milliseconds. */
  readonly at: number;
  /** Helper threads without a file, the title writer for example; never listed. */
  readonly ephemeral: boolean;
  readonly name?: string;
  readonly cwd?: string;
  readonly model?: string;
  readonly parentId?: string;
}

/** All threads of one server. */
export type ServerView = ReadonlyMap<string, ServerThread>;

export const EMPTY_VIEW: ServerView = new Map();

/** Reads a status; `undefined` if it is none that is known. */
export function statusOf(fields: Fields | undefined): ThreadStatus | undefined {
  switch (textOf(fields, 'type')) {
    case 'notLoaded':
      return { kind: 'not-loaded' };
    case 'idle':
      return { kind: 'idle' };
    case 'systemError':
      return { kind: 'error' };
    case 'active': {
      const flags = listOf(fields, 'activeFlags');
      return {
        kind: 'active',
        approval: flags.includes('waitingOnApproval'),
        input: flags.includes('waitingOnUserInput'),
      };
    }
    default:
      return undefined;
  }
}

/**
 * Applies a notification. Only three kinds change anything; what else comes, the items of sub-agents included, is
 * content that is none of our business.
 *
 * @param at when it arrived, used where the server does not date it
 */
export function applyNotification(view: ServerView, message: Fields, at: number): ServerView {
  const params = objectOf(message, 'params');
  const emitted = message['emittedAtMs'];
  const when = typeof emitted === 'number' && Number.isFinite(emitted) ? emitted : at;
  switch (textOf(message, 'method')) {
    case 'thread/started':
      return applyThread(view, objectOf(params, 'thread'), when);
    case 'thread/status/changed': {
      const status = statusOf(objectOf(params, 'status'));
      const id = textOf(params, 'threadId');
      return status && id ? put(view, { ...known(view, id), id, status, at: when }) : view;
    }
    case 'thread/name/updated': {
      const id = textOf(params, 'threadId');
      const name = textOf(params, 'threadName');
      const thread = id ? view.get(id) : undefined;
      return thread && name ? put(view, { ...thread, name }) : view;
    }
    default:
      return view;
  }
}

/** Applies a `Thread` object of `thread/read` or `thread/started`. An unchanged status keeps its time. */
export function applyThread(view: ServerView, thread: Fields | undefined, at: number): ServerView {
  const id = textOf(thread, 'id');
  const status = statusOf(objectOf(thread, 'status'));
  if (!thread || !id || !status) return view;
  const before = view.get(id);
  const parentId =
    textOf(thread, 'parentThreadId') ??
    sessionMetaOf({ ...thread, session_id: thread['sessionId'] })?.parentId;
  const name = textOf(thread, 'name');
  const cwd = textOf(thread, 'cwd');
  const model = textOf(thread, 'model');
  return put(view, {
    id,
    status,
    at: before && sameStatus(before.status, status) ? before.at : at,
    ephemeral: thread['ephemeral'] === true,
    ...(name ? { name } : {}),
    ...(cwd ? { cwd } : {}),
    ...(model ? { model } : {}),
    ...(parentId ? { parentId } : {}),
  });
}

/** Keeps only the threads that the server still has loaded. */
export function keepLoaded(view: ServerView, loaded: ReadonlySet<string>): ServerView {
  const kept = [...view].filter(([id]) => loaded.has(id));
  return kept.length === view.size ? view : new Map(kept);
}

function known(view: ServerView, id: string): Pick<ServerThread, 'ephemeral'> {
  return view.get(id) ?? { ephemeral: false };
}

function put(view: ServerView, thread: ServerThread): ServerView {
  const before = view.get(thread.id);
  return before && sameThread(before, thread) ? view : new Map(view).set(thread.id, thread);
}

function sameThread(a: ServerThread, b: ServerThread): boolean {
  return (
    sameStatus(a.status, b.status) &&
    a.at === b.at &&
    a.ephemeral === b.ephemeral &&
    a.name === b.name &&
    a.cwd === b.cwd &&
    a.model === b.model &&
    a.parentId === b.parentId
  );
}

function sameStatus(a: ThreadStatus, b: ThreadStatus): boolean {
  if (a.kind !== b.kind) return false;
  if (a.kind === 'active' && b.kind === 'active') return a.approval === b.approval && a.input === b.input;
  return true;
}

/**
 * The exact state behind a status (CX §6, S-763). `notLoaded` is no evidence (R-13): the thread may run in another
 * process. `idle` says that somebody lives and rests; how the turn ended is the records' to say (R-09).
 */
function stateOf(status: ThreadStatus): SessionState | undefined {
  switch (status.kind) {
    case 'active':
      if (status.approval) return waitingOn('tool');
      return status.input ? waitingOn('question') : RUNNING;
    case 'idle':
      return IDLE;
    case 'error':
      return { kind: 'rested', outcome: 'failed' };
    case 'not-loaded':
      return undefined;
  }
}

function wordsOf(status: ThreadStatus): string {
  if (status.kind !== 'active') return status.kind;
  const flags = [
    ...(status.approval ? ['waitingOnApproval'] : []),
    ...(status.input ? ['waitingOnUserInput'] : []),
  ];
  return `active [${flags.join(', ')}]`;
}

/** What a server says about one thread, as a standing claim; a thread that is not loaded withdraws the former one. */
export function serverClaim(thread: ServerThread, owner: string): Claim {
  const state = stateOf(thread.status);
  const base = { feed: 'codex.app-server', owner, confidence: 'exact', at: thread.at } as const;
  if (!state) return { ...base, says: { kind: 'silent' }, detail: 'not loaded in this app-server (R-13)' };
  return { ...base, says: state, life: 'alive', detail: `app-server status ${wordsOf(thread.status)}` };
}

/** Sightings of all threads of a server, without its helpers. */
export function serverSightings(view: ServerView, owner: string): readonly Sighting[] {
  return [...view.values()]
    .filter((thread) => !thread.ephemeral)
    .map((thread) => ({
      session: { runtimeId: 'codex', instanceId: 'transcripts', sessionId: thread.id },
      facts: factsOf(thread),
      claims: [serverClaim(thread, owner)],
    }));
}

function factsOf(thread: ServerThread): SessionFacts {
  const title = thread.name ? cleanTitle(thread.name) : undefined;
  return {
    ...(title ? { title } : {}),
    ...(thread.cwd ? { workDir: thread.cwd } : {}),
    ...(thread.model ? { model: thread.model } : {}),
    ...(thread.parentId ? { lineage: { parentId: thread.parentId } } : {}),
  };
}

/** A parsed message as fields, if it is one that {@link applyNotification} may know. */
export function asNotification(value: unknown): Fields | undefined {
  const message = asFields(value);
  return message && textOf(message, 'method') && message['id'] === undefined ? message : undefined;
}
