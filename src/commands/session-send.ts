import { resolve } from 'node:path';
import type { ControlContext } from '../adapters/adapter.ts';
import {
  APPROVAL_POLICIES,
  type ControlEvent,
  type RuntimeControl,
  type SendRequest,
  type SendTarget,
  type WhenOwned,
} from '../runtime/control.ts';
import { ConnectorError, EXIT, type ExitCode } from '../runtime/errors.ts';
import { CONTROL, TEXT } from '../runtime/limits.ts';
import type { SessionRef } from '../runtime/session/session.ts';
import {
  capable,
  controlContext,
  controlOf,
  findTarget,
  readId,
  readSpan,
  readWord,
  refusalError,
  sweepLines,
} from './acting.ts';
import { type Answer, defineCommand, type EventLine } from './command.ts';
import { readMessage } from './message.ts';
import { spanWords } from './output/age.ts';
import { eventData, refusalData } from './output/control-data.ts';
import { createEventPrinter } from './output/control-text.ts';
import type { Style } from './output/style.ts';
import type { World } from './world.ts';

const WHEN_OWNED: readonly WhenOwned[] = ['refuse', 'queue', 'fork', 'force'];

/** How a turn that may ask is run; shared with `session-create`. */
export const APPROVAL_ARGS = {
  approvals: {
    type: 'string',
    description: `What it may do without asking: ${APPROVAL_POLICIES.join(', ')} (default ask)`,
    valueHint: 'policy',
  },
  'approval-timeout': {
    type: 'string',
    description: `Deny what nobody has answered after this long (default ${spanWords(CONTROL.approvalMs)})`,
    valueHint: 'time',
  },
  keep: {
    type: 'string',
    description: `Keep its process this long after a turn (default: ${spanWords(CONTROL.keepMs)} for a new session, else not)`,
    valueHint: 'time',
  },
} as const;

export const sessionSend = defineCommand({
  name: 'session-send',
  summary: 'send a message to a session, or begin one with it',
  details:
    'Sends a message and returns once the runtime has accepted it; with --wait follows the turn and prints its final text. The text comes from --message, a file, or stdin, whole, and never stands on another program’s command line. A session that another program has open is refused unless you choose what to do (--when-owned). What the turn must ask for is answered with session-approve; nothing is approved by sending a message.',
  args: {
    id: { type: 'positional', required: false, description: 'the session’s id, or its beginning' },
    runtime: { type: 'string', description: 'The runtime, by id', valueHint: 'id' },
    session: { type: 'string', description: 'The session’s id, or its beginning', valueHint: 'id' },
    message: { type: 'string', description: 'The text; - reads stdin', valueHint: 'text' },
    'message-file': { type: 'string', description: 'A file with the text', valueHint: 'path' },
    new: { type: 'boolean', description: 'Begin a new session with it (needs --runtime)' },
    dir: { type: 'string', description: 'Where the new session begins (default: here)', valueHint: 'path' },
    model: { type: 'string', description: 'The model, as the runtime calls it', valueHint: 'name' },
    wait: { type: 'boolean', description: 'Follow the turn to its end' },
    timeout: {
      type: 'string',
      description: `Stop following after this long; the turn goes on (default ${spanWords(TEXT.waitMs)})`,
      valueHint: 'time',
    },
    'when-owned': {
      type: 'string',
      description: `When another program has the session open: ${WHEN_OWNED.join(', ')} (default refuse)`,
      valueHint: 'what',
    },
    ...APPROVAL_ARGS,
    'abort-on-interrupt': { type: 'boolean', description: 'With --wait: Ctrl-C stops the turn, too' },
    'opencode-url': { type: 'string', description: 'An OpenCode server to ask', valueHint: 'url' },
  },
  examples: [
    {
      command: 'session-send 5c67492c --message "Run the tests" --wait',
      says: 'follow the turn and print its answer',
    },
    {
      command: 'session-send --new --runtime claude-code --dir ~/app < task.md',
      says: 'begin a session with the text of a file',
    },
    {
      command: 'session-send 5c67492c --message "Next: the docs" --when-owned queue',
      says: 'sent when the terminal that has it open leaves it',
    },
  ],
  async run(args, world): Promise<Answer> {
    const { request, control, ref } = await readOrder(args, world);
    const context = controlContext(world);
    const send = capable(control, 'send', ref.runtimeId).bind(control);
    const swept = await sweepLines(context);
    const run: Sending = {
      world,
      context,
      control,
      request,
      ref,
      notes: swept,
      events: (signal) => send(context, request, signal),
    };
    if (args.wait === true) return following(run, args['abort-on-interrupt'] === true);
    return accepting(run);
  },
});

interface SendArgs {
  readonly id?: string | undefined;
  readonly runtime?: string | undefined;
  readonly session?: string | undefined;
  readonly message?: string | undefined;
  readonly 'message-file'?: string | undefined;
  readonly new?: boolean | undefined;
  readonly dir?: string | undefined;
  readonly model?: string | undefined;
  readonly wait?: boolean | undefined;
  readonly timeout?: string | undefined;
  readonly 'when-owned'?: string | undefined;
  readonly approvals?: string | undefined;
  readonly 'approval-timeout'?: string | undefined;
  readonly keep?: string | undefined;
  readonly 'opencode-url'?: string | undefined;
}

interface Sending {
  readonly world: World;
  readonly context: ControlContext;
  readonly control: RuntimeControl<ControlContext>;
  readonly request: SendRequest;
  /** The session that was named; a new one has its id only once it was accepted. */
  readonly ref: Pick<SessionRef, 'runtimeId'> & Partial<SessionRef>;
  readonly notes: readonly string[];
  events(signal: AbortSignal): AsyncIterable<ControlEvent>;
}

async function readOrder(args: SendArgs, world: World) {
  const whenOwned = readWord('when-owned', args['when-owned'], WHEN_OWNED, 'refuse');
  const followMs = readSpan('timeout', args.timeout, { min: 1, max: CONTROL.keepMaxMs }) ?? TEXT.waitMs;
  const policy = readPolicy(args);
  const { target, ref } = await readTarget(args, world);
  const control = await controlOf(world, ref.runtimeId);
  const text = await readMessage(args, world);
  const request: SendRequest = {
    target,
    text,
    whenOwned,
    ...policy,
    ...(args.model === undefined ? {} : { model: args.model }),
    ...(args.wait === true ? { followMs } : {}),
  };
  return { request, control, ref };
}

/** Policy, time to answer, and time to stay, of a command line. */
export function readPolicy(args: Pick<SendArgs, 'approvals' | 'approval-timeout' | 'keep'>) {
  const range = { min: 1_000, max: CONTROL.keepMaxMs };
  const keepMs = readSpan('keep', args.keep, { min: 0, max: CONTROL.keepMaxMs });
  return {
    approvals: readWord('approvals', args.approvals, APPROVAL_POLICIES, 'ask'),
    approvalMs: readSpan('approval-timeout', args['approval-timeout'], range) ?? CONTROL.approvalMs,
    ...(keepMs === undefined ? {} : { keepMs }),
  };
}

async function readTarget(
  args: SendArgs,
  world: World,
): Promise<{ target: SendTarget; ref: Sending['ref'] }> {
  const id = readId(args);
  if (args.new === true) {
    if (id !== undefined) {
      throw new ConnectorError('usage', '--new takes no session id', 'Leave out the id, or --new.');
    }
    return { target: { kind: 'new', workDir: resolve(world.cwd, args.dir ?? '.') }, ref: readRuntime(args) };
  }
  if (args.dir !== undefined) {
    throw new ConnectorError(
      'usage',
      '--dir is for a new session',
      'A session goes on in the folder it began in; for a new one: --new --dir',
    );
  }
  if (id === undefined) {
    throw new ConnectorError(
      'usage',
      'session-send needs a session',
      'Name one (shadowob-connector session-list), or begin one: --new --runtime <id>',
    );
  }
  const { known, ref } = await findTarget(world, id, args);
  if (!known) {
    throw new ConnectorError('notFound', 'this session is not listed yet', 'Try again in a moment.');
  }
  refuseSetUp(known.shown.state);
  return { target: { kind: 'session', session: known }, ref };
}

function readRuntime(args: SendArgs): Sending['ref'] {
  if (args.runtime !== undefined) return { runtimeId: args.runtime };
  throw new ConnectorError('usage', '--new needs --runtime', 'For example: --new --runtime claude-code');
}

/** S8: text that is pushed at a set-up screen goes into its menu. */
function refuseSetUp(state: { readonly kind: string; readonly on?: string }): void {
  if (state.kind !== 'waiting' || state.on !== 'setup') return;
  throw new ConnectorError(
    'refused',
    'the session waits at a set-up screen, and a message would go into its menu',
    'Finish the set-up in its own terminal, then send again.',
  );
}

/** Accepted-and-return: one document. */
async function accepting(run: Sending): Promise<Answer> {
  const events: ControlEvent[] = [];
  for await (const event of run.events(run.world.signal)) events.push(event);
  const refused = events.find((event) => event.type === 'refused');
  const failure = refused && refusalError(refused);
  const printer = createEventPrinter();
  return {
    kind: 'document',
    data: document(run, events),
    text: (style) => accountOf(events, printer, style),
    warnings: run.notes,
    ...(failure ? { failure } : {}),
    exitCode: exitOf(events.at(-1)),
  };
}

function accountOf(
  events: readonly ControlEvent[],
  printer: ReturnType<typeof createEventPrinter>,
  style: Style,
): string {
  return events.flatMap((event) => printer(event, style).err ?? []).join('\n');
}

/** The fields of the existing connector (`cli-surface.md` §4) and ours beside them. */
function document({ request, ref }: Sending, events: readonly ControlEvent[]): unknown {
  const accepted = events.find((event) => event.type === 'accepted');
  const queued = events.some((event) => event.type === 'queued') && !accepted;
  const refused = events.find((event) => event.type === 'refused');
  const session = accepted?.session ?? ref;
  return {
    runtimeId: session.runtimeId,
    instanceId: session.instanceId ?? null,
    sessionId: session.sessionId ?? null,
    accepted: accepted !== undefined,
    queued: queued && !refused,
    mode: accepted?.mode ?? (queued ? 'queue' : null),
    detail: accepted?.detail ?? null,
    ...(accepted?.resume ? { resume: accepted.resume } : {}),
    approvals: request.approvals,
    events: events.map(eventData),
    ...(refused ? refusalData(refused) : {}),
  };
}

/** Follows to the end: events as they come. */
function following(run: Sending, abortsToo: boolean): Answer {
  const seen: { last?: ControlEvent; session?: SessionRef } = {};
  return {
    kind: 'events',
    async *lines(signal) {
      const printer = createEventPrinter();
      for (const text of run.notes) yield lineOf({ type: 'note', at: run.world.now(), text }, printer);
      const leave = new AbortController();
      const onStop = (): void => void stop(run, seen.session, abortsToo, leave);
      signal.addEventListener('abort', onStop, { once: true });
      for await (const event of run.events(leave.signal)) {
        seen.last = event;
        if (event.type === 'accepted') seen.session = event.session;
        yield lineOf(event, printer);
      }
      signal.removeEventListener('abort', onStop);
    },
    outcome() {
      const { last } = seen;
      const failure = last && failureOf(last);
      return { exitCode: exitOf(last), ...(failure ? { failure } : {}) };
    },
  };
}

function lineOf(event: ControlEvent, printer: ReturnType<typeof createEventPrinter>): EventLine {
  return { data: eventData(event), text: (style) => printer(event, style) };
}

/** Ctrl-C leaves the turn running, unless it was asked to stop it; then its end is still waited for. */
async function stop(
  { control, context, request }: Sending,
  session: SessionRef | undefined,
  abortsToo: boolean,
  leave: AbortController,
): Promise<void> {
  if (!abortsToo || !session || !control.abort) return leave.abort();
  const { target } = request;
  const known = target.kind === 'session' ? { known: target.session } : {};
  const result = await control.abort(context, { session, ...known, kill: false });
  if (result.kind === 'refused') leave.abort();
}

function failureOf(event: ControlEvent): ConnectorError | undefined {
  if (event.type === 'refused') return refusalError(event);
  if (event.type !== 'done' || event.error === undefined) return undefined;
  return new ConnectorError(event.outcome === 'stopped' ? 'turnStopped' : 'turnFailed', event.error);
}

function exitOf(last: ControlEvent | undefined): ExitCode {
  switch (last?.type) {
    case 'refused':
      return EXIT[last.kind];
    case 'left':
      return EXIT.stillRunning;
    case 'done':
      if (last.outcome === 'completed') return EXIT.ok;
      return last.outcome === 'stopped' ? EXIT.turnStopped : EXIT.turnFailed;
    default:
      return EXIT.ok;
  }
}
