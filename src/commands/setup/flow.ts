import { ConnectorError, reasonOf } from '../../runtime/errors.ts';
import type { Finding, Result, Step, StepDone, Talk } from './step.ts';

/** Who decides: a person, the defaults, or nobody, since nothing is to be changed. */
export type Mode = 'ask' | 'defaults' | 'dryRun';

export interface Flow {
  readonly mode: Mode;
  readonly talk: Talk;
  /** Aborted by SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
}

/** All steps that were reached; `stopped` where its user ended it before the last. */
export interface Walked {
  readonly steps: readonly StepDone[];
  readonly stopped: boolean;
}

/**
 * Goes through the steps in order. One that fails stops no other; a stop leaves what was done. Each looks only when
 * its turn comes, since an earlier one may have changed what it finds.
 */
export async function walk(steps: readonly Step[], flow: Flow): Promise<Walked> {
  const done: StepDone[] = [];
  for (const step of steps) {
    if (flow.signal.aborted) return { steps: done, stopped: true };
    const sofar = new Map(done.map((one): [string, Result] => [one.step.id, one.result]));
    const taken = await take(step, await find(step, sofar), flow);
    if (taken === 'stop') return { steps: done, stopped: true };
    if (taken === 'none') continue;
    done.push(taken);
    if (flow.mode === 'ask') flow.talk.say(lineOf(taken));
  }
  return { steps: done, stopped: flow.signal.aborted };
}

async function find(step: Step, sofar: ReadonlyMap<string, Result>): Promise<Finding> {
  try {
    return await step.look(sofar);
  } catch (thrown) {
    // It is told as the step's own problem: what was done before it must still be told.
    return { kind: 'refused', ...problemOf(thrown) };
  }
}

function problemOf(thrown: unknown): Pick<Extract<Finding, { kind: 'refused' }>, 'says' | 'problem'> {
  if (!(thrown instanceof ConnectorError)) return { says: [reasonOf(thrown)], problem: 'unexpected' };
  return {
    says: [thrown.message, ...(thrown.next === undefined ? [] : [thrown.next])],
    problem: thrown.kind,
  };
}

async function take(step: Step, finding: Finding, flow: Flow): Promise<StepDone | 'none' | 'stop'> {
  switch (finding.kind) {
    case 'none':
      return 'none';
    case 'already':
      return { step, result: 'already', says: finding.says };
    case 'refused':
      return { step, result: 'refused', says: finding.says, problem: finding.problem };
    case 'offer':
      return decide(step, finding, flow);
  }
}

async function decide(
  step: Step,
  offer: Extract<Finding, { kind: 'offer' }>,
  flow: Flow,
): Promise<StepDone | 'stop'> {
  const { question } = offer;
  if (flow.mode === 'dryRun') return { step, result: 'offered', says: [], question };
  const byDefault = question.fallback ? 'yes' : 'no';
  const reply = flow.mode === 'defaults' ? byDefault : await flow.talk.ask(question);
  if (reply === 'stop') return 'stop';
  if (reply === 'no') return { step, result: 'declined', says: offer.declined ?? [], question };
  try {
    return { step, question, ...(await offer.accept()) };
  } catch (thrown) {
    // The same: a step that breaks is told with the others.
    return { step, question, result: 'failed', ...problemOf(thrown) };
  }
}

/** What a person reads of a step right after it. */
function lineOf({ step, result, says }: StepDone): string {
  const more = says.map((sentence) => `\n    ${sentence}`).join('');
  switch (result) {
    case 'already':
      return `  ${capital(step.title)}: already so.${more}`;
    case 'done':
      return `  Done: ${step.title}.${more}`;
    case 'declined':
      return `  Left out. For later: shadowob-connector ${step.command}`;
    default:
      return `  Not done: ${step.title}.${more}`;
  }
}

/** Titles are written as they stand inside of a sentence. */
export const capital = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);
