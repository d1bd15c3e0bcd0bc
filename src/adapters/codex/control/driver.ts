import { statSync } from 'node:fs';
import type {
  HostDriver,
  HostSpec,
  Message,
  Obstacle,
  TurnResult,
  TurnSink,
} from '../../../runtime/control/driver.ts';
import type { ApprovalAnswer, ApprovalResult, PendingRequest, Refusal } from '../../../runtime/control.ts';
import type { KillReport, ProcessHost } from '../../../runtime/process/types.ts';
import type { ControlContext } from '../../adapter.ts';
import type { ServerAddress } from '../server-find.ts';
import { beginExec, type ExecRun } from './exec-run.ts';
import { obstacleOf, takesNothing } from './obstacle.ts';
import { type OwnServer, startOwnServer } from './own-server.ts';
import { type OwnThread, openOwnThread, type Unusable } from './own-thread.ts';
import { type Owner, ownerOf } from './owner.ts';
import { type Queued, sendByQueue } from './queue-way.ts';
import { codexRefused, held, NO_ANSWER, noFolder, onlyExec, ownerWords } from './refusals.ts';
import type { RpcListener } from './rpc.ts';
import { type Served, ServedTurn } from './served-turn.ts';
import { hasLoaded, runAtServer } from './server-way.ts';
import { POLICY_WORDS, resumeCommand, STEERED_WORDS } from './words.ts';

const GONE: KillReport = { gone: true, survivors: [] };

/** Drives one Codex thread for a host: at the server that has it, or in an app-server of ours for the one turn. */
export function createCodexDriver(
  context: ControlContext,
  spec: HostSpec,
  sink: TurnSink,
  host: ProcessHost,
): HostDriver {
  return new CodexDriver(context, spec, sink, host);
}

class CodexDriver implements HostDriver {
  readonly #context: ControlContext;
  readonly #spec: HostSpec;
  readonly #sink: TurnSink;
  readonly #host: ProcessHost;
  readonly #leaving = new AbortController();
  /** What the server of ours, or the link of the turn, tells goes to the turn that runs. */
  readonly #listener: RpcListener;
  #own: OwnThread | undefined;
  #turn: ServedTurn | undefined;
  #run: ExecRun | undefined;
  /** A message that lies in Codex's own queue, as long as nobody has taken it. */
  #carry: { readonly stop: AbortController; readonly over: Promise<Queued> } | undefined;
  #closing: Promise<KillReport> | undefined;

  constructor(context: ControlContext, spec: HostSpec, sink: TurnSink, host: ProcessHost) {
    this.#context = context;
    this.#spec = spec;
    this.#sink = sink;
    this.#host = host;
    this.#listener = {
      notified: (method, params) => this.#turn?.notified(method, params),
      asked: (request) => this.#turn?.asked(request),
      lost: (reason) => this.#turn?.lost(reason),
    };
  }

  get #threadId(): string {
    return this.#spec.session.sessionId;
  }

  async look(): Promise<Obstacle | undefined> {
    const { workDir } = this.#spec;
    if (statSync(workDir, { throwIfNoEntry: false })?.isDirectory() !== true)
      return { kind: 'other', refusal: noFolder(workDir), until: '' };
    // Codex lets one process alone write a thread: while ours has it, nobody else can.
    if (this.#own) return undefined;
    return obstacleOf(this.#owner(), this.#context, this.#threadId);
  }

  #owner(): Owner {
    return ownerOf(this.#context, this.#threadId, this.#host);
  }

  async open(): Promise<Refusal | undefined> {
    const own = await this.#ownServer();
    return 'reason' in own ? own : undefined;
  }

  async turn(message: Message, last: () => boolean): Promise<TurnResult> {
    if (this.#own) return this.#ownTurn(message, last);
    const owner = this.#owner();
    switch (owner.kind) {
      case 'server':
        return this.#serverTurn(message, owner.address);
      case 'process':
        return takesNothing(owner.by)
          ? refused(held(owner, this.#threadId))
          : this.#queueTurn(message, owner);
      case 'unknown':
        return owner.address ? this.#unsureTurn(message, owner.address, last) : this.#ownTurn(message, last);
      case 'elsewhere':
        return refused(held(owner, this.#threadId));
      case 'nobody':
        return this.#ownTurn(message, last);
    }
  }

  /** Locks can't be read here: a server that has the thread loaded has it, and Codex itself keeps a second one out. */
  async #unsureTurn(message: Message, address: ServerAddress, last: () => boolean): Promise<TurnResult> {
    const isThere = await hasLoaded(address, this.#threadId);
    return isThere ? this.#serverTurn(message, address) : this.#ownTurn(message, last);
  }

  async #serverTurn(message: Message, address: ServerAddress): Promise<TurnResult> {
    const turn = this.#newTurn(message, false, address);
    this.#turn = turn;
    const served = await runAtServer({
      address,
      turn,
      threadId: this.#threadId,
      listener: this.#listener,
      sink: this.#sink,
      leaving: this.#leaving.signal,
    });
    this.#turn = undefined;
    return resultOf(served);
  }

  async #ownTurn(message: Message, last: () => boolean): Promise<TurnResult> {
    const own = await this.#ownServer();
    if ('unusable' in own) return this.#execTurn(message, own.unusable);
    if ('reason' in own) return refused(own);
    const turn = this.#newTurn(message, true, undefined);
    this.#turn = turn;
    const { server, joined } = own;
    const served = await turn.run(server.rpc, joined);
    this.#turn = undefined;
    // A policy that was set for this turn is the thread's from now on.
    this.#own = this.#own && { server, joined: { ...joined, active: undefined, policy: undefined } };
    if (served.kind === 'lost') return this.#ownLost(server, served.reason);
    const result = resultOf(served);
    if (result.kind !== 'done' || !last()) return result;
    const exit = await this.#leave();
    return exit === undefined ? result : { ...result, exitCode: exit };
  }

  async #ownLost(server: OwnServer, reason: string): Promise<TurnResult> {
    const { code } = await server.exited;
    const outcome = code === null || code > 128 ? 'stopped' : 'failed';
    return { kind: 'done', outcome, error: `${reason} in the middle of the turn`, exitCode: code };
  }

  /** The app-server of ours with the thread in it, started where none runs. */
  async #ownServer(): Promise<OwnThread | Unusable | Refusal> {
    if (this.#own) return this.#own;
    const opened = await openOwnThread(this.#context, this.#spec, this.#listener, this.#sink);
    if (!('server' in opened)) return opened;
    this.#own = opened;
    this.#closing = undefined;
    void opened.server.exited.then(() => this.#forget(opened.server));
    return opened;
  }

  /** It has ended by itself: the next message starts another one. */
  #forget(server: OwnServer): void {
    if (this.#own?.server.identity.pid !== server.identity.pid) return;
    this.#own = undefined;
    this.#sink.child(undefined);
  }

  #newTurn(message: Message, own: boolean, address: ServerAddress | undefined): ServedTurn {
    const { session, workDir, keepMs } = this.#spec;
    return new ServedTurn({
      session,
      message,
      sink: this.#sink,
      own,
      accepted: (steered) => {
        const who = own
          ? 'an app-server of ours'
          : `Codex’s app-server (process ${address?.pid ?? 'unknown'})`;
        const policy = steered ? STEERED_WORDS : POLICY_WORDS[message.approvals];
        const mode = own ? (keepMs > 0 ? 'owned' : 'process') : 'server';
        const resume = resumeCommand(session.sessionId, workDir, this.#context.platform);
        this.#sink.accepted(`${who} has it; ${policy}`, mode, resume);
      },
    });
  }

  async #queueTurn(message: Message, owner: Owner): Promise<TurnResult> {
    const started = await startOwnServer(this.#context, this.#spec.workDir, this.#listener);
    if (started.kind === 'refused') return refused(started.refusal);
    if (started.kind === 'unusable') return refused(held(owner, this.#threadId));
    // It only carries the queue: the thread stays with its owner.
    this.#sink.child(started.identity);
    const { session, workDir } = this.#spec;
    const stop = new AbortController();
    const over = sendByQueue(started.rpc, {
      context: this.#context,
      session,
      owner,
      message,
      sink: this.#sink,
      accepted: () => {
        this.#carry = undefined;
        const words = `${ownerWords(owner)} has it, from Codex’s own queue; what it asks for is asked there`;
        this.#sink.accepted(
          words,
          'server',
          resumeCommand(session.sessionId, workDir, this.#context.platform),
        );
      },
      signal: AbortSignal.any([this.#leaving.signal, stop.signal]),
    });
    this.#carry = { stop, over };
    const result = await over;
    this.#carry = undefined;
    await started.leave();
    this.#sink.child(undefined);
    return result.kind === 'done' ? { kind: 'done', ...result.end } : result;
  }

  async #execTurn(message: Message, why: string): Promise<TurnResult> {
    // only for who has chosen that nothing is asked.
    if (message.approvals !== 'deny') return refused(onlyExec(why, this.#threadId));
    const run = await beginExec(this.#context, this.#spec, this.#sink, message);
    if ('reason' in run) return refused(run);
    this.#run = run;
    this.#sink.child(run.identity);
    const result = await run.result;
    this.#run = undefined;
    this.#sink.child(undefined);
    return result.kind === 'done'
      ? { kind: 'done', ...result.end }
      : refused(codexRefused(result.reason, this.#threadId));
  }

  async answer(request: PendingRequest, answer: ApprovalAnswer): Promise<ApprovalResult> {
    const state = await this.#turn?.answer(request.requestId, answer);
    switch (state) {
      case 'applied':
        return { kind: 'applied', detail: 'Codex has the answer' };
      case 'sent':
        return { kind: 'sent', detail: 'Codex has not confirmed it yet' };
      default:
        return { kind: 'refused', refusal: NO_ANSWER };
    }
  }

  async interrupt(): Promise<boolean> {
    if (this.#run) {
      const [report] = await Promise.all([this.#run.stop(), this.#run.result]);
      return report.gone;
    }
    // What nobody has taken yet is taken back; what runs in a terminal, only its keyboard stops.
    if (this.#carry) {
      const { stop, over } = this.#carry;
      stop.abort();
      const result = await over;
      return result.kind === 'refused' && result.refusal.kind === 'refused';
    }
    return this.#turn ? this.#turn.stop() : false;
  }

  busy(): boolean {
    return false;
  }

  close(how: 'rest' | 'kill'): Promise<KillReport> {
    if (how === 'kill' || !this.#closing) this.#closing = this.#close(how);
    return this.#closing;
  }

  /** Ends what is ours. A turn at somebody else's server is stopped there, and the server goes on. */
  async #close(how: 'rest' | 'kill'): Promise<KillReport> {
    this.#leaving.abort();
    if (this.#run) return this.#run.kill();
    const own = this.#own;
    if (own) {
      const report = how === 'kill' ? await own.server.kill() : await own.server.leave();
      if (report.gone) this.#forget(own.server);
      return report;
    }
    if (how === 'kill') await this.#turn?.stop();
    return GONE;
  }

  /** Lets the server of ours go, which frees the thread, and gives its exit code; undefined when it can't be ended. */
  async #leave(): Promise<number | null | undefined> {
    const own = this.#own;
    if (!own) return undefined;
    const { gone } = await own.server.leave();
    if (!gone) return undefined;
    const { code } = await own.server.exited;
    this.#forget(own.server);
    return code;
  }
}

function refused(refusal: Refusal): TurnResult {
  return { kind: 'refused', refusal };
}

function resultOf(served: Served): TurnResult {
  if (served.kind === 'done') return { kind: 'done', ...served.end };
  if (served.kind === 'refused') return refused(served.refusal);
  return { kind: 'done', outcome: 'failed', error: `${served.reason}; the turn’s end was not seen` };
}
