import { statSync } from 'node:fs';
import type {
  HostDriver,
  HostSpec,
  Message,
  Obstacle,
  TurnResult,
  TurnSink,
} from '../../../runtime/control/driver.ts';
import { createWaiters } from '../../../runtime/control/waiters.ts';
import type { ApprovalAnswer, ApprovalResult, PendingRequest, Refusal } from '../../../runtime/control.ts';
import { CONTROL } from '../../../runtime/limits.ts';
import type { KillReport, ProcessHost } from '../../../runtime/process/types.ts';
import type { ControlContext } from '../../adapter.ts';
import { type ClaudeChild, startChild } from './child.ts';
import { claudeArguments, claudeEnvironment, type Entry, resumeCommand } from './launch.ts';
import { obstacleOf, possessorsOf } from './possession.ts';
import { findClaude } from './program.ts';
import { answerLine, controlError, pendingOf } from './questions.ts';
import type { StreamEvent, ToolQuestion } from './stream.ts';
import { controlHost } from './system.ts';
import { createTurnReader, type TurnReader, type TurnStep } from './turn.ts';

/** What a process was started with; a message with other wishes gets another process. */
type Manner = Pick<Message, 'approvals' | 'model'>;

interface Running {
  readonly child: ClaudeChild;
  readonly manner: Manner;
  readonly settled: Promise<void>;
}

interface OpenTurn {
  readonly reader: TurnReader;
  readonly message: Message;
  readonly over: PromiseWithResolvers<TurnStep & { kind: 'end' | 'refused' }>;
}

const GONE: KillReport = { gone: true, survivors: [] };

/** Drives one Claude Code session for a host: a child that takes lines, started again whenever it is lost. */
export function createClaudeDriver(context: ControlContext, spec: HostSpec, sink: TurnSink): HostDriver {
  return new ClaudeDriver(context, spec, sink);
}

class ClaudeDriver implements HostDriver {
  readonly #context: ControlContext;
  readonly #spec: HostSpec;
  readonly #sink: TurnSink;
  readonly #host: ProcessHost;
  readonly #questions = new Map<string, ToolQuestion>();
  /** Ids of what we have sent and the program has not given back yet. */
  readonly #replies = createWaiters();
  #running: Running | undefined;
  #turn: OpenTurn | undefined;
  /** The session exists from the first message that it took. */
  #exists: boolean;
  #background = 0;
  #closing: Promise<KillReport> | undefined;

  constructor(context: ControlContext, spec: HostSpec, sink: TurnSink) {
    this.#context = context;
    this.#spec = spec;
    this.#sink = sink;
    this.#host = controlHost(context);
    this.#exists = spec.start.kind === 'resume';
  }

  get #sessionId(): string {
    return this.#spec.session.sessionId;
  }

  async look(): Promise<Obstacle | undefined> {
    const noFolder = folderRefusal(this.#spec);
    if (noFolder) return { kind: 'other', refusal: noFolder, until: '' };
    return this.#exists ? obstacleOf(await this.#possessors(), this.#sessionId) : undefined;
  }

  #possessors() {
    const { native, workDir } = this.#spec;
    const { version, entrypoint } = native;
    return possessorsOf(
      {
        sessionId: this.#sessionId,
        workDir,
        ...(version ? { version } : {}),
        ...(entrypoint ? { entrypoint } : {}),
      },
      this.#context,
      this.#host,
      this.#running?.child.identity.pid,
    );
  }

  async open(manner: Manner): Promise<Refusal | undefined> {
    if (this.#running) return undefined;
    const running = await this.#start(manner);
    if ('reason' in running) return running;
    // The first request of its protocol is answered as soon as it can take a message.
    const ready = this.#replies.waitFor('initialize', CONTROL.acceptMs);
    await running.child.send({
      type: 'control_request',
      request_id: 'initialize',
      request: { subtype: 'initialize' },
    });
    if (await Promise.race([ready, running.child.exited.then(() => false)])) return undefined;
    const said = running.child.stderr().trim().split('\n').at(-1);
    await this.close('kill');
    return { reason: said || 'Claude Code did not start', kind: 'refused', next: 'Try: claude' };
  }

  async turn(message: Message, last: () => boolean): Promise<TurnResult> {
    const running = await this.#processFor(message);
    if ('reason' in running) return { kind: 'refused', refusal: running };
    const reader = createTurnReader(message.id);
    const turn: OpenTurn = { reader, message, over: Promise.withResolvers() };
    this.#turn = turn;
    const timer = setTimeout(() => void this.#giveUp(turn), CONTROL.acceptMs);
    await running.child.send(userLine(message));
    const step = await turn.over.promise;
    clearTimeout(timer);
    this.#turn = undefined;
    if (step.kind === 'refused') return this.#refused(step);
    const exit = last() && this.#background === 0 ? await this.#leave(running) : undefined;
    const notes = [...(step.end.notes ?? []), ...(await this.#intruders())];
    return {
      kind: 'done',
      ...step.end,
      ...(exit === undefined ? {} : { exitCode: exit }),
      ...(notes.length > 0 ? { notes } : {}),
    };
  }

  async #processFor(message: Message): Promise<Running | Refusal> {
    const running = this.#running;
    if (!running) return this.#start(message);
    const same = running.manner.approvals === message.approvals && running.manner.model === message.model;
    if (same) return running;
    await this.#leave(running);
    return this.#start(message);
  }

  async #start({ approvals, model }: Manner): Promise<Running | Refusal> {
    const program = await findClaude(this.#context);
    if ('reason' in program) return program;
    const entry: Entry = this.#exists ? { kind: 'resume' } : this.#spec.start;
    const child = startChild({
      argv: [program.path, ...claudeArguments(entry, this.#sessionId, approvals, model)],
      env: claudeEnvironment(this.#context.env, program.searchPath, this.#spec.native['configHome']),
      cwd: this.#spec.workDir,
      onEvent: (event) => this.#take(event),
    });
    if ('reason' in child) {
      const reason = `Claude Code could not be started: ${child.message}`;
      return { reason, kind: 'runtimeMissing', next: 'See: shadowob-connector runtime-scan' };
    }
    this.#sink.child(child.identity);
    const manner = { approvals, ...(model === undefined ? {} : { model }) };
    const running: Running = { child, manner, settled: child.exited.then((exit) => this.#lost(child, exit)) };
    this.#running = running;
    this.#closing = undefined;
    return running;
  }

  /** The process has ended: what waited for it never comes, and the next message starts it again. */
  #lost(child: ClaudeChild, exit: Awaited<ClaudeChild['exited']>): void {
    if (this.#running?.child !== child) return;
    this.#running = undefined;
    this.#background = 0;
    this.#replies.cancelAll();
    for (const id of this.#questions.keys()) this.#sink.withdrawn(id);
    this.#questions.clear();
    this.#sink.child(undefined);
    if (this.#turn) this.#step(this.#turn, this.#turn.reader.lost(exit, child.stderr()));
  }

  #take(event: StreamEvent): void {
    switch (event.kind) {
      case 'question':
        this.#ask(event.question);
        break;
      case 'unknown-question':
        void this.#running?.child.send(controlError(event.requestId, 'this host does not answer that'));
        this.#sink.note(`Claude Code asked for something that can’t be answered from here: ${event.subtype}`);
        break;
      case 'withdrawn':
        this.#questions.delete(event.requestId);
        this.#sink.withdrawn(event.requestId);
        break;
      case 'reply':
        this.#replies.resolve(event.requestId);
        break;
      case 'tool-result':
        this.#replies.resolve(event.id);
        break;
      case 'background':
        this.#background = event.agents + event.shells;
        break;
    }
    const turn = this.#turn;
    if (turn) for (const step of turn.reader.read(event)) this.#step(turn, step);
  }

  #ask(question: ToolQuestion): void {
    const { session } = this.#spec;
    this.#questions.set(question.requestId, question);
    if (this.#sink.request(pendingOf(question, session, this.#context.now()))) return;
    this.#questions.delete(question.requestId);
    const note = 'Too many requests wait for the user already.';
    const answer = { session, requestId: question.requestId, decision: 'deny', note } as const;
    void this.#running?.child.send(answerLine(question, answer));
  }

  #step(turn: OpenTurn, step: TurnStep): void {
    switch (step.kind) {
      case 'accepted':
        this.#accepted(turn.message);
        break;
      case 'progress':
        if (turn.reader.accepted) this.#sink.progress(step.doing, step.text, step.tool);
        break;
      case 'note':
        this.#sink.note(step.text);
        break;
      case 'end':
      case 'refused':
        turn.over.resolve(step);
        break;
    }
  }

  #accepted(message: Message): void {
    this.#exists = true;
    const { workDir, keepMs, native } = this.#spec;
    const how = keepMs > 0 ? 'owned' : 'process';
    const resume = resumeCommand(this.#sessionId, workDir, native['configHome'], this.#context.platform);
    this.#sink.accepted(`Claude Code took it; ${POLICY_WORDS[message.approvals]}`, how, resume);
  }

  #refused(step: TurnStep & { kind: 'refused' }): TurnResult {
    const kind = step.unknownSession ? 'notFound' : 'refused';
    const next = step.unknownSession
      ? 'Claude Code finds a session only by its file and start folder; see: shadowob-connector session-show'
      : 'Look at the session: shadowob-connector session-show';
    return { kind: 'refused', refusal: { reason: `Claude Code refused: ${step.reason}`, kind, next } };
  }

  async #giveUp(turn: OpenTurn): Promise<void> {
    if (turn.reader.accepted) return;
    const reason = `it did not take the message within ${CONTROL.acceptMs / 1_000} s`;
    turn.over.resolve({ kind: 'refused', reason, unknownSession: false });
    await this.close('kill');
  }

  /** Somebody opened the session while our turn ran: they don't know of it (M1). */
  async #intruders(): Promise<readonly string[]> {
    const obstacle = obstacleOf(await this.#possessors(), this.#sessionId);
    if (obstacle?.kind !== 'owned') return [];
    return [
      `while the turn ran the session was opened elsewhere: ${obstacle.refusal.reason}. Close it there and resume it, or this turn is lost.`,
    ];
  }

  /** Lets the process leave, and gives its exit code; undefined when it can't be ended. */
  async #leave(running: Running): Promise<number | null | undefined> {
    this.#closing = running.child.leave(CONTROL.leaveMs);
    const { gone } = await this.#closing;
    if (!gone) return undefined;
    const { code } = await running.child.exited;
    await running.settled;
    return code;
  }

  async answer(request: PendingRequest, answer: ApprovalAnswer): Promise<ApprovalResult> {
    const question = this.#questions.get(request.requestId);
    const running = this.#running;
    if (!question || !running) return { kind: 'refused', refusal: STALE };
    // The program gives our answer back; a tool that was refused answers with its result alone.
    const echo = this.#replies.waitFor(request.requestId, CONTROL.ackMs);
    const result = question.toolUseId
      ? this.#replies.waitFor(question.toolUseId, CONTROL.ackMs)
      : Promise.withResolvers<boolean>().promise;
    this.#questions.delete(request.requestId);
    if (!(await running.child.send(answerLine(question, answer)))) return { kind: 'refused', refusal: STALE };
    if (await Promise.race([echo, result])) return { kind: 'applied', detail: 'Claude Code has the answer' };
    if (this.#running !== running) return { kind: 'refused', refusal: STALE };
    return { kind: 'sent', detail: 'Claude Code has not confirmed it yet' };
  }

  async interrupt(): Promise<boolean> {
    const turn = this.#turn;
    const running = this.#running;
    if (!turn || !running) return false;
    const request_id = `interrupt-${turn.message.id}`;
    await running.child.send({ type: 'control_request', request_id, request: { subtype: 'interrupt' } });
    const { promise: late, resolve } = Promise.withResolvers<false>();
    const timer = setTimeout(() => resolve(false), CONTROL.interruptMs);
    const ended = await Promise.race([turn.over.promise.then(() => true), late]);
    clearTimeout(timer);
    return ended;
  }

  busy(): boolean {
    return this.#background > 0 || this.#questions.size > 0;
  }

  async close(how: 'rest' | 'kill'): Promise<KillReport> {
    const running = this.#running;
    if (!running) return this.#closing ?? GONE;
    if (how === 'kill' || !this.#closing) {
      this.#closing = how === 'kill' ? running.child.kill() : running.child.leave(CONTROL.leaveMs);
    }
    const report = await this.#closing;
    if (report.gone) await running.settled;
    return report;
  }
}

const POLICY_WORDS: Readonly<Record<Message['approvals'], string>> = {
  ask: 'what it must ask for is asked here: session-approve',
  deny: 'what it would have to ask for is refused',
  'allow-edits': 'edits are allowed, all else is asked here: session-approve',
  'runtime-default': 'its own settings decide, and nobody is asked',
};

const STALE: Refusal = {
  reason: 'nobody waits for this answer any more: the process that asked has ended',
  kind: 'refused',
  next: 'See what waits: shadowob-connector session-approve',
};

function userLine({ id, text }: Message): unknown {
  return {
    type: 'user',
    message: { role: 'user', content: [{ type: 'text', text }] },
    uuid: id,
    parent_tool_use_id: null,
    session_id: '',
  };
}

function folderRefusal({ workDir, start }: HostSpec): Refusal | undefined {
  const isFolder = statSync(workDir, { throwIfNoEntry: false })?.isDirectory() === true;
  if (isFolder) return undefined;
  if (start.kind === 'new') {
    return {
      reason: `there is no folder ${workDir}`,
      kind: 'refused',
      next: 'Name one that is there: --dir',
    };
  }
  return {
    reason: `the folder that the session began in is not there: ${workDir}`,
    kind: 'refused',
    next: 'Claude Code resumes a session in its own folder only: put it back, then send again.',
  };
}
