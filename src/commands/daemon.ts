import { resolve } from 'node:path';
import { socketPathIn } from '../runtime/daemon/endpoint.ts';
import { ConnectorError } from '../runtime/errors.ts';
import { connectorHome } from '../runtime/store/home.ts';
import { type Answer, defineCommand } from './command.ts';
import type { Place } from './daemon-control.ts';
import type { StartedBy } from './daemon-run.ts';
import { nearest } from './suggest.ts';
import type { World } from './world.ts';

const ACTIONS = ['run', 'start', 'stop', 'restart', 'status', 'logs', 'install', 'uninstall'] as const;
type Action = (typeof ACTIONS)[number];

const STARTERS: readonly StartedBy[] = ['foreground', 'detached', 'systemd', 'launchd', 'windows-task'];

/** The net under file notification is never faster than this (`cli-surface.md` §1), milliseconds. */
const POLL_FLOOR_MS = 1_000;

/** Flags of the existing connector's link to a Shadow server. */
const LINK_FLAGS = ['server-url', 'api-key', 'work-dir-map-file', 'once'] as const;

export const daemon = defineCommand({
  name: 'daemon',
  summary: 'run, start, stop and inspect the resident daemon',
  details:
    'The daemon keeps the state of every session resident: it takes in hooks, watches files and event streams, and serves programs on a local socket. Commands ask it when it runs and look for themselves when it does not. Without a word it runs in the foreground, with its log on stderr; start runs it in the background, under systemd or launchd where the user has them.',
  args: {
    action: {
      type: 'positional',
      required: false,
      description: `one of ${ACTIONS.join(', ')} (default run)`,
    },
    socket: {
      type: 'string',
      description: 'Another socket than the one in the connector home',
      valueHint: 'path',
    },
    'log-file': { type: 'string', description: 'run: write the log there, not to stderr', valueHint: 'path' },
    'started-by': {
      type: 'string',
      description: 'run: what status says of how it was started',
      valueHint: 'who',
    },
    'poll-interval-ms': {
      type: 'string',
      description: 'run: how often to look although nothing was notified',
      valueHint: 'ms',
    },
    linger: {
      type: 'boolean',
      description: 'install: with systemd, let it outlive the log-out (loginctl enable-linger)',
    },
    lines: { type: 'string', alias: 'n', description: 'logs: how many lines (default 200)', valueHint: 'n' },
    follow: { type: 'boolean', alias: 'f', description: 'logs: go on with what is written' },
    'server-url': { type: 'string', description: 'Not available yet: a Shadow server', valueHint: 'url' },
    'api-key': { type: 'string', description: 'Not available yet: its key', valueHint: 'key' },
    'work-dir-map-file': { type: 'string', description: 'Not available yet: its folders', valueHint: 'path' },
    once: { type: 'boolean', description: 'Not available yet: one heartbeat' },
  },
  examples: [
    { command: 'daemon start', says: 'run it in the background' },
    { command: 'daemon status', says: 'how it runs, what it watches, what it dropped' },
    { command: 'daemon logs --follow', says: 'its log as it is written' },
    { command: 'daemon', says: 'run it here, until Ctrl-C' },
  ],
  async run(args, world): Promise<Answer> {
    const linked = LINK_FLAGS.find((flag) => args[flag] !== undefined);
    if (linked !== undefined) {
      throw new ConnectorError(
        'notLinked',
        `--${linked}: this computer is not linked to a Shadow server; this version cannot be`,
        'Without it, the daemon works for this computer: shadowob-connector daemon start',
      );
    }
    const action = readAction(args.action);
    const home = connectorHome(world.env, world.home);
    const socketPath = args.socket === undefined ? socketPathIn(home) : resolve(world.cwd, args.socket);
    if (action === 'run') {
      const { runDaemon } = await import('./daemon-run.ts');
      const logFile = args['log-file'];
      return runDaemon(world, {
        socketPath,
        home,
        startedBy: readStarter(args['started-by']),
        logFile: logFile === undefined ? undefined : resolve(world.cwd, logFile),
        pollMs: readPoll(args['poll-interval-ms']),
      });
    }
    if (action === 'logs') {
      const { showLogs } = await import('./daemon-logs.ts');
      return showLogs(world, home, { lines: args.lines, follow: args.follow === true });
    }
    if (args.linger === true && action !== 'install')
      throw new ConnectorError('usage', '--linger goes with install', 'daemon install --linger');
    const startedBy = readStarter(args['started-by']);
    return control(action, world, { socketPath, home, startedBy, linger: args.linger === true });
  },
});

async function control(action: Exclude<Action, 'run' | 'logs'>, world: World, place: Place): Promise<Answer> {
  if (action === 'status') {
    const { daemonStatus } = await import('./daemon-status.ts');
    return daemonStatus(world, place.socketPath, place.home);
  }
  const { daemonControl } = await import('./daemon-control.ts');
  return daemonControl(action, world, place);
}

function readAction(word: string | undefined): Action {
  if (word === undefined) return 'run';
  const action = ACTIONS.find((one) => one === word);
  if (action) return action;
  const hint = nearest(word, [...ACTIONS]);
  throw new ConnectorError(
    'usage',
    `daemon can't "${word}"${hint ? `; did you mean "${hint}"?` : ''}`,
    `It can: ${ACTIONS.join(', ')}`,
  );
}

function readStarter(word: string | undefined): StartedBy {
  if (word === undefined) return 'foreground';
  const starter = STARTERS.find((one) => one === word);
  if (starter) return starter;
  throw new ConnectorError('badValue', `--started-by: "${word}" is none of ${STARTERS.join(', ')}`);
}

function readPoll(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,8}$/.test(text)) return Math.max(POLL_FLOOR_MS, Number(text));
  throw new ConnectorError(
    'badValue',
    `--poll-interval-ms: "${text}" is no number of milliseconds`,
    'Try --poll-interval-ms 5000.',
  );
}
