import { describe, expect, test } from 'bun:test';
import { readRow } from '../../../src/adapters/claude-code/rows.ts';
import { applyRow, NO_TURN, type Turn } from '../../../src/adapters/claude-code/turn.ts';
import { publicState } from '../../../src/runtime/session/project.ts';

const at = (second: number): string => new Date(1_796_000_000_000 + second * 1_000).toISOString();
const ms = (second: number): number => 1_796_000_000_000 + second * 1_000;

const prompt = (second: number, text = 'Go', more: object = {}): object => ({
  type: 'user',
  message: { content: text },
  timestamp: at(second),
  ...more,
});
const reply = (
  second: number,
  stop: string | null,
  content: readonly object[] = [],
  more: object = {},
): object => ({
  type: 'assistant',
  message: { model: 'claude-opus-5-5', content, stop_reason: stop },
  timestamp: at(second),
  ...more,
});
const call = (id: string, name: string, input: object = {}): object => ({
  type: 'tool_use',
  id,
  name,
  input,
});
const result = (second: number, id: string, more: object = {}): object => ({
  type: 'user',
  message: { content: [{ type: 'tool_result', tool_use_id: id, content: 'ok' }] },
  timestamp: at(second),
  ...more,
});
const interrupt = (second: number): object => prompt(second, '[Request interrupted by user for tool use]');
const apiError = (second: number, error: string): object =>
  reply(second, 'stop_sequence', [{ type: 'text', text: 'API Error: 529 Overloaded' }], {
    isApiErrorMessage: true,
    error,
  });

function after(...rows: readonly object[]): Turn {
  return rows.reduce((turn: Turn, row) => {
    const read = readRow(row);
    return read ? applyRow(turn, read) : turn;
  }, NO_TURN);
}
const word = (...rows: readonly object[]): string => publicState(after(...rows).state);

describe('turn: rows to a state', () => {
  const bash = call('t1', 'Bash', { command: 'make -j' });
  const table: readonly [string, readonly object[], string][] = [
    ['no rows: unknown', [], 'unknown'],
    ['a prompt: running', [prompt(0)], 'running'],
    ['a call: the tool runs', [prompt(0), reply(1, 'tool_use', [bash])], 'tool_call'],
    [
      'C2 a call, then an interrupt: stopped',
      [prompt(0), reply(1, 'tool_use', [bash]), interrupt(2)],
      'stopped',
    ],
    [
      'C4 a side-chain ends its turn: the parent’s call still runs',
      [
        prompt(0),
        reply(1, 'tool_use', [call('t1', 'Task')]),
        reply(2, 'end_turn', [], { isSidechain: true }),
      ],
      'tool_call',
    ],
    ['C5 an API error: failed', [prompt(0), apiError(1, 'overloaded')], 'failed'],
    ['S2 a lost login: failed', [prompt(0), apiError(1, 'authentication_failed')], 'failed'],
    [
      'C6 a retry: running',
      [prompt(0), { type: 'system', subtype: 'api_error', timestamp: at(1) }],
      'running',
    ],
    [
      'C12 a question: blocked',
      [prompt(0), reply(1, 'tool_use', [call('t1', 'AskUserQuestion')])],
      'blocked',
    ],
    [
      'C13 a plan: for approval',
      [prompt(0), reply(1, 'tool_use', [call('t1', 'ExitPlanMode')])],
      'waiting_for_approval',
    ],
    ['a finished reply: completed', [prompt(0), reply(1, 'end_turn')], 'completed'],
    ['a refusal: failed', [prompt(0), reply(1, 'refusal')], 'failed'],
    ['R-17 an output limit: blocked', [prompt(0), reply(1, 'max_tokens')], 'blocked'],
    ['R-17 the limit’s error: blocked', [prompt(0), apiError(1, 'max_output_tokens')], 'blocked'],
    ['a paused reply: running', [prompt(0), reply(1, 'pause_turn')], 'running'],
    ['a next prompt opens the next turn', [prompt(0), reply(1, 'end_turn'), prompt(2)], 'running'],
    [
      'one of two results: the other call runs',
      [prompt(0), reply(1, 'tool_use', [bash, call('t2', 'Read')]), result(2, 't1')],
      'tool_call',
    ],
    ['all results: the model goes on', [prompt(0), reply(1, 'tool_use', [bash]), result(2, 't1')], 'running'],
    [
      'a question beside a running tool: blocked',
      [prompt(0), reply(1, 'tool_use', [call('q', 'AskUserQuestion'), bash])],
      'blocked',
    ],
    [
      'a question beside a finished tool: blocked',
      [prompt(0), reply(1, 'tool_use', [call('q', 'AskUserQuestion'), bash]), result(2, 't1')],
      'blocked',
    ],
  ];
  test.each(table)('%s', (_, rows, want) => {
    expect(word(...rows)).toBe(want);
  });

  test('parallel calls come as one row for each block', () => {
    const turn = after(
      prompt(0),
      reply(1, 'tool_use', [call('a', 'Bash')]),
      reply(1, 'tool_use', [call('b', 'Read')]),
    );
    expect(turn.pending.map((use) => use.id)).toEqual(['a', 'b']);
  });

  test('metadata never changes anything, however much of it comes last', () => {
    const base = [prompt(0), reply(1, 'end_turn')];
    const meta = [
      'mode',
      'last-prompt',
      'cost-state',
      'atis-latch',
      'brand-new',
      'queue-operation',
      'attachment',
    ];
    const rows = meta.map((type) => ({ type, timestamp: at(9), attachment: { type: 'queued_command' } }));
    expect(after(...base, ...rows)).toEqual(after(...base));
  });
});

describe('turn: when it began, ended and was answered', () => {
  test('the prompt opens, the reply ends', () => {
    expect(after(prompt(0), reply(3, 'end_turn')).turn).toEqual({
      openedAt: ms(0),
      endedAt: ms(3),
      end: 'completed',
    });
  });

  test('R-10 a result, an interrupt and a new prompt answer a wait; a reply does not', () => {
    const asked = [prompt(0), reply(1, 'tool_use', [call('t1', 'Bash')])];
    expect(after(...asked).answeredAt).toBe(ms(0));
    expect(after(...asked, result(5, 't1')).answeredAt).toBe(ms(5));
    expect(after(...asked, interrupt(6)).answeredAt).toBe(ms(6));
    expect(after(...asked, prompt(7)).answeredAt).toBe(ms(7));
    expect(after(...asked, reply(8, 'tool_use', [call('t2', 'Bash')])).answeredAt).toBe(ms(0));
  });

  test('R-08 news of background work goes on with the turn that started it', () => {
    const turn = after(
      prompt(0),
      reply(1, 'end_turn'),
      prompt(9, '<task-notification>\n<task-id>a</task-id>'),
    );
    expect(publicState(turn.state)).toBe('running');
    expect(turn.turn).toEqual({ openedAt: ms(0) });
  });

  test('a tail that begins in mid-turn is open at least since its first row', () => {
    expect(after(result(4, 't0'), reply(5, 'tool_use', [call('t1', 'Bash')])).turn).toEqual({
      openedAt: ms(4),
    });
  });

  test('work after an end without a prompt of its own is another turn', () => {
    const turn = after(prompt(0), reply(1, 'end_turn'), reply(8, 'tool_use', [call('t1', 'Bash')]));
    expect(turn.turn).toEqual({ openedAt: ms(8) });
  });

  test('R-17 a reply cut at the limit is provisional until it is followed up', () => {
    const cut = [prompt(0), reply(1, 'max_tokens')];
    expect(after(...cut).provisional).toBe(true);
    const note = prompt(2, 'Output token limit hit. Resume directly', { isMeta: true });
    expect(after(...cut, note)).toMatchObject({ provisional: false, turn: { openedAt: ms(0) } });
    expect(after(...cut, apiError(3, 'max_output_tokens')).provisional).toBe(false);
  });

  test('R-08 sub-agents that go on in the background are counted until the next turn', () => {
    const rows = [
      prompt(0),
      reply(1, 'end_turn'),
      { type: 'system', subtype: 'turn_duration', pendingBackgroundAgentCount: 2 },
    ];
    expect(after(...rows).pendingAgents).toBe(2);
    expect(after(...rows, prompt(2)).pendingAgents).toBe(0);
  });
});

describe('turn: an interrupt in a reply', () => {
  const thinking = [{ type: 'thinking', thinking: 'hm' }];

  test('2.1.332 marks the cut block', () => {
    expect(word(prompt(0), reply(1, null, thinking))).toBe('streaming');
    expect(word(prompt(0), reply(1, null, thinking), reply(1, null, [], { isAbortedMidStream: true }))).toBe(
      'stopped',
    );
  });

  test('2.1.197 saves the half text as its own', () => {
    const half = {
      ...reply(1, 'stop_sequence', [{ type: 'text', text: 'Half' }]),
      message: { model: '<synthetic>', stop_reason: 'stop_sequence', content: [] },
    };
    expect(word(prompt(0), reply(1, null, thinking), half)).toBe('stopped');
    expect(word(prompt(0), half)).toBe('completed');
  });
});

describe('turn: what went wrong', () => {
  test('R-17 the error’s text and code, and neither after the next prompt', () => {
    const turn = after(prompt(0), apiError(1, 'overloaded'));
    expect(turn.turn.error).toBe('API Error: 529 Overloaded');
    expect(turn.failure).toEqual({ code: 'overloaded' });
    const next = after(prompt(0), apiError(1, 'overloaded'), prompt(2));
    expect(next.turn.error).toBeUndefined();
    expect(next.failure).toBeUndefined();
  });

  test('O4 an error text is one clean line', () => {
    const hostile = reply(1, 'stop_sequence', [{ type: 'text', text: 'API\u001b[31m Error\n\u202eevil' }], {
      isApiErrorMessage: true,
    });
    expect(after(prompt(0), hostile).turn.error).toBe('API Error evil');
  });
});
