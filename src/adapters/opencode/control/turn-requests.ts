import type { Message, TurnSink } from '../../../runtime/control/driver.ts';
import { createWaiters } from '../../../runtime/control/waiters.ts';
import type { ApprovalAnswer, ApprovalResult } from '../../../runtime/control.ts';
import type { SessionRef } from '../../../runtime/session/session.ts';
import type { Endpoint } from '../endpoints.ts';
import { errorWords, type Posted } from './post.ts';
import { noSuchRequest, STALE, serverRefused, unreachable } from './refusals.ts';
import { type AskedRequest, DENIED, noteWords, pendingOf, replyOf } from './requests.ts';
import { sendReply } from './server-calls.ts';
import type { TurnTimes } from './turn-times.ts';

export interface TurnRequestsOptions {
  readonly endpoint: Endpoint;
  readonly session: SessionRef;
  readonly message: Message;
  readonly sink: TurnSink;
  readonly times: TurnTimes;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Whether our message has led to a request, and not the turn before it. */
  readonly owns: (request: AskedRequest) => boolean;
}

/** What one turn asks for: shown to the user, or answered by the policy that was chosen for the turn. */
export class TurnRequests {
  readonly #options: TurnRequestsOptions;
  readonly #asked = new Map<string, AskedRequest>();
  /** Requests whose answer is under way: what the server says of them is the answer's own echo. */
  readonly #answering = new Set<string>();
  readonly #seen = new Set<string>();
  readonly #replies = createWaiters();
  /** What was refused without asking anybody, by request id. */
  readonly #refused = new Map<string, string>();

  constructor(options: TurnRequestsOptions) {
    this.#options = options;
  }

  /** What our message asks for: shown, or answered by the policy that the user chose for this turn. */
  ask(request: AskedRequest): void {
    if (this.#seen.has(request.id) || !this.#options.owns(request)) return;
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
      void this.#decide(request, byPolicy, DENIED);
      return;
    }
    this.#asked.set(request.id, request);
    if (sink.request(pendingOf(request, session, now()))) return;
    this.#asked.delete(request.id);
    void this.#decide(request, 'deny', 'Too many requests wait for the user already.');
  }

  /** A reply that did not arrive is given again when the server is next asked what waits: nobody else would. */
  async #decide(request: AskedRequest, decision: 'allow-once' | 'deny', note: string): Promise<void> {
    const { raw, kind, id, directory } = request;
    if (decision === 'deny') this.#refused.set(id, String(raw['permission'] ?? kind));
    const reply = replyOf(request, { decision, note });
    const posted = await sendReply(this.#options.endpoint, directory, reply, this.#options.times.acceptMs);
    if (posted.kind === 'failed' || posted.status >= 500) this.#seen.delete(id);
  }

  /** The server says that a request has its answer, whoever gave it. */
  answered(requestId: string): void {
    this.#replies.resolve(requestId);
    if (this.#answering.has(requestId) || !this.#asked.delete(requestId)) return;
    this.#options.sink.withdrawn(requestId);
  }

  /** Answers a request that was told of. Applied once the server's own event says so (A1). */
  async answer(answer: ApprovalAnswer): Promise<ApprovalResult> {
    const request = this.#asked.get(answer.requestId);
    if (!request) return { kind: 'refused', refusal: STALE };
    this.#answering.add(request.id);
    const echo = this.#replies.waitFor(request.id, this.#options.times.ackMs);
    const reply = replyOf(request, answer);
    const posted = await sendReply(
      this.#options.endpoint,
      request.directory,
      reply,
      this.#options.times.ackMs,
    );
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
    const { url } = this.#options.endpoint;
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

  /** What the user should know at the end. */
  notes(): readonly string[] {
    const count = this.#refused.size;
    if (count === 0) return [];
    const names = [...new Set(this.#refused.values())].join(', ');
    return [`${count} request${count === 1 ? ' was' : 's were'} refused: ${names}`];
  }

  /** Whether anything still waits for its answer. */
  get waits(): boolean {
    return this.#asked.size > 0;
  }

  /** The turn is over: nothing of it waits any more. */
  close(): void {
    this.#replies.cancelAll();
    for (const id of this.#asked.keys()) this.#options.sink.withdrawn(id);
    this.#asked.clear();
  }
}
