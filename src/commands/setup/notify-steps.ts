import { settingOf } from '../../runtime/config/keys.ts';
import { readConfig } from '../../runtime/config/read.ts';
import { changeSetting } from '../config.ts';
import { sinkWords, trySinks } from '../notify.ts';
import type { World } from '../world.ts';
import type { Deed, Finding, Sofar, Step } from './step.ts';

const NOTIFICATIONS_ID = 'notifications';
const KEY = 'notifications.enabled';

/** Notifications, which are off until their owner says otherwise, and one to try them. */
export function notifySteps(world: World, home: string): readonly Step[] {
  return [turnOn(world, home), tryOne(world, home)];
}

function turnOn(world: World, home: string): Step {
  return {
    id: NOTIFICATIONS_ID,
    title: 'notifications',
    command: `config set ${KEY} true`,
    undo: `config unset ${KEY}`,
    async look(): Promise<Finding> {
      const { config, problem } = readConfig(home);
      if (problem !== undefined) return { kind: 'refused', says: [problem], problem: 'configRefused' };
      if (config.notifications.enabled) return { kind: 'already', says: [] };
      return {
        kind: 'offer',
        question: {
          text: 'Turn notifications on?',
          reason: 'A notice when a session needs you, is done or has failed. They are off until you say so.',
          fallback: false,
        },
        accept: () => enable(world, home),
      };
    },
  };
}

async function enable(world: World, home: string): Promise<Deed> {
  const setting = settingOf(KEY);
  if (!setting) return { result: 'failed', says: [`there is no setting ${KEY}`], problem: 'unexpected' };
  const { after, done, notes } = await changeSetting(world, home, setting, 'true');
  return { result: 'done', says: [after.path, ...done, ...notes] };
}

/** `notify test`, only for who has just turned them on. */
function tryOne(world: World, home: string): Step {
  return {
    id: 'notifyTest',
    title: 'a test notice',
    command: 'notify test',
    async look(sofar: Sofar): Promise<Finding> {
      if (sofar.get(NOTIFICATIONS_ID) !== 'done') return { kind: 'none' };
      return {
        kind: 'offer',
        question: {
          text: 'Try one now?',
          reason: 'One harmless notice through every way that the settings name.',
          fallback: true,
        },
        accept: () => send(world, home),
      };
    },
  };
}

async function send(world: World, home: string): Promise<Deed> {
  const results = await trySinks(world, readConfig(home).config.notifications);
  const says = results.map(sinkWords);
  if (results.length > 0 && results.every(({ delivered }) => delivered)) return { result: 'done', says };
  const none = ['The settings name no way to tell you: shadowob-connector config list'];
  return {
    result: 'failed',
    says: results.length === 0 ? none : [...says, 'See docs/notifications.md.'],
    problem: 'unsupported',
  };
}
