import type { BusEvent } from './bus.ts';
import { sessionOf } from './bus.ts';
import { applyV2 } from './events-v2.ts';
import { timeOfId } from './ids.ts';
import { readSessionInfo } from './info.ts';
import { isBusy, type LiveAnswer, type LiveSession, stateOfLive, unseen, type Wait } from './live.ts';
import { endOfTurn, openTurn, rest } from './live-turn.ts';
import { readTurnError, toolCall } from './outcome.ts';
import { numberOf, objectOf, textOf } from './values.ts';

/**
 * Applies one bus event of an OpenCode process to one of its sessions (1.18.33, "State from the stream"). Pure.
 * `undefined` as previous means that the process has not named the session before.
 *
 * @param at epoch milliseconds at which the event arrived
 */
export function applyEvent(
  previous: LiveSession | undefined,
  event: BusEvent,
  at: number,
): LiveSession | undefined {
  const id = sessionOf(event);
  if (id === undefined) return previous;
  const session = previous ?? placed(unseen(id, at), event.directory);
  // What still comes of a removed session is the failure of its last turn on rows that are gone.
  if (session.phase === 'removed') return session;
  const next = reduce(session, event, at);
  if (next === session) return previous ?? session;
  const sameState = JSON.stringify(stateOfLive(session)) === JSON.stringify(stateOfLive(next));
  return {
    ...next,
    since: sameState ? session.since : at,
    seen: sameState ? next.seen || event.type : event.type,
  };
}

/** What `/session/status` and the open requests say when listening begins: the stream repeats nothing. */
export function seedSession(
  previous: LiveSession | undefined,
  id: string,
  status: 'busy' | 'retry',
  requests: readonly { readonly id: string; readonly wait: Wait }[],
  at: number,
): LiveSession {
  // An event that came while the server was asked is newer than its answer.
  if (previous && previous.phase !== 'unseen') return previous;
  const open = openTurn(previous ?? unseen(id, at), at);
  const waits = new Map(requests.map((request) => [request.id, request.wait]));
  // When its turn began is not known, and a time of ours could be later than its end.
  const turn = open.prompt ? open.turn : {};
  return {
    ...open,
    turn,
    phase: status,
    waits,
    since: at,
    lastAt: at,
    seen: `${status} when listening began`,
  };
}

/** A directory's instance is closed: its turns are cut, and no idle follows. */
export function disposeInstance(session: LiveSession, directory: string, at: number): LiveSession {
  if (session.info.directory !== directory || !isBusy(session)) return session;
  return { ...rest(session, at), since: at, seen: 'server.instance.disposed' };
}

function reduce(session: LiveSession, event: BusEvent, at: number): LiveSession {
  const { type, properties } = event;
  switch (type) {
    case 'session.created':
      return { ...named(session, properties), phase: session.phase === 'unseen' ? 'idle' : session.phase };
    case 'session.updated':
      return named(session, properties);
    case 'session.deleted':
      return removed(session, at);
    case 'session.status':
      return applyStatus(session, objectOf(properties['status']), at);
    case 'session.idle':
      return rest(session, at);
    case 'session.error':
      return applyError(session, properties, at);
    case 'message.updated':
      return applyMessage(session, objectOf(properties['info']), at);
    case 'message.part.updated':
      return applyPart(session, objectOf(properties['part']), at);
    case 'message.part.delta':
      return isBusy(session) ? { ...session, phase: 'busy', streaming: true, lastAt: at } : session;
    case 'permission.asked':
    case 'question.asked':
      return ask(session, properties, at);
    case 'permission.replied':
    case 'question.replied':
    case 'question.rejected':
      return answered(session, textOf(properties['requestID']), at);
    default:
      return type.startsWith('session.next.') ? applyV2(session, type.slice(13), properties, at) : session;
  }
}

function placed(session: LiveSession, directory: string | undefined): LiveSession {
  return directory === undefined ? session : { ...session, info: { ...session.info, directory } };
}

function named(session: LiveSession, properties: BusEvent['properties']): LiveSession {
  const info = readSessionInfo(properties['info']);
  return info ? { ...session, info } : session;
}

function removed(session: LiveSession, at: number): LiveSession {
  const cut = isBusy(session) ? { ...session.turn, endedAt: at, end: 'stopped' as const } : session.turn;
  return { ...session, phase: 'removed', turn: cut, waits: new Map(), tools: new Map(), streaming: false };
}

function applyStatus(
  session: LiveSession,
  status: Readonly<Record<string, unknown>> | undefined,
  at: number,
): LiveSession {
  const type = textOf(status?.['type']);
  if (type === 'idle') return rest(session, at);
  if (type !== 'busy' && type !== 'retry') return session;
  const open = isBusy(session) ? session : openTurn(session, at);
  return { ...open, phase: type, streaming: type === 'busy' && open.streaming, lastAt: at };
}

/**
 * An abort ends the turn at once. Any other error waits for the idle that follows, and of a session that is not
 * busy it is a prompt that failed before its turn began (an unknown agent or model).
 */
function applyError(session: LiveSession, properties: BusEvent['properties'], at: number): LiveSession {
  const failure = readTurnError(properties['error']);
  if (!failure) return session;
  if (isBusy(session)) {
    const failing = { ...session, failure, lastAt: at };
    return failure.name === 'MessageAbortedError' ? rest(failing, at) : failing;
  }
  if (failure.name === 'MessageAbortedError' || (session.turn.end !== undefined && !promptIsNewer(session)))
    return session;
  const openedAt = promptIsNewer(session) ? session.prompt?.at : at;
  const refused: LiveSession = { ...session, phase: 'idle', failure, turn: { openedAt: openedAt ?? at } };
  const { answer: _answer, ...withoutAnswer } = refused;
  return { ...withoutAnswer, turn: endOfTurn(withoutAnswer, at), lastAt: at };
}

function promptIsNewer(session: LiveSession): boolean {
  return (
    session.prompt !== undefined && session.prompt.at > (session.turn.openedAt ?? Number.NEGATIVE_INFINITY)
  );
}

function applyMessage(
  session: LiveSession,
  info: Readonly<Record<string, unknown>> | undefined,
  at: number,
): LiveSession {
  const id = textOf(info?.['id']);
  if (!info || id === undefined) return session;
  const time = objectOf(info['time']);
  if (info['role'] === 'user') {
    // The summary of its changes comes as an update of the user message after the turn: no activity.
    if (session.prompt && session.prompt.id >= id) return session;
    const prompt = { id, at: numberOf(time?.['created']) ?? at };
    // A shell run is busy before its prompt is there.
    const begins = isBusy(session) && !session.answer;
    return { ...session, prompt, ...(begins ? { turn: { openedAt: prompt.at } } : {}) };
  }
  if (info['role'] !== 'assistant' || (session.answer && session.answer.id > id)) return session;
  return settle({ ...session, answer: readAnswer(session, info, id) }, at);
}

function readAnswer(session: LiveSession, info: Readonly<Record<string, unknown>>, id: string): LiveAnswer {
  const completedAt = numberOf(objectOf(info['time'])?.['completed']);
  const finish = textOf(info['finish']);
  const error = readTurnError(info['error']);
  return {
    id,
    hasParts: session.answer?.id === id && session.answer.hasParts,
    ...(completedAt === undefined ? {} : { completedAt }),
    ...(finish ? { finish } : {}),
    ...(error ? { error } : {}),
  };
}

/** While busy, a message ends nothing: the next step follows. At rest it says how the turn ended. */
function settle(session: LiveSession, at: number): LiveSession {
  if (isBusy(session)) return { ...session, lastAt: at };
  if (session.answer?.completedAt === undefined) return session;
  const openedAt = session.turn.openedAt ?? session.prompt?.at ?? session.answer.completedAt;
  const own: LiveSession = { ...session, phase: 'idle', turn: { ...session.turn, openedAt } };
  return { ...own, turn: endOfTurn(own, at) };
}

function applyPart(
  session: LiveSession,
  part: Readonly<Record<string, unknown>> | undefined,
  at: number,
): LiveSession {
  const messageId = textOf(part?.['messageID']);
  if (!part || messageId === undefined || messageId === session.prompt?.id) return session;
  const answer =
    session.answer?.id === messageId && !session.answer.hasParts
      ? { ...session.answer, hasParts: true }
      : session.answer;
  const known = answer && answer !== session.answer ? { ...session, answer } : session;
  if (!isBusy(known)) return known;
  return { ...known, ...doingAfter(known, part), lastAt: at };
}

function doingAfter(
  session: LiveSession,
  part: Readonly<Record<string, unknown>>,
): Partial<Pick<LiveSession, 'streaming' | 'tools'>> {
  switch (part['type']) {
    // The end of a thought is no end of the output: the answer, or a call, follows at once.
    case 'text':
      return numberOf(objectOf(part['time'])?.['end']) === undefined ? {} : { streaming: false };
    case 'tool':
      return { streaming: false, tools: toolsAfter(session, part) };
    case 'step-start':
    case 'step-finish':
      return { streaming: false };
    default:
      return {};
  }
}

function toolsAfter(session: LiveSession, part: Readonly<Record<string, unknown>>): LiveSession['tools'] {
  const callId = textOf(part['callID']) ?? textOf(part['id']) ?? '';
  const state = objectOf(part['state']);
  const tools = new Map(session.tools);
  const name = textOf(part['tool']);
  if (state?.['status'] === 'running' && name !== undefined)
    tools.set(callId, toolCall(name, state['input']));
  if (state?.['status'] === 'completed' || state?.['status'] === 'error') tools.delete(callId);
  return tools;
}

function ask(session: LiveSession, request: BusEvent['properties'], at: number): LiveSession {
  const id = textOf(request['id']);
  if (id === undefined) return session;
  // Whoever asks is at work, also when its `busy` came before we listened.
  const open = isBusy(session) ? session : openTurn(session, at);
  return { ...open, waits: new Map(open.waits).set(id, readRequest(id, request, at)), lastAt: at };
}

/** Reads a request of `GET /permission`, `GET /question` or their events. */
export function readRequest(id: string, request: Readonly<Record<string, unknown>>, now: number): Wait {
  const asker = objectOf(request['tool']);
  const callId = textOf(asker?.['callID']);
  const messageId = textOf(asker?.['messageID']);
  const permission = textOf(request['permission']);
  const made = timeOfId(id, now);
  const metadata = objectOf(request['metadata']);
  const [pattern] = Array.isArray(request['patterns']) ? (request['patterns'] as unknown[]) : [];
  return {
    kind: permission === undefined ? 'question' : 'permission',
    at: made === undefined || made > now ? now : made,
    ...(permission === undefined ? {} : { tool: toolCall(permission, { pattern, ...metadata }) }),
    ...(callId ? { callId } : {}),
    ...(messageId ? { messageId } : {}),
  };
}

function answered(session: LiveSession, requestId: string | undefined, at: number): LiveSession {
  if (requestId === undefined || !session.waits.has(requestId)) return session;
  const waits = new Map(session.waits);
  waits.delete(requestId);
  return { ...session, waits, lastAt: at };
}
