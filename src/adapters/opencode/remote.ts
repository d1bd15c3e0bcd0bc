import type { RuntimeInstance, ScanProblem } from '../../runtime/feed.ts';
import type { Claim } from '../../runtime/session/evidence.ts';
import type { Sighting } from '../../runtime/session/session.ts';
import { FEED, serverClaim } from './claims.ts';
import { factsOf, type SessionInfo } from './info.ts';
import { problemsOfView, remoteInstance } from './instances.ts';
import { newestTurn, readMessage, readPart, type TurnRecord, turnClaim } from './rows.ts';
import { splitMessage } from './server-api.ts';
import { MAX_DIRECTORIES, pollServer, type ServerView } from './server-view.ts';
import type { Server } from './servers.ts';
import { RUNTIME_ID } from './sightings.ts';
import { numberOf, objectOf, textOf } from './values.ts';

/** Sessions that are listed of a server whose store can't be read here, newest first. */
const PAGE = 100;
const MAX_PAGES = 5;
/** Sessions whose newest messages are asked for, to say how their turn ended; the others are unknown. */
export const MAX_TAILS = 20;
/** Messages of a tail, and how many tails are asked for at one time. */
const TAIL = 2;
const AT_ONCE = 4;

export interface RemoteScan {
  readonly instance: RuntimeInstance;
  readonly sightings: readonly Sighting[];
  readonly problems: readonly ScanProblem[];
}

/**
 * The sessions of a server whose store isn't on this computer: everything comes through its API, and nothing is
 * known of its processes.
 */
export async function scanRemote(server: Server, streamed: boolean, now: number): Promise<RemoteScan> {
  const listed = await listSessions(server);
  const directories = [...new Set(listed.sessions.flatMap(({ directory }) => directory ?? []))];
  const view = await pollServer(server.api, server, directories.slice(0, MAX_DIRECTORIES));
  const tails = await readTails(server, listed.sessions.slice(0, MAX_TAILS));
  return {
    instance: remoteInstance(server),
    sightings: listed.sessions.map((info) => sightingOf(info, view, tails.get(info.id), streamed, now)),
    problems: [...listed.problems, ...problemsOfView(view)],
  };
}

async function listSessions(
  server: Server,
): Promise<{ readonly sessions: readonly SessionInfo[]; readonly problems: readonly ScanProblem[] }> {
  const byId = new Map<string, SessionInfo>();
  const seen = { cursor: undefined as string | undefined, skipped: 0 };
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const answer = await server.api.sessions(PAGE, seen.cursor);
    if (answer.kind !== 'ok') {
      return { sessions: [...byId.values()], problems: [problem(server, answer.reason, 0)] };
    }
    for (const info of answer.value) byId.set(info.id, info);
    seen.skipped += answer.skipped;
    if (!answer.next || answer.value.length === 0 || answer.next === seen.cursor) break;
    seen.cursor = answer.next;
  }
  const problems = seen.skipped > 0 ? [problem(server, 'sessions that do not fit', seen.skipped)] : [];
  return { sessions: [...byId.values()], problems };
}

function problem(server: Server, reason: string, skipped: number): ScanProblem {
  return { subject: server.endpoint.url, reason, skipped };
}

/** What a session's tail says: its newest turn, or that nobody has prompted it. Absent: it was not asked for. */
type Tail = { readonly turn?: TurnRecord };

async function readTails(
  server: Server,
  sessions: readonly SessionInfo[],
): Promise<ReadonlyMap<string, Tail>> {
  const tails = new Map<string, Tail>();
  for (let from = 0; from < sessions.length; from += AT_ONCE) {
    const some = sessions.slice(from, from + AT_ONCE);
    const answers = await Promise.all(some.map(({ id }) => server.api.messages(id, TAIL)));
    for (const [index, answer] of answers.entries()) {
      const id = some[index]?.id;
      if (id !== undefined && answer.kind === 'ok') tails.set(id, tailOf(answer.value));
    }
  }
  return tails;
}

/** The newest turn of a list of messages with their parts, oldest first, as the API and `opencode export` give them. */
export function tailOf(messages: readonly unknown[]): Tail {
  const read = messages.flatMap((entry) => {
    const message = splitMessage(entry);
    const id = textOf(message?.info['id']);
    if (!message || id === undefined) return [];
    const completedAt = numberOf(objectOf(message.info['time'])?.['completed']);
    const row = readMessage(id, message.createdAt, completedAt ?? message.createdAt, message.info);
    return row ? [{ row, parts: message.parts }] : [];
  });
  const newestFirst = read.toReversed();
  const answer = newestFirst.find(({ row }) => row.role === 'assistant');
  const parts = (answer?.parts ?? []).flatMap((part) => readPart(partTime(part), part) ?? []);
  const turn = newestTurn(
    newestFirst.map(({ row }) => row),
    parts.toReversed(),
  );
  return turn ? { turn } : {};
}

function partTime(part: unknown): number {
  const raw = objectOf(part);
  const time = objectOf(raw?.['time']) ?? objectOf(objectOf(raw?.['state'])?.['time']);
  return numberOf(time?.['end']) ?? numberOf(time?.['start']) ?? 0;
}

function sightingOf(
  info: SessionInfo,
  view: ServerView,
  tail: Tail | undefined,
  streamed: boolean,
  now: number,
): Sighting {
  const status = view.statuses.get(info.id);
  const activityAt = Math.max(info.updatedAt ?? info.createdAt ?? 0, tail?.turn?.lastWriteAt ?? 0);
  return {
    session: { runtimeId: RUNTIME_ID, instanceId: view.endpoint.url, sessionId: info.id },
    facts: {
      ...factsOf(info, 'server', status?.type ?? 'idle'),
      lastActivityAt: activityAt,
      endpoint: view.endpoint.url,
    },
    claims: claimsOf(info, view, tail, streamed && status !== undefined, activityAt, now),
  };
}

function claimsOf(
  { id }: SessionInfo,
  view: ServerView,
  tail: Tail | undefined,
  streamSpeaks: boolean,
  activityAt: number,
  now: number,
): readonly Claim[] {
  // Without its messages nothing is known of a session that rests.
  if (!tail && !view.statuses.has(id)) return [];
  // A prompt that is only stored is no turn yet.
  const turn = tail?.turn?.unanswered && !view.statuses.has(id) ? tail.turn.before : tail?.turn;
  const rows = turn && turnClaim(turn, 'unknown', FEED.messages, now);
  const server = streamSpeaks
    ? undefined
    : serverClaim(view, { id, activityAt, ...(turn ? { turn } : {}) }, now);
  return [server, rows].filter((claim) => claim !== undefined);
}
