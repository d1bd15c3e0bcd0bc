import { INTEGRATIONS } from '../install/hooks/index.ts';
import { socketPathIn } from '../runtime/daemon/endpoint.ts';
import { ConnectorError } from '../runtime/errors.ts';
import { connectorHome } from '../runtime/store/home.ts';
import { type Answer, defineCommand } from './command.ts';
import type { Place } from './daemon-control.ts';
import { hooksContext } from './hooks-world.ts';
import { canTalk, terminalTalk } from './output/talk.ts';
import { answerOf } from './setup/answer.ts';
import { type Mode, walk } from './setup/flow.ts';
import { foundText, lookAround } from './setup/found.ts';
import { CONSENT_OPTIONS, hooksSteps } from './setup/hooks-steps.ts';
import { notifySteps } from './setup/notify-steps.ts';
import { prove } from './setup/proof.ts';
import { type DaemonHands, daemonHands, serviceSteps } from './setup/service-steps.ts';
import type { Result, Talk } from './setup/step.ts';
import { wrapperStep } from './setup/wrapper-step.ts';
import type { World } from './world.ts';

/** `setup`: once after the installation, and again whenever one likes. */
export const setup = defineCommand({
  name: 'setup',
  summary: 'set everything up once: hooks, the daemon, notifications',
  details:
    'Looks at this computer and offers, one question each: hooks in the runtimes that are here (d shows the change), the daemon as a background service, notifications and one to try them, and the wrapper for Claude Code in VS Code. What is so already is said and not asked. Afterwards it proves what was done and says how to take each step back. Trust of Codex, lingering, notifications and the wrapper are never on by default. Ctrl-C leaves what was done, and says it.',
  args: {
    yes: { type: 'boolean', alias: 'y', description: 'Take the defaults without questions' },
    'dry-run': { type: 'boolean', description: 'Say what would be asked, and change nothing' },
  },
  examples: [
    { command: 'setup', says: 'with a question for each step' },
    { command: 'setup --dry-run', says: 'what it would ask' },
    { command: 'setup --yes', says: 'hooks and the daemon, without questions' },
    { command: 'setup --yes --json', says: 'for a script: one document of what was done' },
  ],
  asks: true,
  async run(args, world): Promise<Answer> {
    const mode = modeOf(args, canTalk());
    const talk = mode === 'ask' ? terminalTalk(world.style, world.signal) : SILENT;
    const home = connectorHome(world.env, world.home);
    try {
      return await setUp(world, { mode, talk, daemon: daemonHands(world, home) });
    } finally {
      talk.close();
    }
  },
});

/** For when nobody is asked. */
const SILENT: Talk = { say() {}, ask: async () => 'stop', close() {} };

/**
 * @throws ConnectorError `usage` where it would have to ask, and nobody could answer
 */
export function modeOf(args: Readonly<Record<string, unknown>>, isTerminal: boolean): Mode {
  if (args['dry-run'] === true) return 'dryRun';
  if (args['yes'] === true) return 'defaults';
  const next = '--yes takes the defaults, --dry-run shows them.';
  if (args['json'] === true)
    throw new ConnectorError(
      'usage',
      'setup asks, and --json leaves no room for that; nothing was changed',
      next,
    );
  if (!isTerminal)
    throw new ConnectorError('usage', 'setup asks, and there is no terminal; nothing was changed', next);
  return 'ask';
}

/** What a test brings instead of a terminal and a daemon. */
export interface SetupHands {
  readonly mode: Mode;
  readonly talk: Talk;
  readonly daemon: DaemonHands;
}

/** Looks, offers, does, proves. */
export async function setUp(world: World, { mode, talk, daemon }: SetupHands): Promise<Answer> {
  const context = hooksContext(world, CONSENT_OPTIONS);
  const home = context.connectorHome;
  const place: Place = { socketPath: socketPathIn(home), home, startedBy: 'foreground', linger: false };
  const found = await lookAround(world);
  if (mode === 'ask') talk.say(foundText(found));
  const steps = [
    ...hooksSteps(INTEGRATIONS, context),
    ...serviceSteps(world, place, daemon),
    ...notifySteps(world, home),
    wrapperStep(world),
  ];
  const walked = await walk(steps, { mode, talk, signal: world.signal });
  const sofar = new Map(walked.steps.map((one): [string, Result] => [one.step.id, one.result]));
  const isProved = mode !== 'dryRun' && !walked.stopped;
  const proof = isProved
    ? await prove(world, { integrations: INTEGRATIONS, context, place, sofar })
    : undefined;
  return answerOf({ mode, found, walked, proof });
}
