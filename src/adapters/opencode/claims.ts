import type { Claim } from '../../runtime/session/evidence.ts';
import type { SessionState } from '../../runtime/session/state.ts';
import { IDLE, RUNNING, waitingOn } from '../../runtime/session/state.ts';
import type { OpencodeProcess } from './owners.ts';
import type { OwnerVerdict, TurnRecord } from './rows.ts';
import type { ServerRequest, ServerStatus } from './server-api.ts';
import type { ServerView } from './server-view.ts';

/** Feeds of the adapter, as `session-why` names them. */
export const FEED = {
  /** One-shot answers of a server. */
  server: 'opencode.server',
  /** The event stream of a server. */
  stream: 'opencode.stream',
  /** Our plugin inside an OpenCode process. */
  plugin: 'opencode.plugin',
  /** `opencode.db`. */
  database: 'opencode.database',
  /** Messages that a server gave of a store that isn't ours to read. */
  messages: 'opencode.messages',
  /** Running processes and what they have open. */
  process: 'opencode.process',
} as const;

/** What is known of a session besides the server's word. */
export interface Known {
  readonly id: string;
  readonly turn?: TurnRecord;
  readonly activityAt: number;
}

/**
 * What a server's answer says of a session. Busy and waiting are exact. Of a session that rests, the server
 * proves no more than that it lists it; whether it ran its newest turn can't be seen in one look, so an
 * open turn in the rows is left to the rows and the processes. A session that nobody has prompted is idle (O1).
 */
export function serverClaim(view: ServerView, session: Known, now: number): Claim | undefined {
  const status = view.statuses.get(session.id);
  const about = { feed: FEED.server, owner: view.endpoint.url };
  if (status) {
    const request = openRequest(view.requests, session);
    return {
      ...about,
      confidence: 'exact',
      at: request?.wait.at ?? now,
      says: stateOf(status, request),
      ...(session.turn && !session.turn.end && !session.turn.unanswered
        ? { turn: { openedAt: session.turn.openedAt } }
        : {}),
      life: 'alive',
      detail: detailOf(status, request),
    };
  }
  const resting = { ...about, confidence: 'exact', at: session.activityAt } as const;
  if (!session.turn) {
    return { ...resting, says: IDLE, life: 'alive', detail: 'lists it, and nobody has prompted it' };
  }
  if (!session.turn.end) return undefined;
  return { ...resting, says: { kind: 'silent' }, life: 'alive', detail: 'lists it, and does not run it now' };
}

/** A request left over from an aborted turn of the same session names a message older than the newest prompt. */
function openRequest(requests: readonly ServerRequest[], session: Known): ServerRequest | undefined {
  const promptId = session.turn?.promptId;
  const open = requests
    .filter(({ sessionId }) => sessionId === session.id)
    .filter(({ wait }) => !promptId || !wait.messageId || wait.messageId > promptId)
    .sort((a, b) => a.wait.at - b.wait.at);
  return open.find(({ wait }) => wait.kind === 'permission') ?? open[0];
}

function stateOf(status: ServerStatus, request: ServerRequest | undefined): SessionState {
  if (request) return waitingOn(request.wait.kind === 'permission' ? 'tool' : 'question', request.wait.tool);
  return status.type === 'retry' ? { kind: 'working', doing: 'running', retrying: true } : RUNNING;
}

function detailOf(status: ServerStatus, request: ServerRequest | undefined): string {
  if (request) return `busy, and GET /${request.wait.kind} lists a request of it`;
  return status.type === 'retry' ? `retries: ${status.message ?? 'the provider failed'}` : 'busy';
}

/** What the processes say of an open turn: proof of life or of death, never a state. */
export function processClaim(
  verdict: OwnerVerdict,
  owner: OpencodeProcess | undefined,
  turn: TurnRecord,
): Claim | undefined {
  const about = {
    feed: FEED.process,
    confidence: 'inferred',
    at: turn.lastWriteAt,
    says: { kind: 'silent' },
  } as const;
  if (verdict === 'unknown') return undefined;
  if (verdict === 'dead') {
    return { ...about, life: 'dead', detail: 'no process that could run it has the database open' };
  }
  const where = owner?.serves ? 'serves every directory' : 'runs in its directory';
  return {
    ...about,
    ...(owner ? { owner: String(owner.pid) } : {}),
    life: 'alive',
    detail: `opencode ${owner?.pid ?? ''} has the database open since before the turn's last write and ${where}`,
  };
}
