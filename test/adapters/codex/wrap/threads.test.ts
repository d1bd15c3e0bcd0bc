import { describe, expect, test } from 'bun:test';
import { onServer, passReason } from '../../../../src/adapters/codex/wrap/command-line.ts';
import { type Look, reportLook } from '../../../../src/adapters/codex/wrap/threads.ts';

const ID = '019a0000-0000-7000-8000-000000000001';
const active = (...activeFlags: string[]) => ({ type: 'active', activeFlags });

function look(thread: Record<string, unknown> | undefined): Look {
  return new Map([[ID, thread]]);
}

/** The reports of one look, in a word each. */
function words(known: Iterable<string>, seen: Look): readonly string[] {
  return reportLook(new Set(known), seen).reports.map(({ op, payload }) => {
    if (op === 'end') return 'end';
    return typeof payload.event === 'object' && 'stream_state' in payload.event
      ? payload.event.stream_state
      : '?';
  });
}

describe('what the server’s threads are on the socket (S-763 … S-765)', () => {
  test.each([
    ['active', active(), 'working'],
    ['waiting for an approval', active('waitingOnApproval'), 'waiting_for_permission'],
    ['waiting for input', active('waitingOnUserInput'), 'waiting_for_input'],
    ['both at once', active('waitingOnUserInput', 'waitingOnApproval'), 'waiting_for_permission'],
    ['idle', { type: 'idle' }, 'idle'],
    ['a system error', { type: 'systemError' }, 'idle'],
  ])('C-290: %s', (_name, status, state) => {
    expect(words([], look({ id: ID, status }))).toEqual([state]);
  });

  test.each([
    ['not loaded', { type: 'notLoaded' }],
    ['unknown', { type: 'brandNew' }],
    ['{}', {}],
  ])('C-290: %s is an end, and only of what was reported', (_name, status) => {
    expect(words([ID], look({ id: ID, status }))).toEqual(['end']);
    expect(words([], look({ id: ID, status }))).toEqual([]);
  });

  test.each([
    ['the user’s', { source: 'vscode', threadSource: 'user' }, 1],
    ['one without a thread source', { source: 'vscode', threadSource: null }, 1],
    ['one with a parent', { parentThreadId: 'p' }, 0],
    ['one whose source is an object', { source: { subAgent: { thread_spawn: {} } } }, 0],
    ['one of a sub-agent', { source: 'subAgentThreadSpawn' }, 0],
    ['an ephemeral one', { ephemeral: true }, 0],
    ['one of the system', { threadSource: 'system' }, 0],
    ['the writer of titles', { threadSource: 'thread_title' }, 0],
  ])('C-291 S-765: %s', (_name, fields, count) => {
    expect(words([], look({ id: ID, status: active(), ...fields }))).toHaveLength(count);
  });

  test('C-293: one that could not be read is left alone, one that is gone has ended', () => {
    expect(words([ID], look(undefined))).toEqual([]);
    expect(reportLook(new Set([ID]), look(undefined)).known).toEqual(new Set([ID]));
    expect(words([ID], new Map())).toEqual(['end']);
  });

  test('S-764: a report is tagged codex, with folder and model and without a pid', () => {
    const thread = {
      id: ID,
      status: { type: 'idle' },
      cwd: '/w',
      model: 'gpt-6-sol',
      preview: 'words of the user',
    };
    expect(reportLook(new Set(), look(thread)).reports).toEqual([
      {
        op: 'observe',
        payload: {
          session_id: ID,
          event: { stream_state: 'idle' },
          agent: 'codex',
          cwd: '/w',
          model: 'gpt-6-sol',
        },
      },
    ]);
  });
});

describe('which command lines are wrapped (C-296, S-760)', () => {
  test.each([
    [['exec', 'x']],
    [['e', 'x']],
    [['--remote=unix:///x']],
    [['--remote', 'unix:///x']],
    [['-c', 'k=v', 'login']],
    [['--no-daemon']],
    [['--version']],
    [['agents']],
    [['app-server']],
    [['mcp-server']],
    [['review']],
  ])('%j runs as it is', (args) => {
    expect(passReason(args)).toBeString();
  });

  test.each([
    [[]],
    [['resume', 'id']],
    [['fork', '--last']],
    [['fix the build']],
    [['please review this']],
    [['-m', 'gpt-6-sol', 'words']],
    [['--', 'exec']],
  ])('%j is wrapped', (args) => {
    expect(passReason(args)).toBeUndefined();
  });

  test('S-761: the server comes before the user’s own arguments', () => {
    expect(onServer('codex', '/h/c.sock', ['resume', '--last'])).toEqual([
      ...['codex', '--remote', 'unix:///h/c.sock', 'resume', '--last'],
    ]);
  });
});
