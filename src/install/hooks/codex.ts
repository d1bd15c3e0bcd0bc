import { existsSync, realpathSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { codexHome } from '../../adapters/codex/homes.ts';
import { type HookTrust, openHookTrust } from '../../adapters/codex/hook-trust.ts';
import type { Data } from '../edit/data.ts';
import { CODEX_EVENTS, codexWiring, oursIn, shiftedEvents } from './codex-wiring.ts';
import { allPlaces, eventsIn, misshapen } from './groups.ts';
import type {
  Certainty,
  Consent,
  ConsentOutcome,
  HooksContext,
  HooksPlan,
  HooksStatus,
  InstalledCommand,
  Integration,
} from './integration.ts';
import { whose } from './marker.ts';
import { counted, homeNotes, notesOn, shapeNotes } from './notes.ts';
import { planUndoOf, refusal, turn, type Wording } from './proposal.ts';
import { commandLine } from './shell.ts';

const ID = 'codex';

/** S-825. */
const BY_HAND = [
  'Codex runs no hook that it was not told to trust, and says nothing about it.',
  'Start codex, enter /hooks, and trust them; the same holds for its desktop app and extension.',
];

/** Codex's `hooks.json`, or `[hooks]` in `config.toml` where its user keeps them there (S-820 … S-825, R-23). */
export const codex: Integration = {
  id: ID,
  label: 'Codex CLI',
  aliases: [],
  options: [
    {
      name: 'codex-home',
      description: 'Codex: another home than $CODEX_HOME or ~/.codex',
      valueHint: 'path',
    },
  ],
  planInstall: planInstall,
  planUninstall: planUninstall,
  async planUndo(context) {
    const paths = filesOf(context).map((file) => file.path);
    return planUndoOf(context.editor, paths, wording(context, 'take back the last change'));
  },
  status: look,
};

interface HooksFile {
  readonly path: string;
  readonly format: 'json' | 'toml';
}

function rootOf(context: HooksContext): string {
  const named = context.options['codex-home'];
  return named === undefined ? codexHome(context).root : resolve(context.cwd, named);
}

function filesOf(context: HooksContext): readonly [HooksFile, HooksFile] {
  const root = rootOf(context);
  return [
    { path: join(root, 'hooks.json'), format: 'json' },
    { path: join(root, 'config.toml'), format: 'toml' },
  ];
}

/** Codex hands the line to `$SHELL -c`, on Windows to `cmd /c`. */
const commandFor = ({ platform, program }: HooksContext): string =>
  commandLine(platform === 'win32' ? 'cmd' : 'bash', platform, program, ['hook', '--agent', 'codex']);

function wording(context: HooksContext, does: string): Wording {
  return { does, invalid: `Codex ignores every hook in it until that is mended (${rootOf(context)})` };
}

interface Read {
  readonly file: HooksFile;
  readonly data: Data;
  readonly ours: number;
  readonly others: number;
}

function readFile(context: HooksContext, file: HooksFile): Read {
  const read = context.editor.read(file.path, file.format);
  const data = read.kind === 'data' ? read.data : {};
  const places = allPlaces(data);
  const ours = places.filter(({ command }) => whose(command).kind === 'ours').length;
  return { file, data, ours, others: places.length - ours };
}

/** Where ours stand already, else where the user's stand, else `hooks.json`. */
function chosen(files: readonly Read[], json: HooksFile): HooksFile {
  const found = files.find((one) => one.ours > 0) ?? files.find((one) => one.others > 0);
  return found?.file ?? json;
}

async function planInstall(context: HooksContext): Promise<HooksPlan> {
  const root = rootOf(context);
  const isNamed = context.options['codex-home'] !== undefined;
  if (!isNamed && !existsSync(root) && (await context.programs(ID)).length === 0) {
    return { kind: 'absent', message: `Codex is not on this computer: no program, and no folder ${root}.` };
  }
  const [json, toml] = filesOf(context);
  const reads = [json, toml].map((file) => readFile(context, file));
  const file = chosen(reads, json);
  const wiring = codexWiring(commandFor(context), file.format);
  const turned = turn(
    context.editor,
    context.editor.install(file.path, wiring),
    wording(context, 'add or renew hooks'),
  );
  if (turned.kind === 'refused') return turned;
  const { data } = readFile(context, file);
  const notes = [
    ...notesOn(data, { isCustomised: (command) => whose(command).kind === 'customised' }),
    ...shapeNotes(misshapen(data, CODEX_EVENTS), CODEX_EVENTS.length),
    ...twoFiles(reads, file),
    ...homeNotes(context),
  ];
  const consent = consentFor(context, file.path);
  if (turned.kind === 'change') {
    return { kind: 'changes', changes: [turned.change], notes, afterwards: [], consent };
  }
  const asked = context.options[consent.flag] !== undefined;
  return { kind: 'nothing', files: [file.path], notes, ...(asked ? { consent } : {}) };
}

function twoFiles(reads: readonly Read[], file: HooksFile): readonly string[] {
  const elsewhere = reads.filter((one) => one.file !== file && one.others + one.ours > 0);
  if (elsewhere.length === 0) return [];
  return [
    `Codex warns in every session while hooks stand in both files: ${elsewhere[0]?.file.path} has some too.`,
  ];
}

async function planUninstall(context: HooksContext): Promise<HooksPlan> {
  const files = filesOf(context);
  const parts = files.map((file) => {
    const { data, ours } = readFile(context, file);
    const wiring = codexWiring(commandFor(context), file.format);
    const turned = turn(
      context.editor,
      context.editor.remove(file.path, wiring),
      wording(context, 'remove hooks'),
    );
    const isCustomised = (command: string) => whose(command).kind === 'customised';
    return { turned, ours, shifted: shiftedEvents(data), notes: notesOn(data, { isCustomised }) };
  });
  const refused = parts.map((part) => part.turned).find((turned) => turned.kind === 'refused');
  if (refused?.kind === 'refused') return refused;
  const changes = parts.flatMap(({ turned }) => (turned.kind === 'change' ? [turned.change] : []));
  const notes = parts.flatMap((part) => part.notes);
  if (changes.length === 0) return { kind: 'nothing', files: files.map((file) => file.path), notes };
  const shifted = parts.flatMap((part) => part.shifted);
  const afterwards =
    shifted.length === 0
      ? ['What Codex trusts of your other hooks stands.']
      : [
          `A hook of yours moves up in ${shifted.join(', ')}: Codex will not run it until you trust it again (/hooks).`,
        ];
  return { kind: 'changes', changes, notes, afterwards };
}

function consentFor(context: HooksContext, path: string): Consent {
  return {
    flag: 'trust-codex',
    question: 'Codex runs only hooks that you trust. Tell Codex that you trust those of shadowob-connector?',
    declined: BY_HAND,
    give: () => trustOurs(context, path),
  };
}

/** Codex is the only authority on its hashes (T3): it says them, and it writes them. */
async function trustOurs(context: HooksContext, path: string): Promise<ConsentOutcome> {
  const trust = await openTrust(context);
  if (typeof trust === 'string') return { kind: 'failed', message: trust, byHand: BY_HAND };
  try {
    const listed = await trust.list();
    if (typeof listed === 'string') return { kind: 'failed', message: listed, byHand: BY_HAND };
    const ours = listed.filter((hook) => isOurs(context, hook, path));
    if (ours.length === 0)
      return { kind: 'failed', message: `Codex does not list our hooks of ${path}`, byHand: BY_HAND };
    const open = ours.filter((hook) => hook.trust !== 'trusted' && hook.trust !== 'managed');
    const problem = open.length === 0 ? undefined : await trust.trust(open);
    if (problem !== undefined) return { kind: 'failed', message: problem, byHand: BY_HAND };
    const after = await trust.list();
    const left =
      typeof after === 'string'
        ? ours
        : after.filter(
            (hook) => isOurs(context, hook, path) && hook.trust !== 'trusted' && hook.trust !== 'managed',
          );
    if (left.length > 0)
      return {
        kind: 'failed',
        message: `Codex did not take ${counted(left.length, 'hook')}`,
        byHand: BY_HAND,
      };
    return { kind: 'given', message: `Codex trusts all ${ours.length} hooks of ours.` };
  } finally {
    await trust.close();
  }
}

async function openTrust(context: HooksContext): Promise<HookTrust | string> {
  const [program] = await context.programs(ID);
  if (program === undefined) return 'Codex itself was not found, and only it can say what it trusts';
  return openHookTrust({
    program: program.path,
    env: { ...program.env, CODEX_HOME: rootOf(context) },
    cwd: rootOf(context),
  });
}

function isOurs(
  context: HooksContext,
  hook: { readonly command: string; readonly sourcePath: string },
  path: string,
): boolean {
  return hook.command === commandFor(context) && samePath(hook.sourcePath, path);
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // Not there: the name itself is all there is to compare.
    return path;
  }
}

/** Codex names files by their real path. */
function samePath(a: string, b: string): boolean {
  return realPath(a) === realPath(b);
}

async function look(context: HooksContext): Promise<HooksStatus> {
  const [json, toml] = filesOf(context);
  const reads = [json, toml].map((file) => readFile(context, file));
  const file = chosen(reads, json);
  const programs = await context.programs(ID);
  const present = programs.length > 0 || existsSync(rootOf(context));
  const read = context.editor.read(file.path, file.format);
  const base = { present, files: [file.path], commands: [] };
  if (read.kind === 'refused') {
    const { message } = refusal(read, wording(context, ''));
    return { ...base, installed: 'no', trusted: 'no', notes: [message] };
  }
  const { data } = read;
  const held = eventsIn(data).filter((event) => oursIn(data, event).length > 0);
  const missing = CODEX_EVENTS.filter((event) => !held.includes(event));
  const complete =
    codexWiring(commandFor(context), file.format).install(data).length === 0 && missing.length === 0;
  const installed: Certainty = held.length === 0 ? 'no' : complete ? 'yes' : 'partly';
  const trusted = installed === 'no' ? NOT_TRUSTED : await trustOf(context, file.path);
  const stale = held
    .flatMap((event) => oursIn(data, event))
    .filter((one) => one.command !== commandFor(context));
  return {
    ...base,
    installed,
    trusted: trusted.certainty,
    notes: [
      ...(held.length > 0 && missing.length > 0 ? [`Missing: ${missing.join(', ')}.`] : []),
      ...(stale.length > 0
        ? [`${stale.length} of them start another program than this one: ${stale[0]?.command}`]
        : []),
      ...trusted.notes,
      ...notesOn(data, { isCustomised: (command) => whose(command).kind === 'customised' }),
      ...twoFiles(reads, file),
    ],
    commands: commandsOf(context, data),
  };
}

interface TrustSeen {
  readonly certainty: Certainty;
  readonly notes: readonly string[];
}

const NOT_TRUSTED: TrustSeen = { certainty: 'no', notes: [] };

/** What Codex says of all entries of ours in the file; its own words where it warns. */
async function trustOf(context: HooksContext, path: string): Promise<TrustSeen> {
  const trust = await openTrust(context);
  if (typeof trust === 'string') return { certainty: 'unknown', notes: [`Trust is not known: ${trust}.`] };
  try {
    const listed = await trust.list();
    if (typeof listed === 'string')
      return { certainty: 'unknown', notes: [`Trust is not known: ${listed}.`] };
    const ours = listed.filter(
      (hook) => whose(hook.command).kind === 'ours' && samePath(hook.sourcePath, path),
    );
    const runs = ours.filter(
      (hook) => hook.enabled && (hook.trust === 'trusted' || hook.trust === 'managed'),
    );
    const off = ours.filter((hook) => !hook.enabled).length;
    const notes = [
      ...(ours.length === 0 ? ['Codex does not list them: it may be too old, or reject the file.'] : []),
      ...(off > 0 ? [`${counted(off, 'hook')} of ours switched off in Codex.`] : []),
      ...(runs.length < ours.length ? BY_HAND : []),
    ];
    const certainty = runs.length === 0 ? 'no' : runs.length < ours.length ? 'partly' : 'yes';
    return { certainty, notes };
  } finally {
    await trust.close();
  }
}

function commandsOf(context: HooksContext, data: Data): readonly InstalledCommand[] {
  const ours = eventsIn(data).flatMap((event) => oursIn(data, event).map((place) => place.command));
  const shell =
    context.platform === 'win32'
      ? [context.env['ComSpec'] ?? context.env['COMSPEC'] ?? 'cmd.exe', '/d', '/c']
      : [context.env['SHELL'] || '/bin/sh', '-c'];
  return [...new Set(ours)].map((command) => ({ command, argv: [...shell, command], agent: 'codex' }));
}
