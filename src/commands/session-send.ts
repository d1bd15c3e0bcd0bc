import type { ControlContext } from '../adapters/adapter.ts';
import type { ControlEvent, RuntimeControl, SendRequest } from '../runtime/control.ts';
import { ConnectorError, EXIT, type ExitCode } from '../runtime/errors.ts';
import { TEXT } from '../runtime/limits.ts';
import type { SessionRef } from '../runtime/session/session.ts';
import { capable, controlContext, refusalError, sweepLines } from './acting.ts';
import { type Answer, defineCommand, type EventLine } from './command.ts';
import { spanWords } from './output/age.ts';
import { eventData, refusalData } from './output/control-data.ts';
import { createEventPrinter } from './output/control-text.ts';
import type { Style } from './output/style.ts';
import { APPROVAL_ARGS, type Named, readOrder, WHEN_OWNED } from './send-order.ts';
import type { World } from './world.ts';

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
    const context = controlContext(world, args);
    const send = capable(control, 'send', ref.runtimeId).bind(control);
    const swept = await sweepLines(context);
    // Nothing has gone out yet: whoever has interrupted us meanwhile does not want it sent.
    world.signal.throwIfAborted();
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

interface Sending {
  readonly world: World;
  readonly context: ControlContext;
  readonly control: RuntimeControl<ControlContext>;
  readonly request: SendRequest;
  /** The session that was named; a new one has its id only once it was accepted. */
  readonly ref: Named;
  readonly notes: readonly string[];
  events(signal: AbortSignal): AsyncIterable<ControlEvent>;
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
    data: sendDocument(run, events),
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
export function sendDocument(
  { request, ref }: Pick<Sending, 'request' | 'ref'>,
  events: readonly ControlEvent[],
): Record<string, unknown> {
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

interface Seen {
  last?: ControlEvent;
  session?: SessionRef;
  queued?: boolean;
}

/** Follows to the end: events as they come. */
function following(run: Sending, abortsToo: boolean): Answer {
  const seen: Seen = {};
  return {
    kind: 'events',
    async *lines(signal) {
      const printer = createEventPrinter();
      for (const text of run.notes) yield lineOf({ type: 'note', at: run.world.now(), text }, printer);
      const leave = new AbortController();
      const onStop = (): void => void stop(run, seen, abortsToo, leave);
      signal.addEventListener('abort', onStop, { once: true });
      for await (const event of run.events(leave.signal)) {
        seen.last = event;
        if (event.type === 'queued') seen.queued = true;
        if (event.type === 'accepted') seen.session = event.session;
        // The interrupt came before the runtime had the message: what it asked for is done now.
        if (signal.aborted && (event.type === 'accepted' || event.type === 'queued')) onStop();
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

/**
 * Ctrl-C leaves the turn running, unless it was asked to stop it; then its end is still waited for. A turn that has not
 * begun can't be stopped: one that is about to is stopped when it has, and a message that waits behind somebody else's
 * turn is left where it is.
 */
async function stop(
  { control, context, request }: Sending,
  { session, queued }: Readonly<Seen>,
  abortsToo: boolean,
  leave: AbortController,
): Promise<void> {
  if (!abortsToo || !control.abort) return leave.abort();
  if (!session) return queued ? leave.abort() : undefined;
  const { target } = request;
  const known = target.kind === 'session' ? { known: target.session } : {};
  try {
    const result = await control.abort(context, { session, ...known, kill: false });
    if (result.kind === 'refused') leave.abort();
  } catch {
    // Nobody waits for this call, and a turn that can't be stopped is left, which says that it goes on.
    leave.abort();
  }
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
