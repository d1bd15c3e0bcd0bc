import type { Message, TurnResult, TurnSink } from '../../../runtime/control/driver.ts';
import type { ApprovalAnswer, ApprovalResult, Refusal, TurnEnd } from '../../../runtime/control.ts';
import { systemTimers } from '../../../runtime/files/coalesce.ts';
import { CONTROL } from '../../../runtime/limits.ts';
import type { SessionRef } from '../../../runtime/session/session.ts';
import type { BusEvent } from '../bus.ts';
import type { Server } from '../servers.ts';
import { listen } from '../stream.ts';
import { errorWords, type Posted } from './post.ts';
import {
  NOT_CONFIRMED,
  noSuchRequest,
  noSuchSession,
  STALE,
  serverRefused,
  unreachable,
} from './refusals.ts';
import { type AskedRequest, DENIED, noteWords, pendingOf, replyOf } from './requests.ts';
import { abortTurn, listAsked, type ModelName, type Place, prompt, sendReply } from './server-calls.ts';
import { readEnd, readPrompt } from './tail.ts';
import { createTurnReader, type TurnReader, type TurnStep } from './turn-reader.ts';
import { createWaiters } from './waiters.ts';

/** Times of a turn, milliseconds; tests shorten them. */
export interface TurnTimes {
  /** How long the server may take to say that it has the message. */
  readonly acceptMs: number;
  readonly ackMs: number;
  readonly interruptMs: number;
  /** How often the server is asked besides its events, so that no lost event lets a turn run for ever. */
  readonly pollMs: number;
  /** After `idle`, how long the last answer may take to be closed (seen: 0.33 s after an abort). */
  readonly settleMs: number;
  /** How long a server that has cut its stream may be out of reach before it counts as gone. */
  readonly lostMs: number;
  /** How long a message that was taken may wait for its turn to begin (seen: 2 s in a cold instance). */
  readonly beginMs: number;
}

export const TURN_TIMES: TurnTimes = {
  acceptMs: CONTROL.acceptMs,
  ackMs: CONTROL.ackMs,
  interruptMs: CONTROL.interruptMs,
  pollMs: 5_000,
  settleMs: 2_000,
  lostMs: 5_000,
  beginMs: 60_000,
};

export interface ServerTurnOptions {
  readonly server: Server;
  /** The session's row; what its sub-agents ask is shown there. */
  readonly session: SessionRef;
  readonly directory: string | undefined;
  readonly message: Message;
  readonly model: ModelName | undefined;
  readonly lastPromptId: string | undefined;
  /** The server runs a turn of this session already. */
  readonly busy: boolean;
  readonly sink: TurnSink;
  /** Says that the message was taken, in words and mode of the way it went. */
  readonly accepted: () => void;
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly times?: TurnTimes;
}

const RETRY_MS = 200;
const LOOK_MS = 50;

/** One message handed to a server, and its turn followed to the end. */
export class ServerTurn {
  readonly #options: ServerTurnOptions;
  readonly #times: TurnTimes;
  readonly #place: Place;
  readonly #reader: TurnReader;
  readonly #over = Promise.withResolvers<TurnResult>();
  readonly #ending = new AbortController();
  readonly #asked = new Map<string, AskedRequest>();
  /** Requests whose answer is under way: what the server says of them is the answer's own echo. */
  readonly #answering = new Set<string>();
  readonly #seen = new Set<string>();
  readonly #replies = createWaiters();
  /** What was refused without asking anybody. */
  readonly #refused: string[] = [];
  #posted = false;
  #acceptedAt: number | undefined;
  #resting = false;
  #ended = false;
  /** The process of the server is being ended by us. */
  #killed = false;

  constructor(options: ServerTurnOptions) {
    const { session, server, directory, message, lastPromptId, busy } = options;
    this.#options = options;
    this.#times = options.times ?? TURN_TIMES;
    this.#place = { endpoint: server.endpoint, sessionId: session.sessionId, directory };
    this.#reader = createTurnReader({
      sessionId: session.sessionId,
      directory,
      text: message.text,
      lastPromptId,
      busy,
    });
  }

  /** Hands the message over once the events are heard, and resolves with the turn's end. */
  async run(): Promise<TurnResult> {
    const opened = Promise.withResolvers<string | undefined>();
    const listening = this.#listen((failure) => opened.resolve(failure));
    const failure = await opened.promise;
    if (failure === undefined) await this.#post();
    else this.#end({ kind: 'refused', refusal: unreachable(this.#options.server.endpoint.url, failure) });
    const poll = setInterval(() => void this.#resync(), this.#times.pollMs);
    const result = await this.#over.promise;
    clearInterval(poll);
    this.#ending.abort();
    this.#replies.cancelAll();
    for (const id of this.#asked.keys()) this.#options.sink.withdrawn(id);
    this.#asked.clear();
    await listening;
    return result;
  }

  async #post(): Promise<void> {
    this.#posted = true;
    const late = setTimeout(() => void this.#tooLate(), this.#times.acceptMs);
    void this.#over.promise.finally(() => clearTimeout(late));
    const { message, model } = this.#options;
    const posted = await prompt(this.#place, message.text, model);
    const refusal = this.#refusalOf(posted);
    // An answer that was lost tells nothing: the message may be there, and its event says so.
    if (refusal && !this.#reader.accepted) this.#end({ kind: 'refused', refusal });
  }

  #refusalOf(posted: Posted): Refusal | undefined {
    const { url } = this.#place.endpoint;
    if (posted.kind === 'failed') return posted.sent ? undefined : unreachable(url, posted.reason);
    if (posted.status === 204 || posted.status === 200) return undefined;
    if (posted.status === 404) return noSuchSession(this.#place.sessionId, url);
    return serverRefused(url, posted.status, errorWords(posted));
  }

  async #tooLate(): Promise<void> {
    if (this.#reader.accepted) return;
    await this.#resync();
    if (!this.#reader.accepted) this.#end({ kind: 'refused', refusal: NOT_CONFIRMED });
  }

  /** Holds the event stream, again and again until the turn is over or the server is gone. */
  async #listen(opened: (failure: string | undefined) => void): Promise<void> {
    const { signal } = this.#ending;
    const listener = {
      opened: () => {},
      heard: () => {
        opened(undefined);
        if (this.#posted) void this.#resync();
      },
      event: (event: BusEvent) => this.#take(event),
    };
    while (!signal.aborted) {
      const reason = await listen(this.#options.server.endpoint, listener, systemTimers, signal);
      opened(reason);
      if (signal.aborted) return;
      if (!this.#posted) return;
      if (!(await this.#isBack())) return this.#lost(reason);
    }
  }

  /** Whether the server answers again soon after it has cut its stream. */
  async #isBack(): Promise<boolean> {
    const deadline = performance.now() + this.#times.lostMs;
    while (performance.now() < deadline && !this.#ending.signal.aborted && !this.#killed) {
      await Bun.sleep(RETRY_MS);
      const health = await this.#options.server.api.health();
      if (health.kind === 'ok') return true;
    }
    return this.#ending.signal.aborted;
  }

  #lost(reason: string): void {
    const { url } = this.#place.endpoint;
    if (!this.#reader.accepted) {
      // Once it was posted it may be in the session, whoever has gone.
      this.#end({ kind: 'refused', refusal: this.#posted ? NOT_CONFIRMED : unreachable(url, reason) });
      return;
    }
    const outcome = this.#killed ? 'stopped' : 'failed';
    const error = this.#killed
      ? 'its server was ended in the middle of the turn'
      : `the server at ${url} left in the middle of the turn: ${reason}`;
    this.#end({ kind: 'done', outcome, error });
  }

  #take(event: BusEvent): void {
    if (!this.#posted) return;
    for (const step of this.#reader.read(event)) this.#step(step);
  }

  #step(step: TurnStep): void {
    if (this.#ended) return;
    switch (step.kind) {
      case 'accepted':
        this.#acceptedAt = performance.now();
        this.#options.accepted();
        break;
      case 'progress':
        this.#options.sink.progress(step.doing, step.text, step.tool);
        break;
      case 'asked':
        this.#ask(step.request);
        break;
      case 'answered':
        this.#answered(step.requestId);
        break;
      case 'rest':
        void this.#rest();
        break;
      case 'refused':
        this.#end({
          kind: 'refused',
          refusal: serverRefused(this.#place.endpoint.url, undefined, step.reason),
        });
        break;
      case 'removed':
        this.#removed();
        break;
    }
  }

  #removed(): void {
    if (this.#reader.accepted) {
      this.#end({ kind: 'done', outcome: 'stopped', error: 'the session was deleted' });
      return;
    }
    const { sessionId, endpoint } = this.#place;
    this.#end({ kind: 'refused', refusal: noSuchSession(sessionId, endpoint.url) });
  }

  /** What our message asks for: shown, or answered by the policy that the user chose for this turn. */
  #ask(request: AskedRequest): void {
    if (this.#seen.has(request.id) || !this.#reader.owns(request)) return;
    this.#seen.add(request.id);
    const { message, sink, session, now } = this.#options;
    const policy = message.approvals;
    const isEdit = request.kind === 'permission' && request.raw['permission'] === 'edit';
    const byPolicy =
      policy === 'deny' || policy === 'runtime-default'
        ? 'deny'
        : policy === 'allow-edits' && isEdit
          ? 'allow-once'
          : undefined;
    if (byPolicy) {
      this.#decide(request, byPolicy, DENIED);
      return;
    }
    this.#asked.set(request.id, request);
    if (sink.request(pendingOf(request, session, now()))) return;
    this.#asked.delete(request.id);
    this.#decide(request, 'deny', 'Too many requests wait for the user already.');
  }

  #decide(request: AskedRequest, decision: 'allow-once' | 'deny', note: string): void {
    const { raw, kind } = request;
    if (decision === 'deny') this.#refused.push(String(raw['permission'] ?? kind));
    const reply = replyOf(request, { decision, note });
    void sendReply(this.#place.endpoint, request.directory, reply, this.#times.acceptMs);
  }

  #answered(requestId: string): void {
    this.#replies.resolve(requestId);
    if (this.#answering.has(requestId) || !this.#asked.delete(requestId)) return;
    this.#options.sink.withdrawn(requestId);
  }

  /** The session rests: its last answer is closed within moments, or its messages tell. */
  async #rest(): Promise<void> {
    if (this.#resting) return;
    this.#resting = true;
    const end = await this.#closing();
    const count = this.#refused.length;
    const words = `${count} request${count === 1 ? ' was' : 's were'} refused: ${[...new Set(this.#refused)].join(', ')}`;
    this.#end({ kind: 'done', ...end, ...(count > 0 ? { notes: [words] } : {}) });
  }

  async #closing(): Promise<TurnEnd> {
    const deadline = performance.now() + this.#times.settleMs;
    for (;;) {
      const end = this.#reader.end();
      // Events were missed where a turn went well and has no text: its messages have it.
      if (end && this.#reader.whole && (end.text !== undefined || end.outcome !== 'completed')) return end;
      if (end && this.#reader.whole) break;
      if (performance.now() >= deadline || this.#ended) break;
      await Bun.sleep(LOOK_MS);
    }
    const told = await readEnd(this.#options.server.api, this.#place.sessionId, this.#reader.promptId);
    return (
      told ??
      this.#reader.end() ?? {
        outcome: 'stopped',
        error: 'the session rests, and nothing has answered the message',
      }
    );
  }

  /** Asks for what an event may have told while nobody listened, or never told. */
  async #resync(): Promise<void> {
    const { api } = this.#options.server;
    if (this.#ended || this.#resting) return;
    if (!this.#reader.accepted) await this.#findPrompt();
    if (!this.#reader.accepted) return;
    const statuses = await api.statuses(this.#place.directory);
    if (statuses.kind !== 'ok' || this.#ended) return;
    if (statuses.value.has(this.#place.sessionId)) {
      await this.#askAgain();
      return;
    }
    const told = await readEnd(api, this.#place.sessionId, this.#reader.promptId);
    const waited = performance.now() - (this.#acceptedAt ?? performance.now());
    if (told || this.#reader.begun) void this.#rest();
    else if (waited > this.#times.beginMs) {
      this.#end({ kind: 'done', outcome: 'failed', error: 'OpenCode took the message and began no turn' });
    }
  }

  async #findPrompt(): Promise<void> {
    const { message, lastPromptId, server } = this.#options;
    const found = await readPrompt(server.api, this.#place.sessionId, message.text, lastPromptId);
    if (found) for (const step of this.#reader.found(found)) this.#step(step);
  }

  /** Requests that were raised while the stream was lost (A6). */
  async #askAgain(): Promise<void> {
    const listed = await listAsked(this.#place.endpoint, this.#place.directory);
    if ('reason' in listed || this.#ended) return;
    for (const request of listed) if (this.#reader.family.has(request.sessionId)) this.#ask(request);
  }

  #end(result: TurnResult): void {
    this.#ended = true;
    this.#over.resolve(result);
  }

  /** Answers a request that was told of. Applied once the server's own event says so (A1). */
  async answer(answer: ApprovalAnswer): Promise<ApprovalResult> {
    const request = this.#asked.get(answer.requestId);
    if (!request) return { kind: 'refused', refusal: STALE };
    this.#answering.add(request.id);
    const echo = this.#replies.waitFor(request.id, this.#times.ackMs);
    const reply = replyOf(request, answer);
    const posted = await sendReply(this.#place.endpoint, request.directory, reply, this.#times.ackMs);
    const result = await this.#resultOf(posted, request, answer, echo);
    this.#asked.delete(request.id);
    return result;
  }

  async #resultOf(
    posted: Posted,
    request: AskedRequest,
    answer: ApprovalAnswer,
    echo: Promise<boolean>,
  ): Promise<ApprovalResult> {
    const { url } = this.#place.endpoint;
    if (posted.kind === 'failed' && !posted.sent) {
      return { kind: 'refused', refusal: unreachable(url, posted.reason) };
    }
    if (posted.kind === 'answer' && posted.status === 404) {
      return { kind: 'refused', refusal: noSuchRequest(request.id) };
    }
    if (posted.kind === 'answer' && posted.status !== 200) {
      return { kind: 'refused', refusal: serverRefused(url, posted.status, errorWords(posted)) };
    }
    if (await echo)
      return { kind: 'applied', detail: `OpenCode has the answer${noteWords(request, answer)}` };
    return { kind: 'sent', detail: 'OpenCode has not confirmed it yet' };
  }

  /** Asks for the end of the turn; true once it was seen. */
  async stop(limitMs: number = this.#times.interruptMs): Promise<boolean> {
    const { promise: late, resolve } = Promise.withResolvers<false>();
    const timer = setTimeout(() => resolve(false), limitMs);
    await Promise.race([abortTurn(this.#place, limitMs), late]);
    const ended = await Promise.race([this.#over.promise.then(() => true as const), late]);
    clearTimeout(timer);
    return ended;
  }

  /** The server's process is about to be ended by us: its silence is the end of the turn. */
  expectEnd(): void {
    this.#killed = true;
  }

  /** Whether anything that our message asked for still waits. */
  get waits(): boolean {
    return this.#asked.size > 0;
  }
}
