import { type Delivery, fireMarked } from '../install/hooks/delivery.ts';
import { heardInJournals } from '../install/hooks/heard.ts';
import type { Certainty, HooksContext, HooksStatus, Integration } from '../install/hooks/integration.ts';
import { socketPathIn } from '../runtime/daemon/endpoint.ts';
import { EXIT } from '../runtime/errors.ts';
import { type Answer, defineCommand } from './command.ts';
import { clientOf, likelyHolder } from './daemon-reach.ts';
import { chosenIntegrations, daemonWarnings, HOOKS_ARGS, hooksContext } from './hooks-world.ts';
import { age } from './output/age.ts';
import { type Paint, paint, type Style } from './output/style.ts';
import type { World } from './world.ts';

export const hooksStatus = defineCommand({
  name: 'hooks-status',
  summary: 'say whether hooks are installed, trusted, loaded, and arrive',
  details:
    'Says four things apart. Installed: our hooks stand in the file as this program would write them. Trusted: the runtime would run them, by its own word (only Codex asks; Claude Code runs none under disableAllHooks). Loaded: an event of the runtime itself was heard since they were installed, or its extension is connected. Arrives: a marked event, fired through the installed command as the runtime would, came to the daemon, or to the journal that it reads when it starts. Leaves with 51 where a runtime on this computer lacks one of the first two, or the event does not arrive.',
  args: {
    ...HOOKS_ARGS,
    fire: {
      type: 'boolean',
      default: true,
      description: 'Fire a marked event through the installed commands',
      negativeDescription: 'Only look',
    },
  },
  examples: [
    { command: 'hooks-status', says: 'every runtime on this computer' },
    { command: 'hooks-status --runtime codex --json', says: 'one of them, for a program' },
    { command: 'hooks-status --no-fire', says: 'without the marked event' },
  ],
  async run(args, world): Promise<Answer> {
    const { list, named } = chosenIntegrations(args);
    const context = hooksContext(world, args);
    const looks = await lookAtHooks(world, list, context, args.fire !== false);
    const shown = looks.filter((look) => named || look.status.present);
    const isWell = shown.every(well);
    return {
      kind: 'document',
      data: { well: isWell, runtimes: shown.map(lookData) },
      text: (style) =>
        shown.length === 0
          ? 'No runtime with hooks is on this computer.'
          : shown.map((look) => textOf(look, style, world.now())).join('\n\n'),
      warnings: await daemonWarnings(world),
      exitCode: isWell ? EXIT.ok : EXIT.hooksIncomplete,
    };
  },
});

/** What is known of one runtime’s hooks. */
export interface Look {
  readonly integration: Integration;
  readonly status: HooksStatus;
  readonly loaded: Certainty;
  /** Epoch milliseconds. */
  readonly heardAt: number | undefined;
  /** Programs whose extension of ours is connected to the daemon at this moment. */
  readonly connected: number;
  readonly deliveries: readonly { readonly command: string; readonly delivery: Delivery }[];
}

interface Seeing {
  readonly heard: Readonly<Record<string, number>>;
  /** The runtime of each program that is connected. */
  readonly attached: readonly string[];
  readonly socketPath: string;
  readonly fire: boolean;
}

/** Looks at the hooks of runtimes, one after the other; with `fire` a marked event goes through the installed commands. */
export async function lookAtHooks(
  world: World,
  list: readonly Integration[],
  context: HooksContext,
  fire: boolean,
): Promise<readonly Look[]> {
  const socketPath = socketPathIn(context.connectorHome);
  const [heard, attached] = await Promise.all([
    heardByDaemon(world, socketPath),
    attachedToDaemon(world, socketPath),
  ]);
  const looks: Look[] = [];
  for (const integration of list) {
    looks.push(await lookAt(integration, context, { heard, attached, socketPath, fire }));
  }
  return looks;
}

async function lookAt(integration: Integration, context: HooksContext, seeing: Seeing): Promise<Look> {
  const status = await integration.status(context);
  const agent = status.commands[0]?.agent ?? integration.id;
  const heardAt = newest(agent, seeing);
  const connected = seeing.attached.filter((id) => id === integration.id).length;
  const deliveries = [];
  for (const command of seeing.fire ? status.commands : []) {
    const delivery = await fireMarked(context, command, seeing.socketPath);
    deliveries.push({ command: command.command, delivery });
  }
  const loaded = connected > 0 && status.installed !== 'no' ? 'yes' : loadedBy(status, context, heardAt);
  return { integration, status, heardAt, connected, deliveries, loaded };
}

function newest(agent: string, { heard, socketPath }: Seeing): number | undefined {
  const times = [heard[agent], heardInJournals(socketPath, agent)].filter((at) => at !== undefined);
  return times.length === 0 ? undefined : Math.max(...times);
}

function loadedBy(status: HooksStatus, { editor }: HooksContext, heardAt: number | undefined): Certainty {
  if (status.installed === 'no') return 'no';
  if (heardAt === undefined) return 'unknown';
  const written = status.files.flatMap((file) => editor.lastStepAt(file) ?? []);
  return written.some((at) => heardAt < Date.parse(at)) ? 'unknown' : 'yes';
}

/** When the running daemon last heard a hook of each agent, epoch milliseconds; nothing without one. */
async function heardByDaemon(world: World, socketPath: string): Promise<Readonly<Record<string, number>>> {
  if (!likelyHolder(socketPath)) return {};
  const reply = await clientOf(world, socketPath).request('daemon', 'status');
  const { services } = fieldsOf(reply.kind === 'ok' ? reply.payload : undefined);
  const sessions = (Array.isArray(services) ? services : [])
    .map(fieldsOf)
    .find((one) => one['name'] === 'sessions');
  const heard = fieldsOf(fieldsOf(sessions?.['detail'])['heard']);
  return Object.fromEntries(
    Object.entries(heard).flatMap(([agent, at]): [string, number][] => {
      const time = Date.parse(String(at));
      return Number.isNaN(time) ? [] : [[agent, time]];
    }),
  );
}

/** The runtimes of the programs whose extension is connected now; nothing without a daemon. */
async function attachedToDaemon(world: World, socketPath: string): Promise<readonly string[]> {
  if (!likelyHolder(socketPath)) return [];
  const reply = await clientOf(world, socketPath).request('connector', 'inside-attached', {});
  const { attached } = fieldsOf(reply.kind === 'ok' ? reply.payload : undefined);
  return (Array.isArray(attached) ? attached : []).map((one) => String(fieldsOf(one)['runtimeId']));
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

/** Whether a marked event came to where the daemon finds it. */
export const arrived = ({ kind }: Delivery): boolean => kind === 'daemon' || kind === 'journal';

function well({ status, deliveries }: Look): boolean {
  const stands = status.installed === 'yes' && (status.trusted === 'yes' || status.trusted === 'unneeded');
  return stands && deliveries.every(({ delivery }) => arrived(delivery));
}

/** One runtime of `hooks-status --json`. */
export function lookData({ integration, status, loaded, heardAt, deliveries }: Look): object {
  return {
    runtimeId: integration.id,
    present: status.present,
    installed: status.installed,
    trusted: status.trusted,
    loaded,
    ...(heardAt === undefined ? {} : { heardAt: new Date(heardAt).toISOString() }),
    arrives: deliveries.map(({ command, delivery }) => ({ command, ...delivery })),
    files: status.files,
    notes: status.notes,
  };
}

const LOOKS: Readonly<Record<Certainty, Paint>> = {
  yes: 'green',
  no: 'red',
  partly: 'yellow',
  unknown: 'yellow',
  unneeded: 'dim',
};

function textOf(
  { integration, status, loaded, heardAt, connected, deliveries }: Look,
  style: Style,
  now: number,
): string {
  const say = (certainty: Certainty) => paint(style, LOOKS[certainty], certainty);
  const lines: readonly (readonly [string, string])[] = [
    ['installed', `${say(status.installed)}  ${status.files.join(', ')}`],
    ['trusted', `${say(status.trusted)}${status.trusted === 'unneeded' ? '  it asks for no trust' : ''}`],
    ['loaded', `${say(loaded)}  ${loadedWords(loaded, heardAt, connected, now)}`],
    ...deliveries.map(({ delivery }) => ['arrives', arrivesWords(delivery)] as const),
  ];
  return [
    paint(style, 'bold', integration.label),
    ...lines.map(([name, text]) => `  ${paint(style, 'dim', name.padEnd(10))} ${text.trimEnd()}`),
    ...status.notes.map((note) => `  ${note}`),
    ...(status.installed === 'yes' ? [] : [`  shadowob-connector install-hooks --runtime ${integration.id}`]),
  ].join('\n');
}

function loadedWords(loaded: Certainty, heardAt: number | undefined, connected: number, now: number): string {
  if (loaded === 'no') return '';
  if (connected > 0) return connected === 1 ? 'one of it is connected' : `${connected} of it are connected`;
  if (loaded === 'yes' && heardAt !== undefined) {
    const since = age(heardAt, now);
    return since === 'now' ? 'a hook of it was heard just now' : `a hook of it was heard ${since} ago`;
  }
  return 'no hook of it was heard since; send one of its sessions a message';
}

/** What became of a marked event, for a person. */
export function arrivesWords(delivery: Delivery): string {
  switch (delivery.kind) {
    case 'daemon':
      return 'yes  at the daemon';
    case 'journal':
      return 'yes  in the journal, until a daemon runs';
    case 'nobody':
      return 'no  the command works, but no daemon ever ran: shadowob-connector daemon start';
    case 'broken':
      return `no  ${delivery.message}`;
  }
}
