import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { claudeHomes } from '../../adapters/claude-code/homes.ts';
import { type Data, lookup } from '../edit/data.ts';
import type { Wiring } from '../edit/wiring.ts';
import { type ClaudeEvents, claudeEvents } from './claude-events.ts';
import { claudeShell } from './claude-shell.ts';
import { claudeWiring, isCustomised, oursIn } from './claude-wiring.ts';
import { allPlaces, eventsIn, misshapen } from './groups.ts';
import type { HooksContext, HooksPlan, HooksStatus, InstalledCommand, Integration } from './integration.ts';
import { homeNotes, notesOn, shapeNotes } from './notes.ts';
import { misfit, planUndoOf, refusal, turn, type Wording } from './proposal.ts';
import { commandLine } from './shell.ts';

const ID = 'claude-code';
/** Later than any that was seen. */
const NEWEST = '999.0';

/** Claude Code's `settings.json` (S-810 … S-814, R-07, R-21, R-23). */
export const claudeCode: Integration = {
  id: ID,
  label: 'Claude Code',
  aliases: ['claude'],
  options: [
    {
      name: 'settings',
      description: 'Claude Code: another settings.json than that of $CLAUDE_CONFIG_DIR or ~/.claude',
      valueHint: 'path',
    },
  ],
  async planInstall(context) {
    const path = settingsPath(context);
    const programs = await context.programs(ID);
    if (context.options['settings'] === undefined && programs.length === 0 && !existsSync(join(path, '..'))) {
      return {
        kind: 'absent',
        message: 'Claude Code is not on this computer: no program, and no settings folder.',
      };
    }
    const events = eventsFor(programs);
    return planWith(
      context,
      'install',
      claudeWiring(commandFor(context), events),
      events,
      versionNotes(programs),
    );
  },
  async planUninstall(context) {
    const events = claudeEvents([]);
    return planWith(context, 'remove', claudeWiring(commandFor(context), events), events, []);
  },
  async planUndo(context) {
    return planUndoOf(context.editor, [settingsPath(context)], wording('take back the last change'));
  },
  status: look,
};

function settingsPath({ options, env, home, cwd }: HooksContext): string {
  const named = options['settings'];
  if (named !== undefined) return resolve(cwd, named);
  const root = claudeHomes(env, home)[0]?.root ?? join(home, '.claude');
  return join(root, 'settings.json');
}

function commandFor(context: HooksContext): string {
  const { shell } = claudeShell(context);
  return commandLine(shell, context.platform, context.program, ['hook', '--agent', 'claude']);
}

const eventsFor = (programs: readonly { readonly version?: string }[]): ClaudeEvents =>
  claudeEvents(programs.map((one) => one.version));

const wording = (does: string): Wording => ({
  does,
  invalid: 'Claude Code ignores the whole file, with every setting in it, until that is mended',
});

function planWith(
  context: HooksContext,
  deed: 'install' | 'remove',
  wiring: Wiring,
  events: ClaudeEvents,
  versions: readonly string[],
): HooksPlan {
  const { editor } = context;
  const path = settingsPath(context);
  const turned = turn(
    editor,
    editor[deed](path, wiring),
    wording(deed === 'install' ? 'add or renew hooks' : 'remove hooks'),
  );
  if (turned.kind === 'refused') return turned;
  const data = dataAt(context, path);
  const unfit = deed === 'install' ? misfit(path, data, wiring) : undefined;
  if (unfit) return unfit;
  const notes = [
    ...notesOn(data, { isCustomised }),
    ...(deed === 'install' ? [...installNotes(data, events), ...versions, ...homeNotes(context)] : []),
  ];
  if (turned.kind === 'nothing') return { kind: 'nothing', files: [path], notes };
  const afterwards = ['Sessions that run take it up by themselves.'];
  return { kind: 'changes', changes: [turned.change], notes, afterwards };
}

/** What the file says; nothing where it cannot be read, which the plan has told already. */
function dataAt({ editor }: HooksContext, path: string): Data {
  const read = editor.read(path, 'json');
  return read.kind === 'data' ? read.data : {};
}

function installNotes(data: Data, events: ClaudeEvents): readonly string[] {
  return [
    ...shapeNotes(misshapen(data, events.install), events.install.length),
    ...(isOff(data) ? ['No hook runs at all: "disableAllHooks" is true in this file.'] : []),
  ];
}

/** Claude Code runs no hook of any file then. */
const isOff = (data: Data): boolean => lookup(data, ['disableAllHooks']) === true;

function versionNotes(programs: readonly { readonly version?: string }[]): readonly string[] {
  const { install } = eventsFor(programs);
  if (install.length === claudeEvents([NEWEST]).install.length) return [];
  const told = programs.map((one) => one.version ?? 'unknown').join(', ') || 'unknown';
  return [
    `Only the ${install.length} hooks that every version knows (version ${told}): Claude Code warns at every start of one that it does not know.`,
  ];
}

async function look(context: HooksContext): Promise<HooksStatus> {
  const path = settingsPath(context);
  const programs = await context.programs(ID);
  const present = programs.length > 0 || existsSync(join(path, '..'));
  const read = context.editor.read(path, 'json');
  const base = { present, files: [path], trusted: 'unneeded', commands: [] } as const;
  if (read.kind === 'refused') {
    return { ...base, installed: 'no', notes: [refusal(read, wording('')).message] };
  }
  const { data } = read;
  const events = eventsFor(programs);
  const wiring = claudeWiring(commandFor(context), events);
  const held = eventsIn(data).filter((event) => oursIn(data, event).length > 0);
  const missing = events.install.filter((event) => !held.includes(event));
  const stale = allPlaces(data).filter(
    ({ event, command }) =>
      oursIn(data, event).some((one) => one.command === command) && command !== commandFor(context),
  );
  const unknown = held.filter((event) => events.unknown.includes(event));
  const complete = missing.length === 0 && wiring.install(data).length === 0;
  return {
    ...base,
    installed: held.length === 0 ? 'no' : complete ? 'yes' : 'partly',
    trusted: isOff(data) ? 'no' : 'unneeded',
    notes: [
      ...(held.length > 0 && missing.length > 0 ? [`Missing: ${missing.join(', ')}.`] : []),
      ...(stale.length > 0
        ? [`${stale.length} of them start another program than this one: ${stale[0]?.command}`]
        : []),
      ...(unknown.length > 0
        ? [`This version does not know ${unknown.join(', ')}, and warns at every start.`]
        : []),
      ...notesOn(data, { isCustomised }),
      ...installNotes(data, events),
      ...(held.length > 0 ? versionNotes(programs) : []),
    ],
    commands: commandsOf(context, data),
  };
}

function commandsOf(context: HooksContext, data: Data): readonly InstalledCommand[] {
  const ours = eventsIn(data).flatMap((event) => oursIn(data, event).map((place) => place.command));
  const { argv } = claudeShell(context);
  return [...new Set(ours)].map((command) => ({ command, argv: [...argv, command], agent: 'claude' }));
}
