import { statSync } from 'node:fs';
import type { Obstacle } from '../../../runtime/control/driver.ts';
import type { Refusal } from '../../../runtime/control.ts';
import type { ProcessHost } from '../../../runtime/process/types.ts';
import type { ControlContext } from '../../adapter.ts';
import type { StoredSession } from '../database.ts';
import { findEndpoints } from '../endpoints.ts';
import { findOwners, judgeOwner, type OpencodeProcess, type StoreOwners } from '../owners.ts';
import { tailOf } from '../remote.ts';
import { isOpen, type TurnRecord } from '../rows.ts';
import { ask, homeOf, readStoreOf } from '../scan.ts';
import { createServerApi } from '../server-api.ts';
import type { Refused, Server } from '../servers.ts';
import { needsOwner } from '../sightings.ts';
import { isMine, isSameUrl, type OwnServers, ownServersOf } from './own-servers.ts';
import { choices, needsPassword, noFolder, noSuchSession, unreachable } from './refusals.ts';
import { findSession } from './server-calls.ts';

/** A server of this store, and what it is to us. */
export interface Candidate {
  readonly server: Server;
  /** Ours: the managed one, one that this process ends, or one of another process of ours. */
  readonly ours?: 'managed' | 'mine' | 'others';
  readonly named: boolean;
}

/** Everything that decides how a message can reach a session, at one moment. */
export interface Survey {
  readonly sessionId: string;
  readonly directory: string | undefined;
  readonly candidates: readonly Candidate[];
  /** The one that runs a turn of the session now. */
  readonly runner?: Candidate;
  readonly lastPromptId?: string;
  readonly obstacle?: Obstacle;
  /** Who runs it, where that is another process. */
  readonly owner?: OpencodeProcess;
  /** Nobody but `owner` can be the one: a terminal does not tell which session it shows. */
  readonly ownerIsSure?: boolean;
  /** What the user should know before a message is sent. */
  readonly notes: readonly string[];
}

/** A session written to this recently may be busy although its rows say that it rests, milliseconds. */
const RECENT_MS = 30_000;

/** Looks at the store, the processes and the servers for one session of this computer's store. */
export async function surveyLocal(
  context: ControlContext,
  host: ProcessHost,
  sessionId: string,
  directoryHint?: string,
): Promise<Survey> {
  const home = homeOf(context);
  const store = readStoreOf(context, home);
  const stored = store.sessions.find(({ info }) => info.id === sessionId);
  const directory = stored?.info.directory ?? directoryHint;
  // On Linux looking costs no program; it also shows a terminal that rests in the folder.
  const looks = host.platform === 'linux' || (stored !== undefined && needsOwner(stored));
  const owners = looks ? await findOwners(home.database, host) : undefined;
  const found = await ask(context, host, home, store, {
    ...(owners ? { owners } : {}),
    endpoint: undefined,
  });
  const own = ownServersOf(context);
  const candidates = found.local.map((server) => candidateOf(server, own));
  const asked = await busyAmong(candidates, stored, sessionId, directory, context.now());
  const look = { context, sessionId, stored, directory, owners, refused: found.refused, ...asked };
  const judged = judge(look);
  return {
    sessionId,
    directory,
    candidates,
    ...(asked.runner ? { runner: asked.runner } : {}),
    ...(stored?.turn?.promptId ? { lastPromptId: stored.turn.promptId } : {}),
    ...judged,
    notes: [...notesOf(found.refused, found.invalid), ...terminalNotes(owners, directory)],
  };
}

/** A terminal tells nobody which session it shows, so this can only be said, not known. */
function terminalNotes(owners: StoreOwners | undefined, directory: string | undefined): readonly string[] {
  const there = owners?.processes.find(
    ({ serves, holdsStore, cwd }) => !serves && holdsStore === true && cwd !== undefined && cwd === directory,
  );
  if (!there) return [];
  return [
    `OpenCode is open in a terminal in this folder (process ${there.pid}); if it shows this session, it shows the message only when the session is opened again`,
  ];
}

function candidateOf(server: Server, own: OwnServers): Candidate {
  const record = own.find(({ url }) => isSameUrl(url, server.endpoint.url));
  if (!record) return { server, named: server.endpoint.named };
  const ours = record.life === 'managed' ? 'managed' : isMine(record) ? 'mine' : 'others';
  return { server, named: server.endpoint.named, ours };
}

interface Busy {
  readonly runner?: Candidate;
  /** A turn of the `/api/session` routes runs there, which these routes know nothing of (tricky case 14). */
  readonly runnerV2?: Candidate;
  /** Pids of servers that were asked and do not run it. */
  readonly resting: ReadonlySet<number>;
}

/** Asks only where a turn may run: the question alone makes a server load the folder. */
async function busyAmong(
  candidates: readonly Candidate[],
  stored: StoredSession | undefined,
  sessionId: string,
  directory: string | undefined,
  now: number,
): Promise<Busy> {
  const mayRun = stored && (needsOwner(stored) || now - stored.activityAt < RECENT_MS);
  if (!mayRun) return { resting: new Set() };
  const answers = await Promise.all(
    candidates.map(async (candidate) => {
      const { api } = candidate.server;
      const [statuses, active] = await Promise.all([api.statuses(directory), api.active()]);
      const busy = statuses.kind === 'ok' && statuses.value.has(sessionId);
      const v2 = active.kind === 'ok' && active.value.has(sessionId);
      return { candidate, busy, v2, answered: statuses.kind === 'ok' };
    }),
  );
  const runner = answers.find(({ busy }) => busy)?.candidate;
  const runnerV2 = answers.find(({ v2 }) => v2)?.candidate;
  const resting = answers.filter(({ answered, busy, v2 }) => answered && !busy && !v2);
  return {
    ...(runner ? { runner } : {}),
    ...(runnerV2 ? { runnerV2 } : {}),
    resting: new Set(resting.flatMap(({ candidate }) => candidate.server.endpoint.pid ?? [])),
  };
}

interface Look extends Busy {
  readonly context: ControlContext;
  readonly sessionId: string;
  readonly stored: StoredSession | undefined;
  readonly directory: string | undefined;
  readonly owners: StoreOwners | undefined;
  readonly refused: readonly Refused[];
}

function judge(look: Look): Pick<Survey, 'obstacle' | 'owner' | 'ownerIsSure'> {
  const { directory, sessionId, stored, owners, runner, runnerV2, refused } = look;
  if (directory !== undefined && !isFolder(directory)) return { obstacle: other(noFolder(directory)) };
  const closed = refused.find((one) => one.endpoint.named && one.failure.kind === 'needs-password');
  if (closed) return { obstacle: other(needsPassword(closed)) };
  if (runnerV2) return { obstacle: ownedByV2(runnerV2, sessionId) };
  if (runner || !stored?.turn || !owners || !isOpen(stored.turn)) return {};
  const turn = { lastWriteAt: stored.turn.lastWriteAt, ...(directory ? { directory } : {}) };
  const { verdict, owner } = judgeOwner(owners, turn, look.resting);
  if (verdict === 'dead') return {};
  const locked = refused.find(
    ({ endpoint, failure }) => failure.kind === 'needs-password' && endpoint.pid === owner?.pid && owner,
  );
  const obstacle = owned(sessionId, stored.turn, owner, locked);
  if (!owner) return { obstacle };
  const others = judgeOwner(owners, turn, new Set([...look.resting, owner.pid]));
  return { obstacle, owner, ownerIsSure: others.verdict === 'dead' };
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function other(refusal: Refusal): Obstacle {
  return { kind: 'other', refusal, until: '' };
}

function owned(
  sessionId: string,
  turn: TurnRecord,
  owner: OpencodeProcess | undefined,
  locked: Refused | undefined,
): Obstacle {
  const what = doingWords(turn);
  const who = owner ? `process ${owner.pid}` : 'another OpenCode';
  const where = owner?.serves ? 'a server' : 'a terminal';
  const reason = owner
    ? `${where} (${who}) works on it now: ${what}. OpenCode can’t be reached there from here, and a message through another process would start a second turn beside that one`
    : `${what}, and it can’t be told whether a process still works on it`;
  const first = locked ? `${needsPassword(locked).next} ` : '';
  return {
    kind: 'owned',
    refusal: { reason, kind: 'ownedElsewhere', next: choices(sessionId, first.trim()) },
    until: `it is sent when the turn of ${who} has ended`,
  };
}

function doingWords({ doing, unanswered }: TurnRecord): string {
  if (unanswered) return 'its newest prompt has no answer yet';
  if (!doing) return 'its newest answer is unfinished';
  return doing.started
    ? `its tool ${doing.call.name} runs`
    : `its tool ${doing.call.name} is open, and perhaps waits for an answer there`;
}

function ownedByV2({ server }: Candidate, sessionId: string): Obstacle {
  return {
    kind: 'owned',
    refusal: {
      reason: `a client of OpenCode’s newer routes runs a turn of it on ${server.endpoint.url}, which a message from here would run beside`,
      kind: 'ownedElsewhere',
      next: choices(sessionId),
    },
    until: 'it is sent when that turn has ended',
  };
}

/** Servers that could have taken it. */
function notesOf(refused: readonly Refused[], invalid: string | undefined): readonly string[] {
  const locked = refused
    .filter(({ failure, endpoint }) => failure.kind === 'needs-password' && !endpoint.named)
    .map(
      ({ endpoint }) =>
        `the server at ${endpoint.url} asks for a password, so it is not used: set OPENCODE_SERVER_PASSWORD`,
    );
  const silent = refused
    .filter(({ failure, endpoint }) => endpoint.named && failure.kind !== 'needs-password')
    .map(({ endpoint, failure }) => `the server at ${endpoint.url} is not used: ${failure.reason}`);
  return [...locked, ...silent, ...(invalid ? [`not an address of a server: ${invalid}`] : [])];
}

/** The same for a session whose store is not on this computer: only its server can tell, and take a message. */
export async function surveyRemote(
  context: ControlContext,
  url: string,
  sessionId: string,
): Promise<Survey | Refusal> {
  const [endpoint] = findEndpoints(context, url, { servers: [] }).endpoints;
  if (!endpoint) return unreachable(url, 'it is no address');
  const api = createServerApi(endpoint, context.now);
  const health = await api.health();
  if (health.kind === 'needs-password') return needsPassword({ endpoint });
  if (health.kind !== 'ok') return unreachable(url, health.reason);
  const info = await findSession({ endpoint, sessionId, directory: undefined });
  if (info === 'missing') return noSuchSession(sessionId, url);
  if ('reason' in info) return unreachable(url, info.reason);
  const candidate: Candidate = { server: { endpoint, version: health.value, api }, named: true };
  const [statuses, messages] = await Promise.all([api.statuses(info.directory), api.messages(sessionId, 2)]);
  const busy = statuses.kind === 'ok' && statuses.value.has(sessionId);
  const turn = messages.kind === 'ok' ? tailOf(messages.value).turn : undefined;
  const obstacle =
    !busy && turn && isOpen(turn) && !turn.unanswered
      ? owned(sessionId, turn, undefined, undefined)
      : undefined;
  return {
    sessionId,
    directory: info.directory,
    candidates: [candidate],
    ...(busy ? { runner: candidate } : {}),
    ...(turn?.promptId ? { lastPromptId: turn.promptId } : {}),
    ...(obstacle ? { obstacle } : {}),
    notes: [],
  };
}

/**
 * The server to hand a message to: the one that runs the session; the one that the user named; the managed one; one
 * that was started for this session; any other of the user's, since a server runs the sessions of every folder. Never
 * one that another process of ours is about to end.
 */
export function chooseServer({
  runner,
  candidates,
}: Pick<Survey, 'runner' | 'candidates'>): Candidate | undefined {
  const usable = candidates.filter(({ ours }) => ours !== 'others');
  return (
    runner ??
    usable.find(({ named }) => named) ??
    usable.find(({ ours }) => ours === 'managed') ??
    usable.find(({ ours }) => ours === 'mine') ??
    usable[0]
  );
}
