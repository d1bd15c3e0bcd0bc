import type { AbortResult, ApprovalAnswer, ApprovalResult, PendingRequest, Refusal } from '../control.ts';
import type { Scheduler } from '../daemon/clock.ts';
import { CONTROL } from '../limits.ts';
import type { KillReport } from '../process/types.ts';
import type { HostDriver, HostSpec, Message, TurnSink } from './driver.ts';
import { createHostSink, type HostSink } from './host-sink.ts';
import type { MessageQueue, QueuedMessage } from './queue.ts';
import {
  cantKeep,
  doesNotStop,
  HOST_ENDED,
  NO_TURN,
  tooManyWait,
  WITHDRAWN,
  waitedTooLong,
} from './refusals.ts';
import { createRequestStore, type Settled } from './requests.ts';
import { createTicket, type Ticket } from './ticket.ts';

/** What a host works with; everything of the outside world is handed in. */
export interface HostOptions {
  readonly spec: HostSpec;
  readonly queue: MessageQueue;
  readonly scheduler: Scheduler;
  /** Epoch milliseconds. */
  now(): number;
  /** Makes the runtime's side; called once. */
  driver(sink: TurnSink): HostDriver;
  /** The process that runs the session now, for the record. */
  onChild: TurnSink['child'];
  readonly limits?: Partial<Record<keyof typeof CONTROL, number>>;
}

/** What became of a message that was handed to a host. */
export type Submitted =
  | { readonly kind: 'ticket'; readonly ticket: Ticket }
  /** The host is about to end: start another one. */
  | { readonly kind: 'closing' }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/** How the host of a session stands. */
export interface HostStatus {
  readonly state: 'idle' | 'turn' | 'waiting for the owner' | 'closing';
  readonly queued: number;
  readonly pending: number;
}

/** One session that we drive: its messages one after the other, its requests, its end. */
export interface Host {
  /** Takes a message. With `expiresAt` (epoch milliseconds) it waits no longer than that. */
  submit(message: Message, expiresAt?: number): Submitted;
  ticket(id: string): Ticket | undefined;
  pending(): readonly PendingRequest[];
  answer(answer: ApprovalAnswer): Promise<ApprovalResult>;
  /** Stops the turn, or the process; messages that wait are withdrawn, or the next one would begin at once. */
  abort(kill: boolean): Promise<AbortResult>;
  /** Starts the runtime's process without a message. */
  open(message: Pick<Message, 'approvals' | 'model'>): Promise<Refusal | undefined>;
  status(): HostStatus;
  /** Works until nothing is left to do, then ends the process. Says what of it is left. */
  run(): Promise<KillReport>;
  /** Ends the process now; waiting messages stay in their files. */
  stop(): void;
}

interface Entry {
  readonly message: QueuedMessage;
  readonly ticket: Ticket;
  /** Its file lies in the queue, so it outlives this host. */
  kept: boolean;
  withdrawn: boolean;
}

/** Makes a host; it does nothing until `run`. */
export function createHost(options: HostOptions): Host {
  return new SessionHost(options);
}

class SessionHost implements Host {
  readonly #options: HostOptions;
  readonly #limits: Record<keyof typeof CONTROL, number>;
  readonly #driver: HostDriver;
  readonly #requests = createRequestStore();
  readonly #sink: HostSink;
  readonly #entries: Entry[] = [];
  readonly #tickets = new Map<string, Ticket>();
  /** What an earlier host left behind, told with the first message. */
  readonly #leftovers: string[] = [];
  #current: { readonly entry: Entry; phase: 'waiting' | 'turn' } | undefined;
  #closing: 'rest' | 'kill' | undefined;
  #used = false;
  #opening = false;
  /** A message was accepted, or the process started without one: there is something to keep. */
  #lives = false;
  #lastAt = 0;
  #restsSince = 0;
  #wake = Promise.withResolvers<void>();

  constructor(options: HostOptions) {
    this.#options = options;
    this.#limits = { ...CONTROL, ...options.limits };
    this.#sink = createHostSink({
      session: options.spec.session,
      approvalMs: options.spec.approvalMs,
      requests: this.#requests,
      scheduler: options.scheduler,
      now: options.now,
      ticket: () => this.#current?.entry.ticket,
      onAccepted: () => {
        this.#lives = true;
        if (this.#current) options.queue.remove(this.#current.entry.message.id);
      },
      expire: (answer) => this.#answer(answer, 'expired'),
      onChild: options.onChild,
    });
    this.#driver = options.driver(this.#sink);
  }

  submit(message: Message, expiresAt?: number): Submitted {
    const known = this.#tickets.get(message.id);
    if (known) return { kind: 'ticket', ticket: known };
    if (this.#closing) return { kind: 'closing' };
    const waiting = this.#entries.length;
    if (waiting >= this.#limits.queued) return { kind: 'refused', refusal: tooManyWait(waiting) };
    const now = this.#options.now();
    const queued: QueuedMessage = {
      ...message,
      session: this.#options.spec.session,
      createdAt: this.#moment(now),
      expiresAt: expiresAt ?? now + this.#limits.queueMs,
      attempted: false,
      order: { ...this.#options.spec, start: { kind: 'resume' } },
    };
    const mustWait = this.#current !== undefined || waiting > 0;
    const failed = mustWait ? this.#options.queue.put(queued) : undefined;
    if (failed !== undefined) return { kind: 'refused', refusal: cantKeep(failed) };
    const { ticket } = this.#enter(queued, { kept: mustWait, owed: true });
    if (mustWait) this.#sink.queued(ticket, 'it comes after a turn that this connector runs');
    return { kind: 'ticket', ticket };
  }

  /** Files are ordered by their time, so no two messages have the same. */
  #moment(now: number): number {
    this.#lastAt = Math.max(now, this.#lastAt + 1);
    return this.#lastAt;
  }

  #enter(message: QueuedMessage, how: { readonly kept: boolean; readonly owed: boolean }): Entry {
    const ticket = createTicket(message.id, how.owed);
    const entry: Entry = { message, ticket, kept: how.kept, withdrawn: false };
    this.#entries.push(entry);
    this.#tickets.set(message.id, ticket);
    for (const [id, old] of this.#tickets) {
      if (this.#tickets.size <= this.#limits.tickets) break;
      if (old.ended) this.#tickets.delete(id);
    }
    this.#ring();
    return entry;
  }

  ticket(id: string): Ticket | undefined {
    return this.#tickets.get(id);
  }

  pending(): readonly PendingRequest[] {
    return this.#requests.list();
  }

  answer(answer: ApprovalAnswer): Promise<ApprovalResult> {
    return this.#answer(answer, answer.decision);
  }

  async #answer(answer: ApprovalAnswer, as: Settled): Promise<ApprovalResult> {
    const request = this.#requests.claim(answer);
    if ('reason' in request) return { kind: 'refused', refusal: request };
    const result = await this.#driver.answer(request, answer);
    if (result.kind === 'refused') this.#sink.lost(request);
    else this.#sink.answered(request.requestId, as);
    return result;
  }

  async open(message: Pick<Message, 'approvals' | 'model'>): Promise<Refusal | undefined> {
    this.#opening = true;
    const obstacle = await this.#driver.look();
    const refusal = obstacle ? obstacle.refusal : await this.#driver.open(message);
    this.#opening = false;
    this.#restsSince = this.#options.now();
    this.#used = true;
    this.#lives ||= refusal === undefined;
    return refusal;
  }

  status(): HostStatus {
    const phase = this.#current?.phase;
    const busy = phase === 'turn' ? 'turn' : phase === 'waiting' ? 'waiting for the owner' : 'idle';
    return {
      state: this.#closing ? 'closing' : busy,
      queued: this.#entries.length + (phase === 'waiting' ? 1 : 0),
      pending: this.#requests.list().length,
    };
  }

  async abort(kill: boolean): Promise<AbortResult> {
    const count = this.#withdrawAll();
    const also = count > 0 ? `; ${count} waiting message${count === 1 ? '' : 's'} withdrawn` : '';
    if (kill) return this.#kill(also);
    if (this.#current?.phase !== 'turn') {
      if (count > 0) return { kind: 'stopped', detail: `nothing was sent${also}` };
      return { kind: 'refused', refusal: NO_TURN };
    }
    if (await this.#driver.interrupt()) return { kind: 'stopped', detail: `the turn was stopped${also}` };
    const { sessionId } = this.#options.spec.session;
    return { kind: 'refused', refusal: doesNotStop(sessionId, this.#limits.interruptMs / 1_000) };
  }

  async #kill(also: string): Promise<AbortResult> {
    this.#closing = 'kill';
    this.#ring();
    const report = await this.#driver.close('kill');
    if (report.gone)
      return { kind: 'stopped', detail: `the process and all that it started are gone${also}` };
    return { kind: 'survived', survivors: report.survivors.map(({ pid }) => ({ pid, command: '' })) };
  }

  #withdrawAll(): number {
    const waiting = this.#current?.phase === 'waiting' ? [this.#current.entry] : [];
    const entries = [...waiting, ...this.#entries.splice(0)];
    for (const entry of entries) {
      entry.withdrawn = true;
      this.#options.queue.remove(entry.message.id);
      this.#sink.refused(entry.ticket, WITHDRAWN);
    }
    this.#ring();
    return entries.length;
  }

  stop(): void {
    this.#closing ??= 'kill';
    this.#ring();
    if (this.#current?.phase === 'turn') void this.#driver.close('kill');
  }

  async run(): Promise<KillReport> {
    this.#takeUp();
    while (!this.#closing) {
      const entry = this.#entries.shift();
      if (entry) await this.#deliver(entry);
      else await this.#idle();
    }
    const report = await this.#driver.close(this.#closing ?? 'rest');
    for (const entry of this.#entries.splice(0)) this.#leave(entry);
    await this.#farewell();
    return report;
  }

  /** Messages that an earlier host left, in their order; never one that may have arrived already. */
  #takeUp(): void {
    for (const message of this.#options.queue.list()) {
      if (this.#tickets.has(message.id)) continue;
      const isOld = message.expiresAt <= this.#options.now();
      if (!isOld && !message.attempted) {
        // Nobody is there any more to be told of a refusal, so it waits instead.
        const whenOwned = message.whenOwned === 'refuse' ? 'queue' : message.whenOwned;
        this.#enter({ ...message, whenOwned }, { kept: true, owed: false });
        continue;
      }
      this.#options.queue.remove(message.id);
      const when = new Date(message.createdAt).toISOString();
      const why = isOld ? 'waited too long and was deleted' : 'may have arrived and was not sent again';
      this.#leftovers.push(`an earlier message, of ${when}, ${why}`);
    }
  }

  /** Waits for a message; closes when none came for as long as the process is kept. */
  async #idle(): Promise<void> {
    this.#restsSince = this.#options.now();
    while (!this.#closing && this.#entries.length === 0) {
      const left = this.#restsSince + this.#stayMs() - this.#options.now();
      if (left <= 0) this.#closing = 'rest';
      else await this.#pause(Math.min(left, this.#limits.ownerPollMs));
    }
  }

  #stayMs(): number {
    const { keepMs } = this.#options.spec;
    if (this.#opening) return Number.POSITIVE_INFINITY;
    if (!this.#used) return Math.max(keepMs, this.#limits.firstMs);
    if (!this.#lives) return 0;
    return this.#driver.busy() ? Math.max(keepMs, this.#limits.backgroundMs) : keepMs;
  }

  async #pause(ms: number): Promise<void> {
    const stop = this.#options.scheduler.after(ms, () => this.#ring());
    await this.#wake.promise;
    stop();
  }

  #ring(): void {
    this.#wake.resolve();
    this.#wake = Promise.withResolvers<void>();
  }

  async #deliver(entry: Entry): Promise<void> {
    this.#used = true;
    this.#current = { entry, phase: 'waiting' };
    for (const text of this.#leftovers.splice(0)) this.#sink.tell(entry.ticket, text);
    const way = await this.#clearWay(entry);
    if (way === 'closing') this.#leave(entry);
    else {
      if (way === 'clear') await this.#turn(entry);
      else if (!entry.withdrawn) this.#sink.refused(entry.ticket, way);
      this.#options.queue.remove(entry.message.id);
    }
    this.#current = undefined;
  }

  async #turn(entry: Entry): Promise<void> {
    if (this.#current) this.#current.phase = 'turn';
    // From here on nobody may send it again: it might have arrived.
    if (entry.kept) this.#options.queue.put({ ...entry.message, attempted: true });
    const last = () => this.#entries.length === 0 && this.#options.spec.keepMs === 0;
    try {
      this.#sink.ended(entry.ticket, await this.#driver.turn(entry.message, last));
    } catch (thrown) {
      this.#sink.broke(entry.ticket, thrown);
    }
  }

  /** Resolves when nobody is in the way; waits where the message may wait (M1, R-38). */
  async #clearWay(entry: Entry): Promise<Refusal | 'closing' | 'clear'> {
    const { whenOwned, expiresAt } = entry.message;
    for (let told = false; ; told = true) {
      if (entry.withdrawn) return WITHDRAWN;
      if (this.#closing) return 'closing';
      const obstacle = await this.#driver.look();
      if (!obstacle) return 'clear';
      if (obstacle.kind === 'owned' && whenOwned === 'force') {
        this.#sink.tell(entry.ticket, `sent although ${obstacle.refusal.reason}`);
        return 'clear';
      }
      if (obstacle.kind !== 'owned' || whenOwned !== 'queue') return obstacle.refusal;
      if (this.#options.now() >= expiresAt) return waitedTooLong(obstacle.refusal.reason);
      if (!told) {
        const failed = this.#options.queue.put(entry.message);
        if (failed !== undefined) return cantKeep(failed);
        entry.kept = true;
        this.#sink.queued(entry.ticket, obstacle.until);
      }
      await this.#pause(this.#limits.ownerPollMs);
    }
  }

  /** A host that is told to end leaves what waits in its files, and refuses what lies in none. */
  #leave(entry: Entry): void {
    if (entry.kept) entry.ticket.emit({ type: 'left', at: this.#options.now(), reason: 'host lost' });
    else this.#sink.refused(entry.ticket, HOST_ENDED);
  }

  async #farewell(): Promise<void> {
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const stop = this.#options.scheduler.after(this.#limits.farewellMs, resolve);
    const all = [...this.#tickets.values()].filter((ticket) => ticket.ended);
    await Promise.race([Promise.all(all.map((ticket) => ticket.delivered)), late]);
    stop();
  }
}
