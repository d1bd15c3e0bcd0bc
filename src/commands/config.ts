import type { Data } from '../install/edit/data.ts';
import { createEditor, type Proposed } from '../install/edit/editor.ts';
import { removeKey, setValue } from '../install/edit/operation.ts';
import type { Wiring } from '../install/edit/wiring.ts';
import { readValue, SETTINGS, type Setting, settingOf, valueAt } from '../runtime/config/keys.ts';
import { configPathIn } from '../runtime/config/path.ts';
import { type ReadConfig, readConfig } from '../runtime/config/read.ts';
import { socketPathIn } from '../runtime/daemon/endpoint.ts';
import { ConnectorError } from '../runtime/errors.ts';
import { connectorHome, ensureHome } from '../runtime/store/home.ts';
import { type Answer, defineCommand } from './command.ts';
import { paint, type Style } from './output/style.ts';
import { nearest } from './suggest.ts';
import type { World } from './world.ts';

const ACTIONS = ['list', 'get', 'set', 'unset', 'path'] as const;
type Action = (typeof ACTIONS)[number];

export const config = defineCommand({
  name: 'config',
  summary: 'the settings of this program: list, get, set, unset, path',
  details:
    'All settings lie in config.json in the connector home; it may hold comments, and an edit leaves every byte that it does not mean. Without the file the defaults hold. A file that is no use is kept and named, and the defaults hold. A running daemon follows a change within two seconds. docs/notifications.md explains every setting.',
  args: {
    action: {
      type: 'positional',
      required: false,
      description: `one of ${ACTIONS.join(', ')} (default list)`,
    },
    key: { type: 'positional', required: false, description: 'a setting, such as notifications.enabled' },
    value: { type: 'positional', required: false, description: 'a word, or JSON for lists' },
  },
  examples: [
    {
      command: 'config set notifications.enabled true',
      says: 'be told when a session needs you, is done or has failed',
    },
    { command: 'config set notifications.quietHours 22:00-07:00', says: 'but not at night' },
    {
      command: 'config set notifications.sinks.command.argv \'["/home/me/bin/told"]\'',
      says: 'a program of yours, the event as JSON on its stdin',
    },
    {
      command: 'config set privacy.titles short',
      says: 'show only the beginning of titles, and folder names for paths',
    },
  ],
  async run(args, world): Promise<Answer> {
    const home = connectorHome(world.env, world.home);
    switch (readAction(args.action)) {
      case 'path':
        return { kind: 'document', data: { path: configPathIn(home) }, text: () => configPathIn(home) };
      case 'list':
        return list(readConfig(home));
      case 'get':
        return get(readConfig(home), settingNamed(args.key));
      case 'set':
        return change(world, home, settingNamed(args.key), args.value);
      case 'unset':
        return change(world, home, settingNamed(args.key), null);
    }
  },
});

function readAction(word: string | undefined): Action {
  const action = ACTIONS.find((one) => one === (word ?? 'list'));
  if (action) return action;
  const hint = nearest(word ?? '', [...ACTIONS]);
  throw new ConnectorError(
    'usage',
    `config can't "${word}"${hint ? `; did you mean "${hint}"?` : ''}`,
    `It can: ${ACTIONS.join(', ')}`,
  );
}

function settingNamed(key: string | undefined): Setting {
  if (key === undefined)
    throw new ConnectorError('usage', 'which setting?', 'All of them: shadowob-connector config list');
  const setting = settingOf(key);
  if (setting) return setting;
  const hint = nearest(
    key,
    SETTINGS.map((one) => one.key),
  );
  throw new ConnectorError(
    'badValue',
    `there is no setting "${key}"${hint ? `; did you mean "${hint}"?` : ''}`,
    'All of them: shadowob-connector config list',
  );
}

function list(read: ReadConfig): Answer {
  const settings = SETTINGS.map(({ key, path, fallback }) => {
    const value = valueAt(read.config, path);
    return { key, value, isDefault: Bun.deepEquals(value, fallback) };
  });
  const width = Math.max(...settings.map(({ key }) => key.length));
  return {
    kind: 'document',
    data: { path: read.path, invalid: read.invalid, problem: read.problem ?? null, config: read.config },
    text: (style: Style) =>
      settings
        .map(
          ({ key, value, isDefault }) =>
            `${key.padEnd(width)}  ${paint(style, isDefault ? 'dim' : 'bold', show(value))}`,
        )
        .join('\n'),
    warnings: problemsOf(read),
  };
}

function get(read: ReadConfig, setting: Setting): Answer {
  const value = valueAt(read.config, setting.path);
  return {
    kind: 'document',
    data: { key: setting.key, value },
    text: () => show(value),
    warnings: problemsOf(read),
  };
}

function show(value: unknown): string {
  return typeof value === 'string' && value !== '' ? value : JSON.stringify(value);
}

function problemsOf(read: ReadConfig): readonly string[] {
  return read.problem === undefined ? [] : [read.problem];
}

async function change(
  world: World,
  home: string,
  setting: Setting,
  text: string | null | undefined,
): Promise<Answer> {
  if (text === undefined) throw new ConnectorError('usage', `config set ${setting.key}: to what?`);
  const { after, done, notes } = await changeSetting(world, home, setting, text);
  const value = valueAt(after.config, setting.path);
  return {
    kind: 'document',
    data: { key: setting.key, value, path: after.path, done, notes },
    text: () => [`${setting.key} is ${show(value)}`, ...done].join('\n'),
    warnings: [...problemsOf(after), ...notes],
  };
}

/** What a change of a setting led to: the settings as they are now, what was done, what its user should know. */
export interface SettingChanged {
  readonly after: ReadConfig;
  readonly done: readonly string[];
  readonly notes: readonly string[];
}

/**
 * Sets a setting, or takes its key away (`null`), and does what follows from it.
 *
 * @throws ConnectorError `badValue` for a text that the setting does not take; `configRefused` where the file can't be
 *   edited safely
 */
export async function changeSetting(
  world: World,
  home: string,
  setting: Setting,
  text: string | null,
): Promise<SettingChanged> {
  const value = text === null ? undefined : typed(setting, text);
  const before = readConfig(home);
  write(world, home, setting, value);
  const after = readConfig(home);
  const { afterChange } = await import('./config-effects.ts');
  const effects = await afterChange(
    world,
    { home, socketPath: socketPathIn(home) },
    before.config,
    after.config,
  );
  return { after, done: effects.done, notes: effects.notes };
}

function typed(setting: Setting, text: string): Data {
  const read = readValue(setting, text);
  // The schema has let it pass, so it is JSON.
  if (read.kind === 'value') return read.value as Data;
  throw new ConnectorError('badValue', read.reason, `It is ${show(setting.fallback)} by default.`);
}

/** Without a value the key goes, and with it what setting it had made around it: the file has its former bytes again. */
function write(world: World, home: string, { path: key }: Setting, value: Data | undefined): void {
  const made = ensureHome(home, world.platform);
  if (made.kind !== 'ready') throw new ConnectorError('configRefused', `${home} can't be made: ${made.code}`);
  const path = configPathIn(home);
  const wiring: Wiring = {
    id: 'config',
    format: 'jsonc',
    install: () => (value === undefined ? [] : [setValue(key, value)]),
    remove: () => [removeKey(key)],
  };
  const editor = createEditor({ home, now: () => new Date(world.now()) });
  const proposed = value === undefined ? editor.remove(path, wiring) : editor.install(path, wiring);
  if (proposed.kind === 'nothing') return;
  if (proposed.kind !== 'change') throw refusal(path, proposed);
  const outcome = editor.commit(proposed);
  if (outcome.kind === 'written' || outcome.kind === 'removed') return;
  const why =
    outcome.kind === 'failed'
      ? `it could not be written (${outcome.code})`
      : 'another program wrote it at the same time';
  throw new ConnectorError('configRefused', `${path}: ${why}`, 'Try it again.');
}

function refusal(path: string, proposed: Exclude<Proposed, { kind: 'nothing' | 'change' }>): ConnectorError {
  const why = proposed.kind === 'refused' ? proposed.message : 'has changed since';
  const line = proposed.kind === 'refused' && proposed.line !== undefined ? `, line ${proposed.line}` : '';
  return new ConnectorError(
    'configRefused',
    `${path}${line} ${why}`,
    'Mend it, or move it away; without it the defaults hold.',
  );
}
