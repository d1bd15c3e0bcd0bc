import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { codexHome } from '../../adapters/codex/homes.ts';
import type { Data } from '../edit/data.ts';
import type { FileRefusal } from '../edit/editor.ts';
import { NOT_TRUSTED, TRUST_BY_HAND, trustOf, trustOurs } from './codex-trust.ts';
import { CODEX_EVENTS, codexWiring, oursIn, shiftedEvents } from './codex-wiring.ts';
import { allPlaces, eventsIn, misshapen } from './groups.ts';
import type {
  Certainty,
  Consent,
  HooksContext,
  HooksPlan,
  HooksRefusal,
  HooksStatus,
  InstalledCommand,
  Integration,
} from './integration.ts';
import { whose } from './marker.ts';
import { homeNotes, notesOn, shapeNotes } from './notes.ts';
import { misfit, planUndoOf, refusal, turn, type Wording } from './proposal.ts';
import { commandLine } from './shell.ts';

const ID = 'codex';

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
  /** Why it is not known what it holds. */
  readonly closed?: FileRefusal;
}

function readFile(context: HooksContext, file: HooksFile): Read {
  const read = context.editor.read(file.path, file.format);
  const data = read.kind === 'data' ? read.data : {};
  const places = allPlaces(data);
  const ours = places.filter(({ command }) => whose(command).kind === 'ours').length;
  const closed = read.kind === 'refused' ? { closed: read } : {};
  return { file, data, ours, others: places.length - ours, ...closed };
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
  const unknown = unknownPlace(context, reads, file);
  if (unknown) return unknown;
  const wiring = codexWiring(commandFor(context), file.format);
  const turned = turn(
    context.editor,
    context.editor.install(file.path, wiring),
    wording(context, 'add or renew hooks'),
  );
  if (turned.kind === 'refused') return turned;
  const { data } = readFile(context, file);
  const unfit = misfit(file.path, data, wiring);
  if (unfit) return unfit;
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

/** The user's hooks may stand in a file that can't be read; ours in the other one would draw warnings. */
function unknownPlace(
  context: HooksContext,
  reads: readonly Read[],
  file: HooksFile,
): HooksRefusal | undefined {
  const other = reads.find((one) => one.file !== file && one.closed !== undefined);
  const isEmpty = reads.every((one) => one.ours + one.others === 0);
  if (other?.closed === undefined || !isEmpty) return undefined;
  const { path, message } = refusal(other.closed, wording(context, ''));
  const byHand = ['Whether your hooks stand in it cannot be said. Mend it, and try again.'];
  return { kind: 'refused', path, message, byHand };
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
  const changes = parts.flatMap(({ turned }) => (turned.kind === 'change' ? [turned.change] : []));
  const left = refused?.kind === 'refused' ? refused : undefined;
  if (left && changes.length === 0) return left;
  const notes = parts.flatMap((part) => part.notes);
  if (changes.length === 0) return { kind: 'nothing', files: files.map((file) => file.path), notes };
  const shifted = parts.flatMap((part) => part.shifted);
  const afterwards =
    shifted.length === 0
      ? ['What Codex trusts of your other hooks stands.']
      : [
          `A hook of yours moves up in ${shifted.join(', ')}: Codex will not run it until you trust it again (/hooks).`,
        ];
  return { kind: 'changes', changes, notes, afterwards, ...(left ? { left } : {}) };
}

function consentFor(context: HooksContext, path: string): Consent {
  return {
    flag: 'trust-codex',
    question: 'Codex runs only hooks that you trust. Tell Codex that you trust those of shadowob-connector?',
    declined: TRUST_BY_HAND,
    give: () => trustOurs(context, { root: rootOf(context), path, command: commandFor(context) }),
  };
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
  const trusted =
    installed === 'no' ? NOT_TRUSTED : await trustOf(context, { root: rootOf(context), path: file.path });
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
      ...(trusted.notes.some((note) => note.includes('loading hooks from both'))
        ? []
        : twoFiles(reads, file)),
    ],
    commands: commandsOf(context, data),
  };
}

function commandsOf(context: HooksContext, data: Data): readonly InstalledCommand[] {
  const ours = eventsIn(data).flatMap((event) => oursIn(data, event).map((place) => place.command));
  const shell =
    context.platform === 'win32'
      ? [context.env['ComSpec'] ?? context.env['COMSPEC'] ?? 'cmd.exe', '/d', '/c']
      : [context.env['SHELL'] || '/bin/sh', '-c'];
  return [...new Set(ours)].map((command) => ({ command, argv: [...shell, command], agent: 'codex' }));
}
