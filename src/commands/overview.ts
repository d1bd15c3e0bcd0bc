import { labelOf } from '../adapters/catalog.ts';
import { needsUser } from '../runtime/session/project.ts';
import { type Collected, toSnapshot } from './collect.ts';
import { type Answer, defineCommand, SESSION_FILTER_ARGS } from './command.ts';
import { lookAround } from './daemon-look.ts';
import { readFilter, type SessionFilter } from './filter.ts';
import { paint, type Style } from './output/style.ts';
import { lookAtRuntimes, type RuntimeLook, readiness, runtimeData, runtimeLines } from './runtimes.ts';
import { problemLines } from './session-list.ts';
import { tableOfSessions } from './table-of-sessions.ts';
import type { World } from './world.ts';

/** Sessions that the overview shows beyond those that wait or work. */
const RECENT_SHOWN = 10;
/** The overview waits this long for version probes; what is slower is shown from the next time on. */
const RUNTIMES_BUDGET_MS = 1_500;

export const overview = defineCommand({
  name: '',
  summary: 'the overview: runtimes and sessions, those that wait for you first',
  details:
    'Shows every session on this computer, those that wait for you first, then the runtimes that are installed and what can be done with each.',
  args: SESSION_FILTER_ARGS,
  examples: [{ command: '', says: 'who works, who is done, who waits for you' }],
  brief: true,
  async run(args, world): Promise<Answer> {
    const filter = readFilter(args, world.cwd, world.now());
    const [look, found] = await Promise.all([
      lookAround(world, filter, args.daemon !== false),
      lookAtRuntimes(world, { budgetMs: RUNTIMES_BUDGET_MS, refresh: false, signIn: 'remembered' }),
    ]);
    const adapters = await world.adapters();
    const ready = (report: (typeof found.runtimes)[number]) =>
      readiness(report, adapters, look.instances, found.signIns);
    const runtimes = found.runtimes.map(ready);
    const bridges = found.bridges.map(ready);
    return {
      kind: 'document',
      data: {
        runtimes: runtimes.map((one) => runtimeData(one, world.platform)),
        bridges: bridges.map((one) => runtimeData(one, world.platform)),
        runtimeSessions: toSnapshot(look, look.adapters, filter, world.now()),
      },
      text: (style) => overviewText(style, look, [...runtimes, ...bridges], filter, world),
      warnings: problemLines(look),
    };
  },
});

function overviewText(
  style: Style,
  look: Collected,
  runtimes: readonly RuntimeLook[],
  filter: SessionFilter,
  world: World,
): string {
  return [
    headline(style, look),
    '',
    ...sessionLines(style, look, filter, world),
    '',
    ...runtimeLines(style, runtimes),
    '',
  ].join('\n');
}

function headline(style: Style, look: Collected): string {
  const count = (test: (session: Collected['sessions'][number]) => boolean) =>
    look.sessions.filter(test).length;
  const waiting = count((session) => needsUser(session.shown));
  const working = count((session) => session.shown.state.kind === 'working');
  const parts = [
    paint(
      style,
      waiting > 0 ? 'yellow' : 'dim',
      waiting === 1 ? '1 session waits for you' : `${waiting} sessions wait for you`,
    ),
    paint(style, working > 0 ? 'green' : 'dim', `${working} working`),
    paint(style, 'dim', `${look.sessions.length} known`),
  ];
  return parts.join(paint(style, 'dim', ', '));
}

function sessionLines(style: Style, look: Collected, filter: SessionFilter, world: World): string[] {
  if (look.sessions.length === 0) {
    return [
      paint(
        style,
        'dim',
        `No sessions yet. Start one with any of ${look.adapters.map((one) => labelOf(one.id)).join(', ')}.`,
      ),
    ];
  }
  const open = look.sessions.filter(
    (session) => needsUser(session.shown) || session.shown.life === 'alive',
  ).length;
  const limit = filter.all ? look.sessions.length : (filter.limit ?? open + RECENT_SHOWN);
  const shown = look.sessions.slice(0, limit);
  const body = tableOfSessions(style, shown, look.monitor, { redact: filter.redact, world });
  const rest = look.sessions.length - shown.length;
  return rest > 0
    ? [body, paint(style, 'dim', `${rest} more: shadowob-connector session-list --all`)]
    : [body];
}
