import { describe, expect, test } from 'bun:test';
import { createObserver } from '../../../../src/adapters/claude-code/wrap/observer.ts';
import type { Side } from '../../../../src/adapters/claude-code/wrap/tee.ts';
import type { Report } from '../../../../src/runtime/daemon/reporter.ts';
import { WRAP } from '../../../../src/runtime/limits.ts';

const PID = 4_242;
const ID = '0b7e6c1a-2f4d-4a8e-9c3b-5d1e7f9a2b4c';
const OTHER = '1c8f7d2b-3a5e-4b9f-8d4c-6e2f8a0b3c5d';

type Said = readonly [Side, Record<string, unknown>];

const init = (more = {}): Said => [
  'claude',
  { type: 'system', subtype: 'init', session_id: ID, cwd: '/home/me/web', model: 'm1', ...more },
];
const prompt: Said = ['editor', { type: 'user', message: { role: 'user', content: 'words' } }];
const assistant: Said = ['claude', { type: 'assistant', session_id: ID }];
const streaming: Said = ['claude', { type: 'stream_event', session_id: ID }];
const result = (more = {}): Said => ['claude', { type: 'result', session_id: ID, ...more }];
const ask = (id: string, tool = 'Bash'): Said => [
  'claude',
  { type: 'control_request', request_id: id, request: { subtype: 'can_use_tool', tool_name: tool } },
];
const answer = (id: string): Said => [
  'editor',
  { type: 'control_response', response: { subtype: 'success', request_id: id } },
];
const control = (side: Side, request: Record<string, unknown>): Said => [
  side,
  { type: 'control_request', request_id: 'c', request },
];

function watched() {
  const reports: Report[] = [];
  const models: string[] = [];
  const records: Record<string, unknown>[] = [];
  const observer = createObserver({
    childPid: PID,
    send: (report) => reports.push(report),
    model: (id) => models.push(id),
    diagnostics: {
      dropped: 0,
      record: (event, fields) => records.push({ event, ...fields }),
      finish: async () => {},
    },
  });
  const say = (...lines: Said[]) => {
    for (const [side, value] of lines) observer.line(side, JSON.stringify(value));
  };
  const states = (): readonly string[] =>
    reports.map(({ op, payload }) => {
      if (op === 'end') return 'end';
      return typeof payload.event === 'object' && 'stream_state' in payload.event
        ? payload.event.stream_state
        : '?';
    });
  const counts = () => {
    observer.summary({ full: 0, oversize: 0, nonUtf8: 0, closed: 0 }, 'final_summary');
    return records.at(-1);
  };
  return { observer, reports, models, records, say, states, counts };
}

const CASES: readonly (readonly [string, readonly Said[], readonly string[]])[] = [
  [
    'C-251: init, assistant, a permission, result',
    [init(), assistant, ask('r1'), result()],
    ['idle', 'working', 'waiting_for_permission', 'idle'],
  ],
  [
    'C-252: a prompt before init is never idle at init',
    [prompt, init(), assistant, result()],
    ['working', 'idle'],
  ],
  [
    'C-255 S-713: two prompts are two turns here',
    [prompt, prompt, init(), assistant, result(), init(), assistant, result(), init()],
    ['working', 'idle', 'working', 'idle'],
  ],
  [
    'C-256 S-713: prompts in a turn become one next turn',
    [
      prompt,
      init(),
      assistant,
      prompt,
      prompt,
      result({ subtype: 'error_during_execution' }),
      init(),
      assistant,
      result(),
    ],
    ['working', 'idle', 'working', 'idle'],
  ],
  [
    'C-257 S-713: a turn that has no second init',
    [prompt, init(), assistant, prompt, result(), assistant, result(), init()],
    ['working', 'idle', 'working', 'idle'],
  ],
  [
    'C-258: text can’t hide a permission, and an answer is work at once',
    [prompt, init(), ask('r1'), assistant, streaming, answer('r1')],
    ['working', 'waiting_for_permission', 'working'],
  ],
  [
    'C-261: a permission that nobody answered ends with the turn',
    [prompt, init(), ask('r1'), result()],
    ['working', 'waiting_for_permission', 'idle'],
  ],
  [
    'R-06: a question waits for input, a plan for approval',
    [prompt, init(), ask('q', 'AskUserQuestion'), answer('q'), ask('p', 'ExitPlanMode'), answer('p')],
    ['working', 'waiting_for_input', 'working', 'waiting_for_permission', 'working'],
  ],
  [
    'S-714: a permission comes before a question',
    [prompt, init(), ask('q', 'AskUserQuestion'), ask('r'), answer('r')],
    ['working', 'waiting_for_input', 'waiting_for_permission', 'waiting_for_input'],
  ],
  [
    'S-712: a request that Claude takes back is waited for no longer',
    [prompt, init(), ask('r'), ['claude', { type: 'control_cancel_request', request_id: 'r' }]],
    ['working', 'waiting_for_permission', 'working'],
  ],
  [
    'S-712: lines from the wrong side say nothing',
    [
      init(),
      ['claude', { type: 'user', message: {} }],
      ['editor', { type: 'assistant' }],
      ['editor', { type: 'result' }],
      ['editor', { type: 'control_request', request_id: 'r', request: { subtype: 'can_use_tool' } }],
    ],
    ['idle'],
  ],
  [
    'S-712: an answer without an id, or to nothing, clears nothing',
    [
      prompt,
      init(),
      ask('r1'),
      ['editor', { type: 'control_response', response: {} }],
      answer('other'),
      ['claude', { type: 'control_response', response: { request_id: 'r1' } }],
    ],
    ['working', 'waiting_for_permission'],
  ],
  [
    'S-712: the id beside the request counts where the body has none',
    [
      init(),
      ask('r1'),
      ['editor', { type: 'control_response', request_id: 'r1', response: { subtype: 'success' } }],
    ],
    ['idle', 'waiting_for_permission', 'idle'],
  ],
  [
    'S-712: requests of other kinds say nothing',
    [
      init(),
      control('editor', { subtype: 'initialize' }),
      control('editor', { subtype: 'interrupt' }),
      control('claude', { subtype: 'hook_callback' }),
      control('claude', { subtype: 'mcp_message' }),
    ],
    ['idle'],
  ],
];

describe('what the stream says (S-710 … S-716)', () => {
  for (const [name, lines, states] of CASES)
    test(name, () => {
      const { say, states: seen } = watched();
      say(...lines);
      expect(seen()).toEqual([...states]);
    });

  test('C-251 S-705 S-706: every report carries only state, id, folder, model and the program’s pid, and the end comes once', () => {
    const { observer, reports, say } = watched();
    say(init());
    observer.end();
    observer.end();
    expect(reports).toEqual([
      {
        op: 'observe',
        payload: {
          session_id: ID,
          event: { stream_state: 'idle' },
          pid: PID,
          cwd: '/home/me/web',
          model: 'm1',
        },
      },
      { op: 'end', payload: { session_id: ID, pid: PID } },
    ]);
  });

  test('S-705: without an id nothing is reported, not even an end', () => {
    const { observer, reports, say } = watched();
    say(prompt, ['claude', { type: 'assistant' }]);
    observer.keepAlive();
    observer.end();
    expect(reports).toEqual([]);
  });

  test('C-253 S-715: what is reached before the id is reported with it', () => {
    const { reports, say } = watched();
    say(prompt);
    expect(reports).toEqual([]);
    say(init());
    expect(reports).toMatchObject([
      { payload: { session_id: ID, cwd: '/home/me/web', model: 'm1', event: { stream_state: 'working' } } },
    ]);
  });

  test('S-711: with --continue the lines of hooks carry an id that is thrown away; init names the session', () => {
    const { reports, say } = watched();
    say(['claude', { type: 'system', subtype: 'hook_started', session_id: OTHER }]);
    say(['claude', { type: 'system', subtype: 'hook_response', session_id: OTHER }], init());
    expect(reports.map(({ payload }) => payload.session_id)).toEqual([ID]);
  });

  test('R-04: after /clear the process has another session, and the old one has ended', () => {
    const { reports, say, states } = watched();
    say(init(), prompt, assistant, result({ session_id: OTHER }), init({ session_id: OTHER }));
    expect(states()).toEqual(['idle', 'working', 'idle', 'end', 'idle']);
    expect(reports.at(-2)).toEqual({ op: 'end', payload: { session_id: ID, pid: PID } });
    expect(reports.at(-1)?.payload.session_id).toBe(OTHER);
  });

  test('S-711: the first id and folder stay, whatever other lines say', () => {
    const { reports, say } = watched();
    say(
      init(),
      ['claude', { type: 'assistant', session_id: OTHER, cwd: '/elsewhere' }],
      init({ cwd: '/elsewhere' }),
    );
    const seen = reports.map(({ payload }) => [payload.session_id, 'cwd' in payload && payload.cwd]);
    expect([...new Set(seen.map(String))]).toEqual([`${ID},/home/me/web`]);
  });

  test('C-262: only a model that the editor names counts, and it is reported', () => {
    const { reports, models, say } = watched();
    const set = (model?: string) =>
      control('editor', { subtype: 'set_model', ...(model === undefined ? {} : { model }) });
    say(
      init(),
      set('m2'),
      set(),
      set('  '),
      set('default'),
      control('claude', { subtype: 'set_model', model: 'm9' }),
    );
    expect(models).toEqual(['m1', 'm2']);
    expect(reports.map(({ payload }) => 'model' in payload && payload.model)).toEqual(['m1', 'm2']);
  });

  test('C-263: a later init changes the model, a blank one does not', () => {
    const { models, say } = watched();
    say(init(), init({ model: 'm3' }), init({ model: ' ' }), init({ model: undefined }));
    expect(models).toEqual(['m1', 'm3']);
  });

  test('C-260: 64 permissions are remembered, the others counted', () => {
    const { say, states, counts } = watched();
    say(init(), ...Array.from({ length: 70 }, (_, index) => ask(`r${index}`)));
    say(...Array.from({ length: WRAP.asks }, (_, index) => answer(`r${index}`)));
    expect(states()).toEqual(['idle', 'waiting_for_permission', 'idle']);
    expect(counts()).toMatchObject({ permission_cap_drops: 6 });
  });

  test('S-741: what is not understood is counted; known controls are not unknown', () => {
    const { observer, say, counts } = watched();
    observer.line('claude', '{broken');
    observer.line('claude', 'no json at all');
    say(control('claude', { subtype: 'hook_callback' }), control('editor', { subtype: 'brand_new' }));
    say(['claude', { type: 'control_request', request: { subtype: 'can_use_tool' } }]);
    expect(counts()).toMatchObject({ parse_failures: 1, unknown_controls: 1, missing_permission_ids: 1 });
  });

  test('S-710: terminal bytes glued before a line do not hide it', () => {
    const { observer, states } = watched();
    observer.line('claude', `\u001b]0;title\u0007${JSON.stringify(init()[1])}`);
    expect(states()).toEqual(['idle']);
  });

  test('C-265 S-716: what goes on is said again, idle never', () => {
    const { observer, say, states } = watched();
    say(init());
    observer.keepAlive();
    expect(states()).toEqual(['idle']);
    say(prompt);
    observer.keepAlive();
    say(ask('r1'));
    observer.keepAlive();
    expect(states().slice(1)).toEqual([
      'working',
      'working',
      'waiting_for_permission',
      'waiting_for_permission',
    ]);
  });

  test('S-704: text that streams while it works is not read at all, and anything else is', () => {
    const { observer, say } = watched();
    const start = (type: string) => Buffer.from(`{"type":"${type}","mess`);
    expect(observer.idle('claude', start('assistant'))).toBe(false);
    say(init(), prompt);
    expect(observer.idle('claude', start('assistant'))).toBe(true);
    expect(observer.idle('claude', start('stream_event'))).toBe(true);
    expect(observer.idle('editor', start('assistant'))).toBe(false);
    expect(observer.idle('claude', start('result'))).toBe(false);
    expect(observer.idle('claude', start('control_request'))).toBe(false);
  });
});
