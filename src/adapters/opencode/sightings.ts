import type { Claim } from '../../runtime/session/evidence.ts';
import type { SessionFacts, SessionRef, Sighting } from '../../runtime/session/session.ts';
import { FEED, processClaim, serverClaim } from './claims.ts';
import type { StoredSession } from './database.ts';
import { factsOf } from './info.ts';
import { judgeOwner, type OpencodeProcess, type StoreOwners } from './owners.ts';
import { isOpen, type OwnerVerdict, type TurnRecord, turnClaim } from './rows.ts';
import type { ServerView } from './server-view.ts';
import type { DiffFile } from './storage.ts';
import type { StoreRead } from './store.ts';

export const RUNTIME_ID = 'opencode';
/** The instance of this computer's own store, with or without a server. */
export const LOCAL_INSTANCE = 'local-data';

/** A turn that was written to within this time may be another one than the server speaks of, milliseconds. */
const SETTLED_MS = 2_000;

/** Everything that was seen of the local store at one moment. */
export interface LocalLook {
  readonly store: Pick<StoreRead, 'source' | 'sessions'>;
  /** Servers of this store. */
  readonly views: readonly ServerView[];
  /** Who could run an open turn; absent when no turn is open. */
  readonly owners: StoreOwners | undefined;
  /** Servers whose event stream is held: what they run, the stream says. */
  readonly streamed: ReadonlySet<string>;
  /** When the look began, before the rows were read, epoch milliseconds. */
  readonly now: number;
}

export function localRef(sessionId: string): SessionRef {
  return { runtimeId: RUNTIME_ID, instanceId: LOCAL_INSTANCE, sessionId };
}

/** Sightings of all sessions of the local store. */
export function localSightings(look: LocalLook): readonly Sighting[] {
  return look.store.sessions.map((stored) => {
    const session = begun(stored, look);
    const { verdict, owner } = ownerOf(session, look);
    return {
      session: localRef(session.info.id),
      facts: factsOfStored(session, look, owner),
      claims: claimsOf(session, look, verdict, owner),
    };
  });
}

/**
 * A prompt that is only stored is no turn yet where a server could be the one to begin it, also one that has not been
 * heard: it takes up to 2 s in a cold folder (tricky case 10), and what is said in between must not depend on which
 * servers have answered so far. The session is as it was before. A terminal begins at once.
 */
function begun(session: StoredSession, look: LocalLook): StoredSession {
  const { turn, info } = session;
  if (!turn?.unanswered || !couldBegin(session, look)) return session;
  const { turn: _turn, ...rest } = session;
  return turn.before ? { ...rest, info, turn: turn.before } : { ...rest, info };
}

/** Whether a server could begin the turn of a prompt, and nobody is known to work on it. */
function couldBegin(session: StoredSession, { owners, views }: LocalLook): boolean {
  const { turn, info } = session;
  if (!turn || views.some(({ statuses }) => statuses.has(info.id))) return false;
  const servers = (owners?.processes ?? []).filter(
    ({ serves, holdsStore }) => serves && holdsStore !== false,
  );
  if (owners) {
    const { lastWriteAt } = turn;
    const { directory } = info;
    const others = new Set(servers.map(({ pid }) => pid));
    const where = { lastWriteAt, ...(directory ? { directory } : {}) };
    if (judgeOwner(owners, where, others).verdict === 'alive') return false;
  }
  // A turn of the `/api/session` routes has no busy time before its answer that a server would tell of (14).
  return (servers.length > 0 && !turn.v2) || views.some((view) => rests(view, session));
}

/** Whether a server's silence means that it does not run the turn. */
function rests(view: ServerView, { turn, info }: StoredSession): boolean {
  if (view.statuses.has(info.id)) return false;
  const heardAll = turn !== undefined && turn.openedAt > (view.listeningSince ?? Number.POSITIVE_INFINITY);
  return heardAll || (turn?.v2 ? view.coversV2 : view.covers(info.directory));
}

/**
 * A turn may end between the reading of its rows and the server's word that it rests, and would look left by everybody.
 * So the rows of such sessions are read once more: only what is still open then was left.
 */
export function confirmGone(
  look: LocalLook,
  read: () => { readonly sessions: readonly StoredSession[]; readonly now: number },
): LocalLook {
  const gone = new Set(goneSessions(look).map(({ info }) => info.id));
  if (gone.size === 0) return look;
  const again = read();
  const fresh = new Map(again.sessions.map((session) => [session.info.id, session]));
  const sessions = look.store.sessions.map((session) => {
    const now = gone.has(session.info.id) ? fresh.get(session.info.id) : undefined;
    // Of a turn that has begun meanwhile nobody has looked who could run it.
    return now && now.turn?.openedAt === session.turn?.openedAt ? now : session;
  });
  return { ...look, store: { ...look.store, sessions }, now: again.now };
}

interface Judged {
  readonly verdict: OwnerVerdict;
  readonly owner?: OpencodeProcess;
}

/** Whether it matters who lives: the turn is open, and it isn't known to be left by everybody. */
export function needsOwner({ turn, goneAt }: StoredSession): boolean {
  return turn !== undefined && isOpen(turn) && goneAt !== turn.lastWriteAt;
}

/** Sessions whose open turn was seen to be left by everybody, and not before. */
export function goneSessions(look: LocalLook): readonly StoredSession[] {
  return look.store.sessions.filter(
    (session) =>
      needsOwner(session) && begun(session, look) === session && ownerOf(session, look).verdict === 'dead',
  );
}

function ownerOf(session: StoredSession, look: LocalLook): Judged {
  const { owners, views, now } = look;
  const { turn, info } = session;
  if (!turn || !isOpen(turn)) return { verdict: 'unknown' };
  // Its process may be out of sight, in a container say.
  if (views.some(({ statuses }) => statuses.has(info.id)))
    return { verdict: 'alive', ...runnerOf(info.id, look) };
  if (!needsOwner(session)) return { verdict: 'dead' };
  if (!owners) return { verdict: 'unknown' };
  const moving = isMoving(turn, now);
  const resting = views.filter(
    (view) => rests(view, session) && (!moving || hasToldEnd(view.endedAt?.(info.id), turn, now)),
  );
  return judgeOwner(
    owners,
    { lastWriteAt: turn.lastWriteAt, ...(info.directory ? { directory: info.directory } : {}) },
    new Set(resting.flatMap(({ endpoint }) => endpoint.pid ?? [])),
  );
}

function runnerOf(id: string, { owners, views }: LocalLook): Pick<Judged, 'owner'> {
  const pids = views.filter(({ statuses }) => statuses.has(id)).map(({ endpoint }) => endpoint.pid);
  const owner = owners?.processes.find(({ pid }) => pids.includes(pid));
  return owner ? { owner } : {};
}

/** An end that was heard only after the rows were read is not in them yet. */
function hasToldEnd(endedAt: number | undefined, turn: TurnRecord, now: number): boolean {
  return endedAt !== undefined && endedAt >= turn.openedAt && endedAt <= now;
}

/**
 * The rows and the server's word are not of one moment: a turn that was written to just now may have begun after the
 * server was asked, or ended before it, unless the server has told of its end. A prompt without an answer may as well be
 * one that wants none.
 */
function isMoving(turn: TurnRecord, now: number): boolean {
  return !turn.unanswered && now - turn.lastWriteAt < SETTLED_MS;
}

function claimsOf(
  session: StoredSession,
  look: LocalLook,
  verdict: OwnerVerdict,
  owner: OpencodeProcess | undefined,
): readonly Claim[] {
  const { turn, info, activityAt } = session;
  const known = { id: info.id, activityAt, ...(turn ? { turn } : {}) };
  const spoken = look.store.source === 'database' ? look.views : [];
  const servers = spoken
    .filter((view) => !(look.streamed.has(view.endpoint.url) && view.statuses.has(info.id)))
    .map((view) => serverClaim(view, known, look.now));
  // A server that has begun it says so; until its answer is stored, another look may find that server out of reach.
  const bySaying = turn?.unanswered === true && look.views.some(({ statuses }) => statuses.has(info.id));
  const rows = turn && !bySaying ? turnClaim(turn, verdict, FEED.database, look.now) : undefined;
  const isKnown = verdict === 'dead' || owner !== undefined;
  const process = turn && isOpen(turn) && isKnown ? processClaim(verdict, owner, turn) : undefined;
  return [...servers, rows, process].filter((claim) => claim !== undefined);
}

function factsOfStored(
  session: StoredSession & { readonly diff?: DiffFile },
  { store, views }: LocalLook,
  owner: OpencodeProcess | undefined,
): SessionFacts {
  const { info, activityAt, usedTokens, diff } = session;
  const view = views.find(({ statuses }) => statuses.has(info.id)) ?? views[0];
  const status = view && (view.statuses.get(info.id)?.type ?? 'idle');
  const source = view ? 'server' : store.source === 'storage' ? 'storage' : 'database';
  const facts = factsOf(info, source, status);
  const pid = owner?.pid ?? (view?.statuses.has(info.id) ? view.endpoint.pid : undefined);
  return {
    ...facts,
    lastActivityAt: activityAt,
    // Said also when there is none: an absent value would leave the last one standing (S-006).
    endpoint: view?.endpoint.url ?? '',
    pids: pid === undefined ? [] : [pid],
    ...(usedTokens === undefined ? {} : { contextUsage: { usedTokens } }),
    ...(diff ? { native: { ...facts.native, diffFile: diff.name, diffBytes: diff.bytes } } : {}),
  };
}
