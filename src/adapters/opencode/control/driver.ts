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
import type { Server } from '../servers.ts';
import { LOCAL_INSTANCE } from '../sightings.ts';
import { endOwnServer, ensureManaged, reachOwn, startOwnServer, takeOver, touch } from './own-server.ts';
import { listServers, type OwnServer } from './own-servers.ts';
import { findOpencode } from './program.ts';
import { badModel, STALE, unknownModel } from './refusals.ts';
import { type OpencodeRun, startRun } from './run.ts';
import { isStillAsking, listAsked, listModels, type ModelName, readModel } from './server-calls.ts';
import { ServerTurn } from './server-turn.ts';
import { mayEnd } from './servers-work.ts';
import { chooseServer, type Survey, surveyLocal, surveyRemote } from './survey.ts';
import { POLICY_WORDS, resumeCommand } from './words.ts';

/** What of the order is OpenCode's own (`HostSpec.native`). */
export interface NativeSpec {
  /** Pid of a server that was started for this session and is to be taken over. */
  readonly server?: string;
  /** The owner asked for a server that stays. */
  readonly managed?: string;
  /** A copy made for this message: the open turn in it is only a picture of somebody's else. */
  readonly copy?: string;
}

const GONE: KillReport = { gone: true, survivors: [] };
/** How long an answer of `look` may be believed while a message waits: looking costs programs on some systems. */
const LOOK_AGAIN_MS = 2_000;
/** How long a turn on our server may take to stop before its process is ended, milliseconds. */
const STOP_MS = 2_000;

/** Drives one OpenCode session for a host: through a server that runs already, or one of our own. */
export function createOpencodeDriver(
  context: ControlContext,
  spec: HostSpec,
  sink: TurnSink,
  host: ProcessHost,
): HostDriver {
  return new OpencodeDriver(context, spec, sink, host);
}

/** A server for the turn, and how that is called. */
interface Way {
  readonly server: Server;
  readonly mode: 'server' | 'owned' | 'process';
  readonly words: string;
  readonly busy: boolean;
}

class OpencodeDriver implements HostDriver {
  readonly #context: ControlContext;
  readonly #spec: HostSpec;
  readonly #sink: TurnSink;
  readonly #host: ProcessHost;
  /** A server that is ours to end, or to let go. */
  #own: { readonly record: OwnServer; readonly server: Server } | undefined;
  #survey: { readonly survey: Survey; readonly at: number } | undefined;
  #turn: ServerTurn | undefined;
  #run: OpencodeRun | undefined;
  #closing: Promise<KillReport> | undefined;
  #isCopy: boolean;

  constructor(context: ControlContext, spec: HostSpec, sink: TurnSink, host: ProcessHost) {
    this.#context = context;
    this.#spec = spec;
    this.#sink = sink;
    this.#host = host;
    this.#isCopy = spec.native['copy'] !== undefined;
  }

  async look(): Promise<Obstacle | undefined> {
    await this.#adopt();
    const last = this.#survey;
    const recent = last && this.#context.now() - last.at < LOOK_AGAIN_MS;
    if (recent && last.survey.obstacle) return last.survey.obstacle;
    const survey = await this.#look();
    if ('reason' in survey) return { kind: 'other', refusal: survey, until: '' };
    const isPicture = this.#isCopy && survey.obstacle?.kind === 'owned';
    const { obstacle: _, ...free } = survey;
    const judged: Survey = isPicture ? free : survey;
    this.#survey = { survey: judged, at: this.#context.now() };
    return judged.obstacle;
  }

  #look(): Promise<Survey | Refusal> {
    const { session, workDir } = this.#spec;
    return session.instanceId === LOCAL_INSTANCE
      ? surveyLocal(this.#context, this.#host, session.sessionId, workDir)
      : surveyRemote(this.#context, session.instanceId, session.sessionId);
  }

  /** Takes over the server in which the session was begun. */
  async #adopt(): Promise<void> {
    const pid = Number(this.#spec.native['server']);
    if (this.#own || !Number.isInteger(pid) || pid <= 1) return;
    const record = takeOver(this.#context, pid);
    const server = record && (await reachOwn(record, this.#context));
    if (record && server) this.#keep(record, server);
  }

  #keep(record: OwnServer, server: Server): void {
    this.#own = { record, server };
    this.#closing = undefined;
    if (record.life === 'turn') this.#sink.child(record.process);
  }

  async open(): Promise<Refusal | undefined> {
    const way = await this.#way();
    return 'reason' in way ? way : undefined;
  }

  async turn(message: Message): Promise<TurnResult> {
    const model = message.model === undefined ? undefined : readModel(message.model);
    if (message.model !== undefined && !model) return refused(badModel(message.model));
    if (this.#runsAlone(message)) return this.#runTurn(message);
    const way = await this.#way();
    if ('reason' in way) return refused(way);
    const unknown = model && (await this.#unknownModel(way.server, model));
    if (unknown) return refused(unknown);
    return this.#serverTurn(message, way, model);
  }

  /** Its own settings decide, nobody is asked, and no server is there: the program's own one-shot form. */
  #runsAlone({ approvals }: Message): boolean {
    const survey = this.#survey?.survey;
    const hasServer = this.#own !== undefined || (survey && chooseServer(survey) !== undefined);
    return approvals === 'runtime-default' && !hasServer && this.#spec.native['managed'] === undefined;
  }

  async #way(): Promise<Way | Refusal> {
    const survey = this.#survey?.survey ?? (await this.#look());
    if ('reason' in survey) return survey;
    const chosen = chooseServer(survey);
    const busy = survey.runner !== undefined && chosen === survey.runner;
    const isUsable = chosen?.ours === 'managed' || chosen?.ours === 'mine';
    const record = chosen && isUsable ? this.#recordOf(chosen.server) : undefined;
    if (record && chosen) this.#keep(record, chosen.server);
    if (chosen) return this.#named(chosen.server, record, busy);
    if (this.#spec.session.instanceId !== LOCAL_INSTANCE) return survey.obstacle?.refusal ?? STALE;
    return this.#startOwn();
  }

  #recordOf(server: Server): OwnServer | undefined {
    return listServers(this.#context.connectorHome).find(({ url }) => url === server.endpoint.url);
  }

  #named(server: Server, own: OwnServer | undefined, busy: boolean): Way {
    const { url } = server.endpoint;
    if (own?.life === 'managed')
      return { server, mode: 'owned', words: 'the server that this connector keeps', busy };
    if (own) return { server, mode: 'process', words: 'a server started for this turn', busy };
    return { server, mode: 'server', words: `the server at ${url}`, busy };
  }

  async #startOwn(): Promise<Way | Refusal> {
    const directory = this.#spec.workDir;
    if (this.#spec.native['managed'] !== undefined) {
      const managed = await ensureManaged(this.#context, this.#host, directory);
      if ('reason' in managed) return managed;
      this.#keep(managed.record, managed.server);
      return this.#named(managed.server, managed.record, false);
    }
    const record = await startOwnServer(this.#context, this.#host, { life: 'turn', directory });
    if ('reason' in record) return record;
    const server = await reachOwn(record, this.#context);
    if (!server) {
      await endOwnServer(this.#context, this.#host, record);
      const reason = 'OpenCode’s server was started and does not answer';
      return { reason, kind: 'refused', next: 'Try it by hand: opencode serve --port 0' };
    }
    this.#keep(record, server);
    return this.#named(server, record, false);
  }

  async #unknownModel(server: Server, { providerID, modelID }: ModelName): Promise<Refusal | undefined> {
    const known = await listModels(server.endpoint, this.#survey?.survey.directory);
    const name = `${providerID}/${modelID}`;
    return known && !known.has(name) ? unknownModel(name) : undefined;
  }

  async #serverTurn(message: Message, way: Way, model: ModelName | undefined): Promise<TurnResult> {
    const survey = this.#survey?.survey;
    const { session, workDir } = this.#spec;
    const directory = survey?.directory ?? workDir;
    for (const note of survey?.notes ?? []) this.#sink.note(note);
    if (way.busy) await this.#tellOfTurn(way.server, directory);
    const own = this.#own;
    if (own?.record.life === 'managed') touch(this.#context, own.record);
    const turn = new ServerTurn({
      server: way.server,
      session,
      directory,
      message,
      model,
      lastPromptId: survey?.lastPromptId,
      busy: way.busy,
      sink: this.#sink,
      accepted: () => {
        const detail = `${way.words} has it; ${POLICY_WORDS[message.approvals]}`;
        this.#sink.accepted(
          detail,
          way.mode,
          resumeCommand(session.sessionId, directory, this.#context.platform),
        );
      },
      now: () => this.#context.now(),
    });
    this.#turn = turn;
    const result = await turn.run();
    this.#turn = undefined;
    this.#survey = undefined;
    this.#isCopy = false;
    if (own?.record.life === 'managed') touch(this.#context, own.record);
    return result;
  }

  /** OpenCode queues behind a turn of its own; if that one waits for an answer, so does the message (A4). */
  async #tellOfTurn(server: Server, directory: string): Promise<void> {
    const { session } = this.#spec;
    const listed = await listAsked(server.endpoint, directory);
    const own = 'reason' in listed ? [] : listed.filter(({ sessionId }) => sessionId === session.sessionId);
    const live = await Promise.all(own.map((asked) => isStillAsking(server.endpoint, asked)));
    const waiting = own.find((_, index) => live[index]);
    const subject = waiting ? String(waiting.raw['permission'] ?? waiting.kind) : '';
    const behind = waiting ? `, which waits for an answer: ${subject} (${waiting.id})` : '';
    this.#sink.note(
      `a turn of this session runs there already; OpenCode takes the message after it${behind}`,
    );
  }

  async #runTurn(message: Message): Promise<TurnResult> {
    const program = await findOpencode(this.#context);
    if ('reason' in program) return refused(program);
    const { session, workDir } = this.#spec;
    for (const note of this.#survey?.survey.notes ?? []) this.#sink.note(note);
    const resume = resumeCommand(session.sessionId, workDir, this.#context.platform);
    const words = `opencode run has it; ${POLICY_WORDS['runtime-default']}`;
    const run = startRun({
      program,
      sessionId: session.sessionId,
      directory: workDir,
      text: message.text,
      ...(message.model === undefined ? {} : { model: message.model }),
      accepted: () => this.#sink.accepted(words, 'process', resume),
      progress: (doing, text, tool) => this.#sink.progress(doing, text, tool),
    });
    if ('reason' in run) {
      const reason = `OpenCode could not be started: ${run.message}`;
      return refused({ reason, kind: 'runtimeMissing', next: 'See: shadowob-connector runtime-scan' });
    }
    this.#run = run;
    this.#sink.child(run.identity);
    const result = await run.result;
    this.#run = undefined;
    this.#survey = undefined;
    this.#isCopy = false;
    this.#sink.child(undefined);
    if (result.kind === 'done') return { kind: 'done', ...result.end };
    return refused({
      reason: `opencode run: ${result.reason}`,
      kind: result.unknownSession ? 'notFound' : 'refused',
      next: 'See: shadowob-connector session-list --runtime opencode --all',
    });
  }

  async answer(_request: PendingRequest, answer: ApprovalAnswer): Promise<ApprovalResult> {
    return this.#turn ? this.#turn.answer(answer) : { kind: 'refused', refusal: STALE };
  }

  async interrupt(): Promise<boolean> {
    if (this.#run) {
      const [report] = await Promise.all([this.#run.kill(), this.#run.result]);
      return report.gone;
    }
    return this.#turn ? this.#turn.stop() : false;
  }

  busy(): boolean {
    return this.#turn?.waits === true;
  }

  close(how: 'rest' | 'kill'): Promise<KillReport> {
    this.#closing ??= this.#close(how);
    return this.#closing;
  }

  /**
   * A turn is stopped through the server first, or its rows keep an answer without an end. Only what is ours is ended:
   * a server of the user's, and a managed one that others of ours use, go on.
   */
  async #close(how: 'rest' | 'kill'): Promise<KillReport> {
    if (this.#run) return this.#run.kill();
    if (this.#turn && how === 'kill') await this.#turn.stop(STOP_MS);
    const own = this.#own;
    if (!own || !(await mayEnd(this.#context, this.#host, this.#spec.session, own.record, how))) return GONE;
    this.#turn?.expectEnd();
    const report = await endOwnServer(this.#context, this.#host, own.record);
    if (report.gone) {
      this.#own = undefined;
      if (own.record.life === 'turn') this.#sink.child(undefined);
    }
    return report;
  }
}

function refused(refusal: Refusal): TurnResult {
  return { kind: 'refused', refusal };
}
