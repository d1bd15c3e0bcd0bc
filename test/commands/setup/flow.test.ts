import { describe, expect, test } from 'bun:test';
import { detectStyle } from '../../../src/commands/output/style.ts';
import { answerOf } from '../../../src/commands/setup/answer.ts';
import { type Mode, walk } from '../../../src/commands/setup/flow.ts';
import type { Deed, Finding, Question, Reply, Step, Talk } from '../../../src/commands/setup/step.ts';
import { modeOf } from '../../../src/commands/setup.ts';
import { ConnectorError, EXIT } from '../../../src/runtime/errors.ts';

const STYLE = detectStyle({}, {}, 'linux');

/** A person who says these words in this order. */
function person(...replies: Reply[]) {
  const asked: Question[] = [];
  const said: string[] = [];
  const talk: Talk = {
    say: (text) => void said.push(text),
    async ask(question) {
      asked.push(question);
      return replies[asked.length - 1] ?? 'stop';
    },
    close() {},
  };
  return { talk, asked, said };
}

/** A step that offers itself, and counts how often it was done. */
function offer(id: string, fallback: boolean, deed?: () => Promise<Deed>) {
  const state = { done: 0 };
  const step: Step = {
    id,
    title: `the ${id}`,
    command: `do ${id}`,
    undo: `undo ${id}`,
    look: async (): Promise<Finding> => ({
      kind: 'offer',
      question: { text: `Do ${id}?`, reason: 'It is good.', fallback, diff: `+${id}` },
      async accept() {
        state.done += 1;
        return deed ? deed() : { result: 'done', says: [`${id} was done`] };
      },
    }),
  };
  return { step, state };
}

const found = (id: string, finding: Finding): Step => ({
  id,
  title: id,
  command: id,
  look: async () => finding,
});

const go = (steps: readonly Step[], mode: Mode, talk: Talk, signal = new AbortController().signal) =>
  walk(steps, { mode, talk, signal });

describe('the steps of setup', () => {
  test('what is so already is said and not asked, and what concerns nobody is not mentioned', async () => {
    const { talk, asked, said } = person();
    const steps = [
      found('there', { kind: 'already', says: ['/a file'] }),
      found('elsewhere', { kind: 'none' }),
    ];
    const walked = await go(steps, 'ask', talk);
    expect(asked).toEqual([]);
    expect(walked.steps.map(({ step, result }) => [step.id, result])).toEqual([['there', 'already']]);
    expect(said.join('\n')).toContain('already so');
  });

  test('a yes is done, a no is named with the command for later', async () => {
    const [a, b] = [offer('a', false), offer('b', true)];
    const { talk, said } = person('yes', 'no');
    const walked = await go([a.step, b.step], 'ask', talk);
    expect([a.state.done, b.state.done]).toEqual([1, 0]);
    expect(walked.steps.map(({ result }) => result)).toEqual(['done', 'declined']);
    expect(said.at(-1)).toContain('shadowob-connector do b');
  });

  test('--yes takes each default and asks nothing; --dry-run does nothing at all', async () => {
    const [a, b] = [offer('a', true), offer('b', false)];
    const { talk, asked } = person();
    const yes = await go([a.step, b.step], 'defaults', talk);
    expect([yes.steps.map(({ result }) => result), a.state.done, b.state.done]).toEqual([
      ['done', 'declined'],
      1,
      0,
    ]);
    const dry = await go([a.step, b.step], 'dryRun', talk);
    expect([dry.steps.map(({ result }) => result), a.state.done, b.state.done, asked]).toEqual([
      ['offered', 'offered'],
      1,
      0,
      [],
    ]);
  });

  test('one that fails, or breaks, or is refused, stops no other, and the first is the exit code', async () => {
    const failing = offer('a', true, async () => ({ result: 'failed', says: ['no'], problem: 'daemon' }));
    const breaking = offer('b', true, async () => {
      throw new ConnectorError('refused', 'it would not', 'try c');
    });
    const refused = found('c', { kind: 'refused', says: ['mend it'], problem: 'configRefused' });
    const blind: Step = { ...refused, id: 'd', look: () => Promise.reject(new Error('a defect')) };
    const last = offer('e', true);
    const walked = await go(
      [failing.step, breaking.step, refused, blind, last.step],
      'defaults',
      person().talk,
    );
    expect(walked.steps.map(({ result, problem, says }) => [result, problem, says[0]])).toEqual([
      ['failed', 'daemon', 'no'],
      ['failed', 'refused', 'it would not'],
      ['refused', 'configRefused', 'mend it'],
      ['refused', 'unexpected', 'a defect'],
      ['done', undefined, 'e was done'],
    ]);
    const nothing = { runtimes: [], editors: [] };
    const answer = answerOf({ mode: 'defaults', found: nothing, walked, proof: undefined });
    expect(answer).toMatchObject({ kind: 'document', exitCode: EXIT.daemon });
  });

  test('Ctrl-C at a question leaves what was done, and says it with the way back', async () => {
    const [a, b, c] = [offer('a', true), offer('b', true), offer('c', true)];
    const walked = await go([a.step, b.step, c.step], 'ask', person('yes', 'stop').talk);
    expect([walked.stopped, a.state.done, b.state.done, c.state.done]).toEqual([true, 1, 0, 0]);
    const nothing = { runtimes: [], editors: [] };
    const answer = answerOf({ mode: 'ask', found: nothing, walked, proof: undefined });
    if (answer.kind !== 'document') throw new Error('no document');
    expect(answer).toMatchObject({ interrupted: true, data: { stopped: true, proof: null } });
    expect(answer.text(STYLE)).toBe(
      'Stopped. What was done stays done.\n\nDone\n  The a\n\nTo take it back\n  shadowob-connector undo a',
    );
  });

  test('a signal while something is done lets it end, and nothing after it begins', async () => {
    const stop = new AbortController();
    const a = offer('a', true, async () => {
      stop.abort();
      return { result: 'done', says: [] };
    });
    const b = offer('b', true);
    const walked = await go([a.step, b.step], 'defaults', person().talk, stop.signal);
    expect([walked.stopped, walked.steps.length, b.state.done]).toEqual([true, 1, 0]);
  });

  test('a later step sees what became of the earlier ones', async () => {
    const seen: (string | undefined)[] = [];
    const watcher: Step = {
      ...found('w', { kind: 'none' }),
      async look(sofar) {
        seen.push(sofar.get('a'), sofar.get('b'));
        return { kind: 'none' };
      },
    };
    await go([offer('a', true).step, offer('b', false).step, watcher], 'defaults', person().talk);
    expect(seen).toEqual(['done', 'declined']);
  });
});

describe('who decides', () => {
  test('a person on a terminal; --yes and --dry-run nobody, wherever they run', () => {
    expect([
      modeOf({}, true),
      modeOf({ yes: true }, false),
      modeOf({ 'dry-run': true, yes: true }, false),
    ]).toEqual(['ask', 'defaults', 'dryRun']);
  });

  test('without a terminal, and under --json, it refuses to guess', () => {
    expect(() => modeOf({}, false)).toThrow('there is no terminal; nothing was changed');
    expect(() => modeOf({ json: true }, true)).toThrow('--json leaves no room for that');
    expect(modeOf({ json: true, yes: true }, false)).toBe('defaults');
  });
});
