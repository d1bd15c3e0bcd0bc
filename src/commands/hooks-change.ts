import type { Outcome } from '../install/edit/editor.ts';
import type {
  Consent,
  ConsentOutcome,
  HooksPlan,
  HooksRefusal,
  Integration,
  PlannedChange,
} from '../install/hooks/integration.ts';
import { ConnectorError, EXIT, type ExitName } from '../runtime/errors.ts';
import type { Answer } from './command.ts';
import { chosenIntegrations, daemonWarnings, hooksContext } from './hooks-world.ts';
import { askYesNo } from './output/ask.ts';
import { paint, type Style } from './output/style.ts';
import type { World } from './world.ts';

export type Deed = 'install' | 'uninstall' | 'undo';

type Words = Readonly<Record<string, unknown>>;

/** What became of one runtime. */
interface Done {
  readonly integration: Integration;
  readonly result: 'changed' | 'wouldChange' | 'unchanged' | 'absent' | 'refused' | 'failed';
  readonly files: readonly DoneFile[];
  readonly lines: readonly string[];
  readonly trust?: 'given' | 'notGiven' | 'failed';
  /** Why it was not done, or not wholly. */
  readonly problem?: { readonly kind: ExitName; readonly message: string };
}

/** A file that was changed, and where its former text is. */
export interface DoneFile {
  readonly path: string;
  readonly does: string;
  readonly diff?: string;
  readonly backup?: string;
}

/** Plans for every chosen runtime, then does it, unless it is only to be shown. One that fails stops no other. */
export async function changeHooks(world: World, args: Words, deed: Deed): Promise<Answer> {
  const { list, named } = chosenIntegrations(args);
  const context = hooksContext(world, args);
  const dryRun = args['dry-run'] === true;
  const done: Done[] = [];
  for (const integration of list) {
    const plan = await planOf(integration, context, deed);
    done.push(await carryOut(args, integration, plan, { dryRun, named }));
  }
  return answerOf(done, dryRun, await daemonWarnings(world));
}

/** Where nothing could be done the problem is the answer; else it stands beside what was done. */
function answerOf(done: readonly Done[], dryRun: boolean, warnings: readonly string[]): Answer {
  const answer = {
    kind: 'document',
    data: { dryRun, runtimes: done.map(dataOf) },
    text: (style: Style) => done.map((one) => textOf(one, style, dryRun)).join('\n\n'),
  } as const;
  const [first] = done.flatMap((one) => one.problem ?? []);
  if (first === undefined) return { ...answer, warnings };
  const isPartly = done.some(({ result }) => result === 'changed' || result === 'wouldChange');
  if (done.length > 1 || isPartly)
    return { ...answer, exitCode: EXIT[first.kind], warnings: [...warnings, first.message] };
  const next = done[0]?.lines.filter((line) => line !== first.message).join('\n');
  return { ...answer, warnings, failure: new ConnectorError(first.kind, first.message, next || undefined) };
}

async function planOf(
  integration: Integration,
  context: ReturnType<typeof hooksContext>,
  deed: Deed,
): Promise<HooksPlan> {
  if (deed === 'install') return integration.planInstall(context);
  if (deed === 'uninstall') return integration.planUninstall(context);
  // A file that is ours as a whole has no former text: only its removal takes it back, and that was not asked for.
  if (integration.planUndo === undefined) return { kind: 'nothing', files: [], notes: [NO_UNDO] };
  return integration.planUndo(context);
}

const NO_UNDO = 'No step of it can be taken back; uninstall-hooks removes what is ours.';

async function carryOut(
  args: Words,
  integration: Integration,
  plan: HooksPlan,
  how: { readonly dryRun: boolean; readonly named: boolean },
): Promise<Done> {
  if (plan.kind === 'absent') {
    const done = { integration, result: 'absent', files: [], lines: [plan.message] } as const;
    // Who names a runtime wants it; who names none wants what is there (S-820).
    return how.named ? { ...done, problem: { kind: 'runtimeMissing', message: plan.message } } : done;
  }
  if (plan.kind === 'refused') {
    return { integration, result: 'refused', files: [], ...saidOf(plan) };
  }
  if (plan.kind === 'nothing') {
    const files = plan.files.map((path) => ({ path, does: 'unchanged' }));
    const done: Done = { integration, result: 'unchanged', files, lines: plan.notes };
    return plan.consent && !how.dryRun ? withConsent(args, plan.consent, done) : done;
  }
  const left = plan.left && saidOf(plan.left);
  if (how.dryRun) {
    const files = plan.changes.map(({ path, does, diff }) => ({ path, does, diff }));
    const lines = [...plan.notes, ...(left?.lines ?? [])];
    return { integration, result: 'wouldChange', files, lines, ...(left ? { problem: left.problem } : {}) };
  }
  const committed = commitAll(plan.changes);
  const problem: Done['problem'] = committed.problem
    ? { kind: 'configRefused', message: committed.problem }
    : left?.problem;
  const done: Done = {
    integration,
    result: committed.problem ? 'failed' : 'changed',
    files: committed.files,
    lines: [
      ...plan.notes,
      ...(committed.problem ? [committed.problem] : plan.afterwards),
      ...(left?.lines ?? []),
    ],
    ...(problem ? { problem } : {}),
  };
  return plan.consent && !committed.problem ? withConsent(args, plan.consent, done) : done;
}

/** A refusal as it is told. */
function saidOf({ message, byHand }: HooksRefusal): Required<Pick<Done, 'lines' | 'problem'>> {
  return { lines: [message, ...byHand], problem: { kind: 'configRefused', message } };
}

/** Does the changes of a plan, in order; what follows a failed one is not done. `problem` is one sentence. */
export function commitAll(changes: readonly PlannedChange[]): {
  readonly files: readonly DoneFile[];
  readonly problem?: string;
} {
  const files: DoneFile[] = [];
  for (const change of changes) {
    const outcome = change.commit();
    const problem = problemOf(change.path, outcome);
    if (problem !== undefined) return { files, problem };
    const backup = 'backup' in outcome && outcome.backup !== undefined ? { backup: outcome.backup } : {};
    files.push({ path: change.path, does: change.does, diff: change.diff, ...backup });
  }
  return { files };
}

function problemOf(path: string, outcome: Outcome): string | undefined {
  switch (outcome.kind) {
    case 'written':
    case 'removed':
      return undefined;
    case 'conflict':
      return `${path} changed meanwhile; nothing was written. Try it again.`;
    case 'failed':
      return `${path} could not be written (${outcome.code}); it is as it was.`;
    case 'overwritten':
      return `${path} was written, and another program wrote it anew at once. Look with hooks-status.`;
    case 'restored':
      return `${path} could not be written whole; its former text is there again.`;
  }
}

/** A yes is a flag, or a person's word on a terminal; anything else is no. */
async function withConsent(args: Words, consent: Consent, done: Done): Promise<Done> {
  const isYes = args[consent.flag] === true || (args['json'] !== true && (await askYesNo(consent.question)));
  if (!isYes) {
    const how = `Or say yes to it: shadowob-connector install-hooks --${consent.flag}`;
    return { ...done, lines: [...done.lines, ...consent.declined, how], trust: 'notGiven' };
  }
  const outcome: ConsentOutcome = await consent.give();
  if (outcome.kind === 'given') return { ...done, lines: [...done.lines, outcome.message], trust: 'given' };
  const problem = { kind: 'refused', message: outcome.message } as const;
  return { ...done, lines: [...done.lines, outcome.message, ...outcome.byHand], trust: 'failed', problem };
}

function dataOf({ integration, result, files, lines, trust, problem }: Done): object {
  return {
    runtimeId: integration.id,
    result,
    files,
    notes: lines,
    ...(trust === undefined ? {} : { trust }),
    ...(problem === undefined ? {} : { error: problem }),
  };
}

const WORDS: Readonly<Record<Done['result'], string>> = {
  changed: 'done',
  wouldChange: 'would be changed',
  unchanged: 'nothing to do',
  absent: 'not here',
  refused: 'left as it is',
  failed: 'not done',
};

function textOf(done: Done, style: Style, dryRun: boolean): string {
  const head = `${paint(style, 'bold', done.integration.label)}  ${WORDS[done.result]}`;
  const files = done.files.flatMap(({ path, does, diff, backup }) => [
    `  ${path}: ${does}`,
    ...(dryRun && diff !== undefined ? [diff.trimEnd()] : []),
    ...(backup === undefined ? [] : [paint(style, 'dim', `  as it was before: ${backup}`)]),
  ]);
  return [head, ...files, ...done.lines.map((line) => `  ${line}`)].join('\n');
}
