import { describe, expect, test } from 'bun:test';
import { readStreamLine } from '../../../../src/adapters/claude-code/control/stream.ts';
import { createTurnReader } from '../../../../src/adapters/claude-code/control/turn.ts';
import { type Exit, recordedEvents, replayTurn } from './replay.ts';

type End = { outcome: string; text?: string; error?: unknown; notes?: readonly string[]; exitCode?: number };

const ENDS: readonly [scenario: string, end: End, exit?: Exit][] = [
  ['h-simple', { outcome: 'completed', text: 'Hello! The app adds numbers.' }],
  ['h-simple@2.1.197', { outcome: 'completed', text: 'Hello! The app adds numbers.' }],
  ['h-tool-approved', { outcome: 'completed', text: 'There is one file, add.js.' }],
  ['h-parallel-tools', { outcome: 'completed', text: 'All done.' }],
  ['h-slow-stream', { outcome: 'completed', text: 'Done.' }],
  ['h-slow-stream@2.1.197', { outcome: 'completed', text: 'Done.' }],
  ['k-stop-hook-continues', { outcome: 'completed', text: 'Tests run, now done.' }],
  [
    'h-tool-denied',
    {
      outcome: 'completed',
      text: 'I could not write the file.',
      notes: ['1 tool call was refused: Write'],
    },
  ],
  [
    'h-tool-denied@2.1.197',
    {
      outcome: 'completed',
      text: 'I could not write the file.',
      notes: ['1 tool call was refused: Write'],
    },
  ],
  [
    's-no-prompt-tool',
    { outcome: 'completed', text: 'Was denied.', notes: ['1 tool call was refused: Bash'] },
  ],
  [
    's-can-use-tool',
    { outcome: 'completed', text: 'Done, one denied.', notes: ['1 tool call was refused: Bash'] },
  ],
  [
    's-can-use-tool@2.1.197',
    { outcome: 'completed', text: 'Done, one denied.', notes: ['1 tool call was refused: Bash'] },
  ],
  [
    'k-hook-blocks-tool',
    { outcome: 'completed', text: 'A hook blocked it.', notes: ['1 tool call was refused: Bash'] },
  ],
  ['s-ask-user', { outcome: 'completed', text: 'Chosen.' }],
  ['s-eof-midturn', { outcome: 'completed', text: 'Finished after EOF.' }],
  ['s-interrupt', { outcome: 'stopped' }],
  ['h-api-error-400', { outcome: 'failed', error: 'API Error: 400 messages: mock bad request' }],
  ['h-api-error-400@2.1.197', { outcome: 'failed', error: 'API Error: 400 messages: mock bad request' }],
  ['h-api-error-401', { outcome: 'failed', error: expect.stringContaining('Invalid API key') }],
  ['h-api-error-529', { outcome: 'failed', error: expect.stringContaining('529 Overloaded') }],
  ['h-api-error-529@2.1.197', { outcome: 'failed', error: expect.stringContaining('529 Overloaded') }],
  ['h-refusal', { outcome: 'failed', error: expect.stringContaining('safeguards flagged') }],
  ['h-max-tokens', { outcome: 'limited', error: expect.stringContaining('output token maximum') }],
  ['h-max-tokens@2.1.197', { outcome: 'limited', error: expect.stringContaining('output token maximum') }],
  ['h-signal-sigint', { outcome: 'stopped' }],
  ['h-signal-sigint@2.1.197', { outcome: 'stopped' }],
  ['h-signal-sigterm', { outcome: 'stopped', exitCode: 143 }, { code: 143, signal: null }],
  ['h-signal-sighup', { outcome: 'stopped', exitCode: 129 }, { code: 129, signal: null }],
  ['h-signal-sigkill', { outcome: 'stopped' }, { code: null, signal: 'SIGKILL' }],
];

describe('a turn’s end, replayed from recordings (M6: neither an exit code nor the word success decides)', () => {
  for (const [scenario, end, exit] of ENDS) {
    test(`${scenario}: ${end.outcome}`, () => {
      const steps = replayTurn(scenario, exit ? { exit } : {});
      const last = steps.at(-1);
      const { notes, ...fields } = end;
      expect(last).toMatchObject({ kind: 'end', end: fields });
      expect(last?.kind === 'end' ? last.end.notes : []).toEqual(notes as never);
    });
  }
});

describe('acceptance is the program’s own word (M7)', () => {
  test('nothing comes before accepted, and accepted comes once', () => {
    for (const [scenario] of ENDS) {
      const kinds = replayTurn(scenario).map((step) => step.kind);
      expect([scenario, kinds[0], kinds.filter((kind) => kind === 'accepted').length]).toEqual([
        scenario,
        'accepted',
        1,
      ]);
    }
  });

  test('a message that is given back, or whose lifecycle begins, is accepted before the turn begins', () => {
    const uuid = '11111111-1111-4111-8111-111111111111';
    for (const scenario of ['s-two-turns', 's-two-turns@2.1.197']) {
      const steps = replayTurn(scenario, { uuid });
      expect(steps[0]).toEqual({ kind: 'accepted' });
      expect(steps.at(-1)).toMatchObject({
        kind: 'end',
        end: { outcome: 'completed', text: 'First reply.' },
      });
    }
    const reader = createTurnReader(uuid);
    const [queued] = recordedEvents('s-two-turns').filter((event) => event.kind === 'lifecycle');
    expect(queued && reader.read(queued)).toEqual([{ kind: 'accepted' }]);
  });

  test('s-bad-input: a program that ends at once has accepted nothing, and its words are the reason', () => {
    const reader = createTurnReader('x');
    expect(recordedEvents('s-bad-input').flatMap((event) => reader.read(event))).toEqual([]);
    const said = 'Error parsing streaming input line (type=unknown, 16 chars): SyntaxError\n';
    expect(reader.lost({ code: 1, signal: null }, said)).toEqual({
      kind: 'refused',
      reason: said.trim(),
      unknownSession: false,
    });
  });

  test('h-resume-continue-fork: an unknown id is refused before anything was accepted', () => {
    for (const scenario of ['h-resume-continue-fork', 'h-resume-continue-fork@2.1.197']) {
      const unknown = recordedEvents(scenario).find(
        (event) => event.kind === 'result' && event.result.unknownSession,
      );
      const [step] = unknown ? createTurnReader('x').read(unknown) : [];
      expect(step).toMatchObject({ kind: 'refused', unknownSession: true });
      expect(step?.kind === 'refused' && step.reason).toContain('No conversation found');
    }
  });
});

describe('progress', () => {
  test('h-tool-approved: the model’s words, the tool, the answer', () => {
    const steps = replayTurn('h-tool-approved').filter((step) => step.kind === 'progress');
    expect(steps.map((step) => step.tool ?? step.text ?? step.doing)).toEqual([
      'running',
      expect.any(String),
      'Bash',
      'running',
      'There is one file, add.js.',
    ]);
  });

  test('h-api-error-529: repeated requests are retrying, with their number', () => {
    const steps = replayTurn('h-api-error-529').filter((step) => step.kind === 'progress');
    expect(steps.filter((step) => step.doing === 'retrying').length).toBe(2);
    expect(steps.find((step) => step.doing === 'retrying')?.text).toMatch(/repeated \(1 of \d+\)/);
  });

  test('h-slow-stream: pieces of a reply are streaming', () => {
    const steps = replayTurn('h-slow-stream').filter((step) => step.kind === 'progress');
    expect(steps.some((step) => step.doing === 'streaming')).toBe(true);
  });

  test('s-interrupt: what comes after the end belongs to another turn', () => {
    const kinds = replayTurn('s-interrupt').map((step) => step.kind);
    expect(kinds.indexOf('end')).toBe(kinds.length - 1);
  });
});

describe('background work (R-08, design rule 5)', () => {
  const uuid = 'c0ffee00-0000-4000-8000-000000000001';
  const read = (lines: readonly object[]) => {
    const reader = createTurnReader(uuid);
    return lines.flatMap((line) =>
      (readStreamLine(JSON.stringify(line)) ?? []).flatMap((e) => reader.read(e)),
    );
  };
  const began = { type: 'command_lifecycle', command_uuid: uuid, state: 'started' };
  const tasks = (...types: string[]) => ({
    type: 'system',
    subtype: 'background_tasks_changed',
    tasks: types.map((task_type) => ({ task_type })),
  });
  // The forms of 2.1.332, as it wrote them beside a stand-in model.
  const result = (text: string, more: object = {}) => ({
    is_error: false,
    subtype: 'success',
    terminal_reason: 'completed',
    result: text,
    type: 'result',
    ...more,
  });
  const mine = { user_message_uuid: uuid, user_message_uuids: [uuid] };
  const own = { origin: { kind: 'task-notification' } };

  test('a turn is not done while its sub-agent works; the sub-agent’s report ends it', () => {
    const steps = read([
      began,
      tasks('local_agent'),
      result('Started it.', mine),
      tasks(),
      result('It is done.', own),
    ]);
    expect(steps.map((step) => step.kind)).toEqual(['accepted', 'note', 'end']);
    expect(steps.at(-1)).toMatchObject({ end: { outcome: 'completed', text: 'It is done.' } });
  });

  test('a background command does not hold the end back, and is told', () => {
    const steps = read([began, tasks('local_bash'), result('It runs.', mine)]);
    expect(steps.at(-1)).toEqual({
      kind: 'end',
      end: { outcome: 'completed', text: 'It runs.', notes: ['1 background command still runs'] },
    });
  });

  test('a turn that background work has started is not the message’s', () => {
    expect(read([result('An older task ended.', own)])).toEqual([]);
    const steps = read([began, result('An older task ended.', own), result('Mine.', mine)]);
    expect(steps.at(-1)).toMatchObject({ end: { text: 'Mine.' } });
  });

  test('a message that was withdrawn from the program’s queue is not accepted by that', () => {
    expect(read([{ type: 'command_lifecycle', command_uuid: uuid, state: 'cancelled' }])).toEqual([]);
  });
});
