import { EXIT } from '../../runtime/errors.ts';
import type { Answer } from '../command.ts';
import { paint, type Style } from '../output/style.ts';
import { capital, type Mode, type Walked } from './flow.ts';
import { type Found, foundText } from './found.ts';
import type { Proof } from './proof.ts';
import { holds, type StepDone } from './step.ts';

export interface Outcome {
  readonly mode: Mode;
  readonly found: Found;
  readonly walked: Walked;
  /** Absent where nothing was to be changed, or it was stopped. */
  readonly proof: Proof | undefined;
}

const PROGRAM = 'shadowob-connector';

/** What to do next, for who has never used it. */
const NEXT: readonly (readonly [string, string])[] = [
  [PROGRAM, 'every session, those that wait for you first'],
  [`${PROGRAM} runtime-watch`, 'the same as a panel that keeps itself up to date'],
  [`${PROGRAM} hooks-status`, 'whether the runtimes report, and since when'],
  [`${PROGRAM} config list`, 'what can be set: notifications, quiet hours, titles'],
];

/** The answer of `setup`. The first thing that did not work is the exit code; what worked is told beside it. */
export function answerOf(outcome: Outcome): Answer {
  const { mode, found, walked, proof } = outcome;
  const undo = undoOf(walked.steps);
  const problem = walked.steps.find((one) => one.problem !== undefined)?.problem ?? proof?.problem;
  return {
    kind: 'document',
    data: {
      dryRun: mode === 'dryRun',
      stopped: walked.stopped,
      found,
      steps: walked.steps.map(dataOf),
      proof: proof?.data ?? null,
      next: NEXT.map(([command]) => command),
      undo,
    },
    text: (style) => textOf(outcome, undo, style),
    warnings: proof?.warnings ?? [],
    exitCode: problem === undefined ? EXIT.ok : EXIT[problem],
    ...(walked.stopped ? { interrupted: true } : {}),
  };
}

/** Each command once, the last step first. */
function undoOf(steps: readonly StepDone[]): readonly string[] {
  const words = steps.flatMap(({ step, result }) => (holds(result) && step.undo ? [step.undo] : []));
  return [...new Set(words)].toReversed().map((word) => `${PROGRAM} ${word}`);
}

function dataOf({ step, result, says, question }: StepDone): object {
  return {
    id: step.id,
    result,
    says,
    ...(question === undefined ? {} : { question: question.text, default: question.fallback }),
    ...(result === 'offered' && question?.diff !== undefined ? { diff: question.diff } : {}),
    command: `${PROGRAM} ${step.command}`,
    undo: step.undo === undefined ? null : `${PROGRAM} ${step.undo}`,
  };
}

function textOf({ mode, found, walked, proof }: Outcome, undo: readonly string[], style: Style): string {
  const by = (wanted: StepDone['result']) => walked.steps.filter(({ result }) => result === wanted);
  // The same for what each step said.
  const brief = mode === 'ask' ? ({ step }: StepDone) => capital(step.title) : told;
  const failed = walked.steps.filter(({ problem }) => problem !== undefined);
  return [
    // Who was asked has read it before the first question.
    ...(mode === 'ask' ? [] : [foundText(found)]),
    ...(walked.stopped ? ['', paint(style, 'bold', 'Stopped. What was done stays done.')] : []),
    ...section(style, 'Done', by('done').map(brief)),
    ...section(style, 'Already so', by('already').map(brief)),
    ...section(style, 'Would be asked', by('offered').map(offered)),
    ...section(style, 'Left out', by('declined').map(later)),
    ...section(style, 'Not done', failed.map(told)),
    ...section(
      style,
      'Proof',
      (proof?.lines ?? []).map(([name, words]) => `${name}: ${words}`),
    ),
    ...(walked.stopped ? [] : section(style, 'Next', columns(NEXT))),
    ...section(style, 'To take it back', undo),
    ...(mode === 'dryRun'
      ? ['', `Nothing was changed. ${PROGRAM} setup asks; --yes takes the defaults.`]
      : []),
  ]
    .join('\n')
    .replace(/^\n+/, '');
}

function section(style: Style, head: string, entries: readonly string[]): readonly string[] {
  if (entries.length === 0) return [];
  return ['', paint(style, 'bold', head), ...entries.flatMap((entry) => entry.split('\n')).map(indent)];
}

const indent = (line: string): string => `  ${line}`;

const told = ({ step, says }: StepDone): string =>
  [capital(step.title), ...says.map((sentence) => indent(sentence))].join('\n');

const later = ({ step, says }: StepDone): string =>
  [`${capital(step.title)}: ${PROGRAM} ${step.command}`, ...says.map((one) => indent(one))].join('\n');

function offered({ step, question }: StepDone): string {
  const word = question?.fallback === true ? 'yes' : 'no';
  const diff =
    question?.diff === undefined ? [] : [indent(`The change: ${PROGRAM} ${step.command} --dry-run`)];
  return [
    `${question?.text ?? step.title} By default: ${word}`,
    indent(question?.reason ?? ''),
    ...diff,
  ].join('\n');
}

function columns(rows: readonly (readonly [string, string])[]): readonly string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `${left.padEnd(width)}  ${right}`);
}
