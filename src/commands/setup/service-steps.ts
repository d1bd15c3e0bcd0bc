import { lingers, userWord } from '../../install/service/linger.ts';
import type { ServiceManager } from '../../install/service/types.ts';
import type { CommandRunner } from '../../runtime/process/types.ts';
import { type ControlAction, type ControlOutcome, controlDaemon, type Place } from '../daemon-control.ts';
import {
  clientOf,
  isOfThisBuild,
  likelyHolder,
  managerOf,
  ping,
  serviceWords,
  specOf,
  systemOf,
} from '../daemon-reach.ts';
import type { World } from '../world.ts';
import { type Deed, type Finding, mayHold, type Sofar, type Step } from './step.ts';

export const SERVICE_ID = 'service';

/** Everything that these steps need of the daemon; the real one, unless a test brings its own. */
export interface DaemonHands {
  readonly manager: ServiceManager | undefined;
  readonly run: CommandRunner;
  control(action: ControlAction, place: Place): Promise<ControlOutcome>;
}

export function daemonHands(world: World, home: string): DaemonHands {
  return {
    manager: managerOf(world, home),
    run: systemOf(world).run,
    control: (action, place) => controlDaemon(action, world, place),
  };
}

/** The daemon in the background, and where systemd keeps it, whether it outlives the log-out (D5). */
export function serviceSteps(world: World, place: Place, hands: DaemonHands): readonly Step[] {
  const { manager } = hands;
  if (!manager) return [detachedStep(world, place, hands)];
  return [
    serviceStep(world, place, hands, manager),
    ...(manager.kind === 'systemd' ? [lingerStep(place, hands)] : []),
  ];
}

const USE = 'It keeps every session’s state at hand, hears the hooks and tells you what happens.';

/** Without a service manager of this user: a process in a session of its own (S-338). */
function detachedStep(world: World, place: Place, hands: DaemonHands): Step {
  return {
    id: SERVICE_ID,
    title: 'the daemon in the background',
    command: 'daemon start',
    undo: 'daemon stop',
    async look(): Promise<Finding> {
      const running = await ping(clientOf(world, place.socketPath));
      if (running) return { kind: 'already', says: [`It runs (pid ${running.pid}, ${running.startedBy}).`] };
      return {
        kind: 'offer',
        question: {
          text: 'Start the daemon in the background?',
          reason: `${USE} There is no service manager of this user here, so nothing starts it again at login.`,
          fallback: true,
        },
        accept: async () => deedOf(await hands.control('start', place)),
      };
    },
  };
}

const KINDS: Readonly<Record<ServiceManager['kind'], string>> = {
  systemd: 'a systemd user service, started by the first program that asks',
  launchd: 'a launchd agent, started by the first program that asks',
  'windows-task': 'a task at log-on',
};

function serviceStep(world: World, place: Place, hands: DaemonHands, manager: ServiceManager): Step {
  return {
    id: SERVICE_ID,
    title: 'the daemon as a background service',
    command: 'daemon install',
    undo: 'daemon uninstall',
    async look(): Promise<Finding> {
      const spec = specOf(world, place.socketPath, place.home);
      const isThere = manager.installed();
      if (isThere && isOfThisBuild(manager, spec))
        return { kind: 'already', says: [`Kept by ${serviceWords(manager, spec)}.`] };
      const text = isThere
        ? 'Renew the background service? It starts another program than this one.'
        : 'Install the daemon as a background service?';
      return {
        kind: 'offer',
        question: { text, reason: `${USE} It becomes ${KINDS[manager.kind]}.`, fallback: true },
        accept: () => installService(place, hands),
      };
    },
  };
}

async function installService(place: Place, hands: DaemonHands): Promise<Deed> {
  // A daemon that was started by hand holds the socket that the manager is about to listen on.
  if (likelyHolder(place.socketPath)) await hands.control('stop', place);
  return deedOf(await hands.control('install', place));
}

function lingerStep(place: Place, hands: DaemonHands): Step {
  const user = userWord();
  return {
    id: 'linger',
    title: 'lingering after the log-out',
    command: 'daemon install --linger',
    undo: 'daemon uninstall',
    async look(sofar: Sofar): Promise<Finding> {
      if (!mayHold(sofar.get(SERVICE_ID))) return { kind: 'none' };
      if (await lingers({ run: hands.run }, user))
        return { kind: 'already', says: [`${user}’s services linger.`] };
      return {
        kind: 'offer',
        question: {
          text: 'Let it go on after you log out?',
          reason: `loginctl enable-linger ${user}: it holds for all of your services. Without it, it ends with your last session.`,
          fallback: false,
        },
        accept: async () => {
          const { done, notes } = await hands.control('install', { ...place, linger: true });
          const alone = `To take back this alone: loginctl disable-linger ${user}`;
          if (await lingers({ run: hands.run }, user))
            return { result: 'done', says: [...done, ...notes, alone] };
          return { result: 'failed', says: notes, problem: 'daemon' };
        },
      };
    },
  };
}

function deedOf({ done, notes }: ControlOutcome): Deed {
  return { result: 'done', says: [...done, ...notes] };
}
