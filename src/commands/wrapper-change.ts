import { isAbsolute, resolve } from 'node:path';
import { createEditor } from '../install/edit/editor.ts';
import { shimPathIn } from '../install/wrapper/places.ts';
import type { SettingsDone, WrapperContext, WrapperDone } from '../install/wrapper/wrapper.ts';
import { socketPathIn } from '../runtime/daemon/endpoint.ts';
import { ConnectorError } from '../runtime/errors.ts';
import { connectorHome } from '../runtime/store/home.ts';
import type { Answer } from './command.ts';
import { paint, type Style } from './output/style.ts';
import type { World } from './world.ts';

/** What both commands take. */
export const WRAPPER_ARGS = {
  settings: {
    type: 'string',
    description: 'One settings file (else the user settings of VS Code, Insiders, Cursor and VSCodium)',
    valueHint: 'path',
  },
  shim: {
    type: 'string',
    description: 'Where the shim lies (else in the connector home)',
    valueHint: 'path',
  },
  'dry-run': { type: 'boolean', description: 'Show what would change, and change nothing' },
} as const;

type Words = Readonly<Record<string, unknown>>;

/**
 * @throws ConnectorError `unsupported` on Windows, where an editor can start no script
 */
export function wrapperContext(world: World, args: Words): WrapperContext {
  const home = connectorHome(world.env, world.home);
  const path = (name: string): string | undefined => {
    const value = args[name];
    if (typeof value !== 'string') return undefined;
    return isAbsolute(value) ? value : resolve(world.cwd, value);
  };
  const settings = path('settings');
  return {
    env: world.env,
    home: world.home,
    platform: world.platform,
    editor: createEditor({ home, now: () => new Date(world.now()) }),
    shim: path('shim') ?? shimPathIn(home),
    dryRun: args['dry-run'] === true,
    ...(settings === undefined ? {} : { settings }),
  };
}

/** The socket for the shim, where the editor's own environment would lead to another. */
export function socketForShim(world: World): string | undefined {
  const socket = socketPathIn(connectorHome(world.env, world.home));
  return socket === socketPathIn(connectorHome({}, world.home)) ? undefined : socket;
}

/** The answer of both commands. Where a file could not be changed, the others still were; it is the exit code. */
export function wrapperAnswer(done: WrapperDone, dryRun: boolean, reminder: string): Answer {
  const problems = [
    ...(done.shim.result === 'failed' ? [done.shim.message ?? ''] : []),
    ...done.settings.filter(({ result }) => isProblem(result)).map(({ message }) => message ?? ''),
  ];
  const changed = done.settings.some(({ result }) => result === 'changed');
  const answer = {
    kind: 'document',
    data: { dryRun, ...done },
    text: (style: Style) => [...textOf(done, style), ...(changed ? [reminder] : [])].join('\n'),
  } as const;
  const [first, ...others] = problems;
  if (first === undefined) return answer;
  const failure = new ConnectorError('configRefused', first);
  return done.settings.some(({ result }) => !isProblem(result))
    ? { ...answer, exitCode: failure.exitCode, warnings: [first, ...others] }
    : { ...answer, failure };
}

function isProblem(result: SettingsDone['result']): boolean {
  return result === 'refused' || result === 'failed';
}

const WORDS: Readonly<Record<SettingsDone['result'] | WrapperDone['shim']['result'], string>> = {
  changed: 'changed',
  wouldChange: 'would change',
  unchanged: 'as it should be',
  left: 'left alone',
  refused: 'not changed',
  failed: 'not changed',
  written: 'written',
  wouldWrite: 'would be written',
  removed: 'removed',
  wouldRemove: 'would be removed',
  kept: 'kept',
  absent: 'not there',
};

function textOf({ shim, settings }: WrapperDone, style: Style): readonly string[] {
  return [
    `${shim.path}: ${WORDS[shim.result]}`,
    ...(shim.message === undefined ? [] : [`  ${shim.message}`]),
    ...settings.flatMap((one) => [
      `${one.label === undefined ? '' : `${one.label}: `}${one.path}: ${WORDS[one.result]}`,
      ...(one.message === undefined ? [] : [`  ${one.message}`]),
      ...(one.backup === undefined ? [] : [`  The former text: ${one.backup}`]),
      ...(one.diff === undefined ? [] : [paint(style, 'dim', one.diff.trimEnd())]),
    ]),
  ];
}
