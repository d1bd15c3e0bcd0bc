import type { Message, TurnResult, TurnSink } from '../../../runtime/control/driver.ts';
import type { ApprovalAnswer, ApprovalResult, Refusal, TurnEnd } from '../../../runtime/control.ts';
import { systemTimers } from '../../../runtime/files/coalesce.ts';
import type { SessionRef } from '../../../runtime/session/session.ts';
import type { BusEvent } from '../bus.ts';
import type { Server } from '../servers.ts';
import { listen } from '../stream.ts';
import { errorWords, type Posted } from './post.ts';
import { NOT_CONFIRMED, noSuchSession, serverRefused, unreachable } from './refusals.ts';
import { abortTurn, listAsked, type ModelName, type Place, prompt } from './server-calls.ts';
import { readEnd, readPrompt } from './tail.ts';
import { createTurnReader, type TurnReader, type TurnStep } from './turn-reader.ts';
import { TurnRequests } from './turn-requests.ts';
import { TURN_TIMES, type TurnTimes } from './turn-times.ts';

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
  readonly #requests: TurnRequests;
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
    this.#requests = new TurnRequests({
      ...options,
      endpoint: server.endpoint,
      times: this.#times,
      owns: (request) => this.#reader.owns(request),
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
    this.#requests.close();
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
        this.#requests.ask(step.request);
        break;
      case 'answered':
        this.#requests.answered(step.requestId);
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

  /** The session rests: its last answer is closed within moments, or its messages tell. */
  async #rest(): Promise<void> {
    if (this.#resting) return;
    this.#resting = true;
    const end = await this.#closing();
    const notes = this.#requests.notes();
    this.#end({ kind: 'done', ...end, ...(notes.length > 0 ? { notes } : {}) });
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
    for (const request of listed) if (this.#reader.family.has(request.sessionId)) this.#requests.ask(request);
  }

  #end(result: TurnResult): void {
    this.#ended = true;
    this.#over.resolve(result);
  }

  /** Answers a request that was told of. */
  answer(answer: ApprovalAnswer): Promise<ApprovalResult> {
    return this.#requests.answer(answer);
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
    return this.#requests.waits;
  }
}
