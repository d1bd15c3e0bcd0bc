import { ConnectorError } from '../runtime/errors.ts';
import { DEFAULT_POLL_MS } from '../runtime/monitor.ts';
import { needsUser } from '../runtime/session/project.ts';
import { chosenAdapters, openMonitor, readMonitor, type SessionsView, toSnapshot } from './collect.ts';
import { type Answer, defineCommand, SESSION_FILTER_ARGS } from './command.ts';
import { lookAround, watchDaemon } from './daemon-look.ts';
import { createSnapshotDiff } from './events.ts';
import { readFilter, type SessionFilter } from './filter.ts';
import { paint, type Style } from './output/style.ts';
import { type Privacy, privacyOf } from './privacy.ts';
import { tableOfSessions } from './table-of-sessions.ts';
import { terminalTeller } from './terminal-teller.ts';
import type { World } from './world.ts';

/** The least time between two looks, milliseconds (`cli-surface.md` §1). */
const POLL_FLOOR_MS = 1_000;
/** Changes closer together than this are shown as one. */
const REDRAW_MS = 50;
/** A panel's ages move without any change. */
const AGE_REFRESH_MS = 1_000;

export const runtimeWatch = defineCommand({
  name: 'runtime-watch',
  summary: 'watch all sessions: a panel that redraws in place, or events as NDJSON',
  details:
    'Shows all sessions and keeps them up to date by file notification and the runtimes’ own event streams; polling is only the net. With --json, prints one event a line: a snapshot first, then session_added, session_changed and session_removed. Nothing is printed while nothing changes. Ctrl-C ends it.',
  args: {
    ...SESSION_FILTER_ARGS,
    once: { type: 'boolean', description: 'Show one picture and leave' },
    'poll-interval-ms': {
      type: 'string',
      description: `How often to look although nothing was notified (default ${DEFAULT_POLL_MS}, at least ${POLL_FLOOR_MS})`,
      valueHint: 'ms',
    },
  },
  examples: [
    { command: 'runtime-watch', says: 'the panel' },
    {
      command: 'runtime-watch --runtime claude-code --json',
      says: 'Claude Code’s sessions as events, one a line',
    },
    { command: 'runtime-watch --once', says: 'the panel as it is now' },
  ],
  async run(args, world): Promise<Answer> {
    const filter = readFilter(args, world.cwd, world.now());
    const pollMs = readPoll(args['poll-interval-ms']);
    const once = args.once === true;
    const ask = args.daemon !== false;
    await chosenAdapters(world, filter); // Refuses an unknown runtime before the screen is touched.
    return {
      kind: 'stream',
      once,
      json: (signal) => (once ? oneEvent(world, filter, ask) : events(world, filter, pollMs, signal, ask)),
      screen: (signal, style) =>
        once
          ? onePicture(world, filter, style, ask)
          : pictures(world, filter, { pollMs, ask }, signal, style),
    };
  },
});

function readPoll(text: string | undefined): number {
  if (text === undefined) return DEFAULT_POLL_MS;
  if (/^\d{1,8}$/.test(text)) return Math.max(POLL_FLOOR_MS, Number(text));
  throw new ConnectorError(
    'badValue',
    `--poll-interval-ms: "${text}" is no number of milliseconds`,
    'Try --poll-interval-ms 5000.',
  );
}

async function* oneEvent(world: World, filter: SessionFilter, ask: boolean): AsyncIterable<unknown> {
  const look = await lookAround(world, filter, ask);
  const diff = createSnapshotDiff();
  yield* diff(toSnapshot(look, look.adapters, filter, world.now()));
}

async function* onePicture(
  world: World,
  filter: SessionFilter,
  style: Style,
  ask: boolean,
): AsyncIterable<string> {
  const look = await lookAround(world, filter, ask);
  yield picture(style, look.monitor, filter, { world, privacy: await privacyOf(world) });
}

async function* events(
  world: World,
  filter: SessionFilter,
  pollMs: number,
  signal: AbortSignal,
  ask: boolean,
): AsyncIterable<unknown> {
  const adapters = await chosenAdapters(world, filter);
  const privacy = await privacyOf(world);
  const diff = createSnapshotDiff();
  // A list cut to a byte budget would report sessions at its edge as removed and added again.
  const whole = { ...filter, all: filter.limit === undefined };
  for await (const view of views(world, filter, { pollMs, ask }, signal, undefined)) {
    yield* diff(toSnapshot(readMonitor(view, filter, privacy), adapters, whole, world.now()));
  }
}

async function* pictures(
  world: World,
  filter: SessionFilter,
  how: Watching,
  signal: AbortSignal,
  style: Style,
): AsyncIterable<string> {
  const refreshMs = style.canRedraw ? AGE_REFRESH_MS : undefined;
  const privacy = await privacyOf(world);
  const tell = style.canRedraw ? await terminalTeller(world) : undefined;
  for await (const view of views(world, filter, how, signal, refreshMs)) {
    tell?.(view.registry.sessions());
    yield picture(currentSize(style), view, filter, { world, privacy });
  }
}

interface Watching {
  readonly pollMs: number;
  readonly ask: boolean;
}

/** The daemon's news where one runs and for as long as it does, else those of a monitor of our own. */
async function* views(
  world: World,
  filter: SessionFilter,
  how: Watching,
  signal: AbortSignal,
  refreshMs: number | undefined,
): AsyncIterable<SessionsView> {
  if (how.ask) yield* watchDaemon(world, filter, signal, refreshMs);
  if (signal.aborted) return;
  const { monitor } = await openMonitor(world, filter, how.pollMs);
  for await (const _ of looks(monitor, signal, refreshMs)) {
    yield monitor;
    world.index()?.flush();
  }
}

/** The terminal may have been resized since the style was read. */
function currentSize(style: Style): Style {
  if (style.columns === undefined) return style;
  return {
    ...style,
    columns: process.stdout.columns ?? style.columns,
    rows: process.stdout.rows ?? style.rows,
  };
}

/** Yields once at first and then whenever there may be something new to show, until aborted. */
async function* looks(
  monitor: Awaited<ReturnType<typeof openMonitor>>['monitor'],
  signal: AbortSignal,
  refreshMs: number | undefined,
): AsyncIterable<void> {
  const wake = { pending: false, resolve: () => {} };
  const poke = () => {
    wake.pending = true;
    wake.resolve();
  };
  const refresh = refreshMs === undefined ? undefined : setInterval(poke, refreshMs);
  signal.addEventListener('abort', poke);
  process.on('SIGWINCH', poke);
  try {
    await monitor.scan();
    yield;
    if (signal.aborted) return;
    await monitor.watch(poke);
    while (!signal.aborted) {
      if (!wake.pending) await new Promise<void>((resolve) => (wake.resolve = resolve));
      if (signal.aborted) return;
      await Bun.sleep(REDRAW_MS);
      wake.pending = false;
      yield;
    }
  } finally {
    clearInterval(refresh);
    signal.removeEventListener('abort', poke);
    process.off('SIGWINCH', poke);
    await monitor.close();
  }
}

function picture(
  style: Style,
  monitor: SessionsView,
  filter: SessionFilter,
  { world, privacy }: { readonly world: World; readonly privacy: Privacy },
): string {
  const { sessions, problems } = readMonitor(monitor, filter, privacy);
  const waiting = sessions.filter((session) => needsUser(session.shown)).length;
  const working = sessions.filter((session) => session.shown.state.kind === 'working').length;
  const head = `${paint(style, 'bold', 'shadowob-connector')}  ${paint(style, waiting > 0 ? 'yellow' : 'dim', `${waiting} waiting for you`)}  ${paint(style, working > 0 ? 'green' : 'dim', `${working} working`)}  ${sessions.length} sessions`;
  const room = (style.rows ?? DEFAULT_ROWS) - FRAME_ROWS;
  const limit = filter.all ? sessions.length : Math.min(filter.limit ?? sessions.length, Math.max(1, room));
  const shown = sessions.slice(0, limit);
  const body = tableOfSessions(style, shown, monitor, { redact: filter.redact, world });
  const foot = [
    sessions.length > shown.length ? `${sessions.length - shown.length} more` : undefined,
    problems.length > 0 ? `${problems.length} could not be read: session-list --verbose` : undefined,
    style.canRedraw ? 'Ctrl-C ends' : undefined,
  ].filter((part): part is string => part !== undefined);
  return [head, '', sessions.length > 0 ? body : 'No sessions.', paint(style, 'dim', foot.join('  '))]
    .join('\n')
    .trimEnd();
}

/** Rows where nobody says how many there are (a pipe). */
const DEFAULT_ROWS = 34;
/** Head, blank line, table head and foot. */
const FRAME_ROWS = 4;
