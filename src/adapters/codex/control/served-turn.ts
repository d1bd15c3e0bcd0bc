import { isAbsolute, relative, resolve, sep } from 'node:path';
import type { Message, TurnSink } from '../../../runtime/control/driver.ts';
import type { ApprovalAnswer, PendingRequest, Refusal, TurnEnd } from '../../../runtime/control.ts';
import { CONTROL } from '../../../runtime/limits.ts';
import type { SessionRef } from '../../../runtime/session/session.ts';
import { type Fields, objectOf, textOf } from '../fields.ts';
import { type Answered, createAskBook } from './ask-book.ts';
import type { Ask } from './asks.ts';
import { codexRefused, notConfirmed, unreachable } from './refusals.ts';
import type { Rpc, RpcAnswer, RpcListener, ServerRequest } from './rpc.ts';
import { type Joined, joinThread, newestTurns } from './thread.ts';
import { createTurnReader, type TurnStep } from './turn-reader.ts';

/** How a turn at a server came out; `lost`: the connection ended before the turn's end was seen. */
export type Served =
  | { readonly kind: 'done'; readonly end: TurnEnd }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | { readonly kind: 'lost'; readonly reason: string };

export interface ServedOptions {
  readonly session: SessionRef;
  readonly message: Message;
  readonly sink: Pick<TurnSink, 'progress' | 'note' | 'request' | 'withdrawn'>;
  /** The server is ours alone: all that it asks is ours to answer, or to decline by name. */
  readonly own: boolean;
  /** The server has the message; `steered`: it went into a turn that ran already. */
  accepted(steered: boolean): void;
}

/** One message at an app-server, from the handing over to the end of its turn. */
export class ServedTurn implements RpcListener {
  readonly #options: ServedOptions;
  readonly #book = createAskBook();
  readonly #reader;
  #over = Promise.withResolvers<Served>();
  #workDir: string | undefined;
  /** Requests that came before it was known which turn is ours. */
  readonly #early: ServerRequest[] = [];
  /** Those that an answer of ours is on its way to. */
  readonly #answering = new Set<string>();
  readonly #declined: string[] = [];
  #rpc: Rpc | undefined;
  #steered = false;

  constructor(options: ServedOptions) {
    this.#options = options;
    this.#reader = createTurnReader(options.session.sessionId);
  }

  notified(method: string, params: Fields): void {
    const settled = this.#book.learn(method, params);
    if (settled !== undefined && !this.#answering.has(settled)) this.#options.sink.withdrawn(settled);
    for (const step of this.#reader.read(method, params)) this.#step(step);
  }

  asked(request: ServerRequest): void {
    if (this.#options.own || this.#isOurs(request)) this.#ask(request);
    else if (this.#reader.turnId === undefined) this.#early.push(request);
  }

  /** Whatever belongs to another turn, thread or client is left to them. */
  #isOurs({ params }: ServerRequest): boolean {
    const { turnId } = this.#reader;
    return turnId !== undefined && !this.#steered && textOf(params, 'turnId') === turnId;
  }

  lost(reason: string): void {
    for (const id of this.#book.clear()) this.#options.sink.withdrawn(id);
    this.#over.resolve({ kind: 'lost', reason });
  }

  /** Hands the message over and follows its turn. The thread has been joined on this connection. */
  async run(rpc: Rpc, joined: Joined): Promise<Served> {
    this.#rpc = rpc;
    this.#workDir = joined.workDir;
    const sent = await this.#send(rpc, joined);
    if (sent.kind === 'lost') return { kind: 'refused', refusal: unreachable(sent.message) };
    if (sent.kind === 'late') return { kind: 'refused', refusal: notConfirmed(sent.message) };
    if (sent.kind === 'refused') return { kind: 'refused', refusal: this.#refused(sent.message) };
    const turnId = textOf(objectOf(sent.result, 'turn'), 'id') ?? textOf(sent.result, 'turnId') ?? '';
    this.#options.accepted(this.#steered);
    for (const step of this.#reader.began(turnId)) this.#step(step);
    for (const request of this.#early.splice(0)) this.asked(request);
    return this.#over.promise;
  }

  #refused(message: string): Refusal {
    return codexRefused(message, this.#options.session.sessionId);
  }

  /** A turn that runs takes the message at once; where it has just ended, the message begins one. */
  async #send(rpc: Rpc, { active, policy }: Joined): Promise<RpcAnswer> {
    const { message, session, sink } = this.#options;
    const common = {
      threadId: session.sessionId,
      input: [{ type: 'text', text: message.text, text_elements: [] }],
      clientUserMessageId: message.id,
    };
    if (active?.turnId !== undefined) {
      const steer = { ...common, expectedTurnId: active.turnId };
      const steered = await rpc.call('turn/steer', steer, CONTROL.acceptMs);
      if (steered.kind !== 'refused' || !isOver(steered.message)) {
        this.#steered = steered.kind === 'result';
        if (this.#steered && message.model !== undefined)
          sink.note('the turn that runs keeps its model; --model is for a turn that begins');
        return steered;
      }
    }
    const override = policyFor(message.approvals, policy);
    if (override) sink.note(`its approval policy was “never”; from this turn on it is “${override}”`);
    return rpc.call(
      'turn/start',
      {
        ...common,
        ...(message.model === undefined ? {} : { model: message.model }),
        ...(override === undefined ? {} : { approvalPolicy: override }),
      },
      CONTROL.acceptMs,
    );
  }

  #ask(request: ServerRequest): void {
    const ask = this.#book.take(request);
    if (!ask) {
      if (!this.#options.own) return;
      // Nobody else could answer it, and Codex would wait for ever.
      void this.#rpc?.decline(request.rpcId, 'this client does not answer that');
      this.#options.sink.note(`declined, for it can’t be answered from here: ${request.method}`);
      return;
    }
    const { approvals } = this.#options.message;
    if (approvals === 'deny') {
      this.#decide(ask, 'deny');
      return;
    }
    if (approvals === 'allow-edits' && this.#isPlainEdit(ask)) {
      this.#decide(ask, 'allow-once');
      return;
    }
    // A sub-agent's request is the session's own.
    const pending: PendingRequest = { ...ask.pending, session: this.#options.session };
    if (this.#options.sink.request(pending)) return;
    this.#options.sink.note(`too many requests wait already; declined: ${ask.pending.subject}`);
    this.#decide(ask, 'deny');
  }

  /** A change of files below the session's own folder, and of nothing else; what isn't known is asked. */
  #isPlainEdit({ request }: Ask): boolean {
    const { method, params } = request;
    if (method !== 'item/fileChange/requestApproval' || textOf(params, 'grantRoot') !== undefined)
      return false;
    const paths = this.#book.changedBy(textOf(params, 'itemId') ?? '');
    const root = this.#workDir;
    return root !== undefined && paths.length > 0 && paths.every((path) => isBelow(root, path));
  }

  #decide(ask: Ask, decision: 'deny' | 'allow-once'): void {
    const { requestId, subject } = ask.pending;
    if (decision === 'deny') this.#declined.push(subject);
    void this.answer(requestId, { decision });
  }

  /** Answers a request that the server waits for on this connection. */
  async answer(requestId: string, answer: Pick<ApprovalAnswer, 'decision' | 'answers'>): Promise<Answered> {
    if (!this.#rpc) return 'gone';
    this.#answering.add(requestId);
    return this.#book.answer(this.#rpc, requestId, answer);
  }

  #step(step: TurnStep): void {
    if (step.kind === 'progress') this.#options.sink.progress(step.doing, step.text, step.tool);
    else this.#over.resolve({ kind: 'done', end: this.#noted(step.end) });
  }

  #noted(end: TurnEnd): TurnEnd {
    const count = this.#declined.length;
    if (count === 0) return end;
    const names = [...new Set(this.#declined)].join(', ');
    const note = `${count} request${count === 1 ? ' was' : 's were'} refused: ${names}`;
    return { ...end, notes: [...(end.notes ?? []), note] };
  }

  /** Asks the server to stop the turn; true once its end was seen. */
  async stop(): Promise<boolean> {
    const { turnId } = this.#reader;
    if (!this.#rpc || turnId === undefined) return false;
    const params = { threadId: this.#options.session.sessionId, turnId };
    // Whatever it answers, the turn's own end decides: it may have ended meanwhile.
    await this.#rpc.call('turn/interrupt', params, CONTROL.interruptMs);
    const { promise: late, resolve } = Promise.withResolvers<undefined>();
    const timer = setTimeout(() => resolve(undefined), CONTROL.interruptMs);
    const ended = await Promise.race([this.#over.promise, late]);
    clearTimeout(timer);
    return ended?.kind === 'done';
  }

  /** Follows the turn again, after a lost connection to a server that still runs; its end may have come meanwhile. */
  async resume(rpc: Rpc): Promise<Served> {
    const { sessionId } = this.#options.session;
    this.#rpc = rpc;
    this.#over = Promise.withResolvers();
    const joined = await joinThread(rpc, sessionId);
    if (joined.kind !== 'joined') return { kind: 'lost', reason: joined.message };
    const turns = await newestTurns(rpc, sessionId, KEPT_TURNS);
    const turn = turns.find((one) => textOf(one, 'id') === this.#reader.turnId);
    if (!turn) return { kind: 'lost', reason: 'the server no longer knows the turn' };
    const step = this.#reader.kept(turn);
    if (step) this.#step(step);
    return this.#over.promise;
  }
}

/** Turns that are looked through for ours after a lost connection. */
const KEPT_TURNS = 8;

/** The turn that was to be steered has ended, or another one runs (0.171). */
function isOver(message: string): boolean {
  return message.includes('no active turn') || message.includes('expected active turn');
}

/**
 * `codex exec` leaves `never` with a thread: then nothing would be asked although the owner wants to be. Every
 * other policy is the owner's own, and stays.
 */
function policyFor(approvals: Message['approvals'], policy: string | undefined): string | undefined {
  const wantsAsking = approvals === 'ask' || approvals === 'allow-edits';
  return wantsAsking && policy === 'never' ? 'on-request' : undefined;
}

function isBelow(root: string, path: string): boolean {
  const way = relative(root, resolve(root, path));
  return way !== '' && way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
