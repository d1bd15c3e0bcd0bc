import { readConfig } from '../runtime/config/read.ts';
import type { NotificationSettings } from '../runtime/config/schema.ts';
import { waitingScheduler } from '../runtime/daemon/clock.ts';
import { ConnectorError, EXIT } from '../runtime/errors.ts';
import type { Notice } from '../runtime/notify/notice.ts';
import { sinksOf } from '../runtime/notify/sinks/all.ts';
import type { Sink } from '../runtime/notify/sinks/sink.ts';
import { terminalSignal } from '../runtime/notify/sinks/terminal.ts';
import { run } from '../runtime/process/spawn.ts';
import { connectorHome } from '../runtime/store/home.ts';
import { type Answer, defineCommand } from './command.ts';
import { signalTerminal } from './output/signal.ts';
import type { World } from './world.ts';

const SINKS = ['desktop', 'terminal', 'command', 'webhook'] as const;

export const notify = defineCommand({
  name: 'notify',
  summary: 'try the ways of telling you: notify test',
  details:
    'Sends one harmless notice through every way that the settings name, or through one of them, and says what came of it. Works also while notifications are off. It runs here and not in the daemon: what a service manager starts has an environment of its own.',
  args: {
    action: { type: 'positional', required: true, description: 'test' },
    sink: { type: 'positional', required: false, description: `only one of ${SINKS.join(', ')}` },
  },
  examples: [
    { command: 'notify test', says: 'all that the settings name' },
    { command: 'notify test webhook', says: 'the webhook alone' },
  ],
  async run(args, world): Promise<Answer> {
    if (args.action !== 'test')
      throw new ConnectorError('usage', `notify can't "${args.action}"`, 'It can: test');
    const wanted = SINKS.find((one) => one === args.sink);
    if (args.sink !== undefined && !wanted) {
      throw new ConnectorError('badValue', `"${args.sink}" is none of ${SINKS.join(', ')}`);
    }
    const read = readConfig(connectorHome(world.env, world.home));
    const settings = read.config.notifications;
    const results = await trySinks(world, settings, wanted);
    return answer(results, settings, wanted, read.problem);
  },
});

/** What came of one way of telling. */
export interface SinkResult {
  readonly sink: string;
  readonly words: string;
  readonly delivered: boolean;
  readonly reason?: string;
}

/** Sends one harmless notice through every way that the settings name, or through one of them. */
export async function trySinks(
  world: World,
  settings: NotificationSettings,
  wanted?: (typeof SINKS)[number] | undefined,
): Promise<readonly SinkResult[]> {
  const host = {
    platform: world.platform,
    env: world.env,
    run,
    scheduler: waitingScheduler,
    agent: `shadowob-connector/${world.version}`,
  };
  const chosen = sinksOf(settings, host).filter(({ name }) => wanted === undefined || name === wanted);
  const notice = testNotice(world.now());
  const sent = await Promise.all(chosen.map((sink) => send(sink, notice, world.signal)));
  const { style, details } = settings.sinks.terminal;
  const isAsked = style !== 'off' && (wanted === undefined || wanted === 'terminal');
  if (!isAsked) return sent;
  const reached = signalTerminal(terminalSignal(notice, style, details, world.env['TMUX'] !== undefined));
  const result = { sink: 'terminal', words: style, delivered: reached };
  return [...sent, reached ? result : { ...result, reason: 'this is no terminal' }];
}

async function send(sink: Sink, notice: Notice, signal: AbortSignal): Promise<SinkResult> {
  const result = await sink.send(notice, signal);
  const base = { sink: sink.name, words: sink.words, delivered: result.kind === 'delivered' };
  return result.kind === 'failed' ? { ...base, reason: result.reason } : base;
}

function testNotice(now: number): Notice {
  return {
    id: `test ${now}`,
    kind: 'test',
    event: 'connector.test',
    at: now,
    runtimes: [{ id: 'connector', label: 'shadowob-connector' }],
    from: 'new',
    to: 'ready',
    details: {},
  };
}

function answer(
  results: readonly SinkResult[],
  settings: NotificationSettings,
  wanted: string | undefined,
  problem: string | undefined,
): Answer {
  const failed = results.filter(({ delivered }) => !delivered);
  const off = settings.enabled
    ? []
    : ['Notifications are off: shadowob-connector config set notifications.enabled true'];
  const none = new ConnectorError(
    'unsupported',
    wanted === undefined ? 'the settings name no way to tell you' : `the settings name no ${wanted}`,
    'See: shadowob-connector config list',
  );
  const bad = new ConnectorError(
    'unsupported',
    failed.map(sinkWords).join('; '),
    'See docs/notifications.md.',
  );
  const failure = results.length === 0 ? none : failed.length > 0 ? bad : undefined;
  return {
    kind: 'document',
    data: { results },
    text: () => results.map(sinkWords).join('\n'),
    exitCode: failure?.exitCode ?? EXIT.ok,
    ...(failure ? { failure } : {}),
    warnings: [...(problem === undefined ? [] : [problem]), ...off],
  };
}

/** The same in words. */
export function sinkWords({ sink, words, delivered, reason }: SinkResult): string {
  return `${sink} (${words}): ${delivered ? 'delivered' : reason}`;
}
