import { CATALOG, entryOf } from '../adapters/catalog.ts';
import { ConnectorError } from '../runtime/errors.ts';
import { type Collected, collect, toSnapshot } from './collect.ts';
import { type Answer, defineCommand, SESSION_FILTER_ARGS } from './command.ts';
import { readFilter } from './filter.ts';
import { paint, type Style } from './output/style.ts';
import { lookAtRuntimes, type RuntimeLook, readiness, runtimeData, runtimeTable } from './runtimes.ts';
import { DEFAULT_SHOWN, problemLines } from './session-list.ts';
import { nearest } from './suggest.ts';
import { tableOfSessions } from './table-of-sessions.ts';
import type { World } from './world.ts';

export const runtimeScan = defineCommand({
  name: 'runtime-scan',
  summary: 'say which runtimes are installed, in which version, and what is ready',
  details:
    'Looks for every runtime of the catalog as a login shell would find it, asks for versions at once with one deadline for all, and says what each is ready for. Versions are remembered by the program’s file. A scan never sends a prompt. With --sessions the sessions are listed too.',
  args: {
    sessions: { type: 'boolean', description: 'List the sessions too' },
    refresh: {
      type: 'boolean',
      description: 'Ask every program again instead of believing what is remembered',
    },
    ...SESSION_FILTER_ARGS,
  },
  examples: [
    { command: 'runtime-scan', says: 'what is installed, and what is ready' },
    { command: 'runtime-scan --sessions --json', says: 'runtimes and sessions as one JSON document' },
    { command: 'runtime-scan --refresh', says: 'after an update, without waiting for the file to tell' },
  ],
  brief: true,
  async run(args, world): Promise<Answer> {
    const filter = readFilter(args, world.cwd, world.now());
    const wanted = filter.runtimes;
    for (const id of wanted ?? []) assertKnown(id);
    const adapters = await world.adapters();
    const seen = wanted?.filter((id) => adapters.some((adapter) => adapter.id === id));
    const scanned = seen?.length === 0 ? undefined : { ...filter, runtimes: seen };
    const [look, found] = await Promise.all([
      scanned ? collect(world, scanned) : undefined,
      lookAtRuntimes(world, { refresh: args.refresh === true, signIn: 'ask' }),
    ]);
    const keep = (one: RuntimeLook) => !wanted || wanted.includes(one.installation.runtimeId);
    const withReadiness = (report: (typeof found.runtimes)[number]) =>
      readiness(report, adapters, look?.instances ?? [], found.signIns);
    const runtimes = found.runtimes.map(withReadiness).filter(keep);
    const bridges = found.bridges.map(withReadiness).filter(keep);
    const showSessions = args.sessions === true && look !== undefined;
    return {
      kind: 'document',
      data: {
        runtimes: runtimes.map((one) => runtimeData(one, world.platform)),
        bridges: bridges.map((one) => runtimeData(one, world.platform)),
        runtimeSessions: showSessions ? toSnapshot(look, look.adapters, filter, world.now()) : null,
      },
      text: (style) =>
        scanText(style, [...runtimes, ...bridges], showSessions ? look : undefined, filter.redact, world),
      warnings: showSessions ? problemLines(look) : [],
    };
  },
});

/** A longer install command is for programs; people get the page that explains it. */
const LONGEST_SHOWN_COMMAND = 110;

function assertKnown(id: string): void {
  if (entryOf(id)) return;
  const ids = CATALOG.map((entry) => entry.id);
  const hint = nearest(id, ids);
  throw new ConnectorError(
    'notFound',
    `there is no runtime "${id}"${hint ? `; did you mean "${hint}"?` : ''}`,
    `The runtimes are: ${ids.join(', ')}`,
  );
}

function scanText(
  style: Style,
  looks: readonly RuntimeLook[],
  sessions: Collected | undefined,
  redact: boolean,
  world: World,
): string {
  const missing = looks.filter((one) => one.installation.status !== 'available');
  const help = missing.map((one) => {
    const data = runtimeData(one, world.platform);
    const [only, second] = data.installCommands;
    const how = only && !second && only.length <= LONGEST_SHOWN_COMMAND ? only : data.helpUrl;
    return `  ${data.label}: ${how ?? ''}`;
  });
  const lines = [
    runtimeTable(style, looks),
    ...(help.length > 0
      ? ['', paint(style, 'dim', 'To install:'), ...help.map((line) => paint(style, 'dim', line))]
      : []),
  ];
  if (!sessions) return lines.join('\n');
  const shown = sessions.sessions.slice(0, DEFAULT_SHOWN);
  const body = tableOfSessions(style, shown, sessions.monitor, { redact, world });
  return [...lines, '', shown.length > 0 ? body : 'No sessions.'].join('\n');
}
