import { describe, expect, test } from 'bun:test';
import { looksLikeTestRun, petSignals } from '../../../src/runtime/session/pet.ts';
import type { SessionState, ToolCall } from '../../../src/runtime/session/state.ts';
import { waitingOn } from '../../../src/runtime/session/state.ts';

const tool = (call: ToolCall): SessionState => ({ kind: 'working', doing: 'tool', tool: call });

describe('pet reaction and activity of a tool (shadow-server §8, without the existing faults)', () => {
  const table: [string, ToolCall, string, string, string?][] = [
    [
      'an edit shows the file’s name alone',
      { name: 'Edit', path: '/home/dev/acme/src/a.ts' },
      'editing',
      'editing',
      'a.ts',
    ],
    ['apply_patch edits', { name: 'apply_patch' }, 'editing', 'editing'],
    ['C14 TodoWrite is work, not editing', { name: 'TodoWrite' }, 'working', 'working', 'TodoWrite'],
    ['C16 ls test is no test run', { name: 'Bash', command: 'ls test' }, 'running', 'running', 'ls test'],
    ['pnpm test is one', { name: 'Bash', command: 'pnpm test' }, 'testing', 'testing', 'pnpm test'],
    [
      'a long command shows four words',
      { name: 'exec_command', command: 'git log --oneline --graph --all main' },
      'running',
      'running',
      'git log --oneline --graph...',
    ],
    ['C17b Glob reads', { name: 'Glob', pattern: '**/*.ts' }, 'thinking', 'reading', '**/*.ts'],
    [
      'C17c WebFetch reads',
      { name: 'WebFetch', pattern: 'example.com' },
      'thinking',
      'reading',
      'example.com',
    ],
    [
      'Read shows the file’s name alone',
      { name: 'Read', path: 'C:\\work\\secret plan.md' },
      'thinking',
      'reading',
      'secret plan.md',
    ],
    ['any other tool is work', { name: 'Task' }, 'working', 'working', 'Task'],
    [
      'C25 a key in a command is masked',
      { name: 'Bash', command: 'curl -H "Authorization: Bearer abcdefghijklmnop1234"' },
      'running',
      'running',
      'curl -H "Authorization: •••',
    ],
  ];
  for (const [name, call, reaction, kind, label] of table) {
    test(name, () => {
      expect(petSignals(tool(call))).toEqual({
        petReaction: reaction as never,
        petActivity: { kind: kind as never, ...(label ? { label } : {}) },
      });
    });
  }

  test('a label never exceeds its limit, in graphemes', () => {
    const { petActivity } = petSignals(tool({ name: 'Bash', command: '👩‍👩‍👧‍👦'.repeat(80) }));
    expect([...new Intl.Segmenter().segment(petActivity?.label ?? '')].length).toBeLessThanOrEqual(32);
  });
});

describe('pet reaction of a state', () => {
  test('O1 idle is idle, never success', () => {
    expect(petSignals({ kind: 'idle' })).toEqual({ petReaction: 'idle' });
  });
  test('a wait waits, whatever tool it is about', () => {
    expect(petSignals(waitingOn('tool', { name: 'Bash', command: 'npm test' })).petReaction).toBe('waiting');
  });
  test('an output limit waits too', () => {
    expect(petSignals({ kind: 'ended', outcome: 'limited' }).petReaction).toBe('waiting');
  });
  test('completed succeeds, failed errs, stopped and unknown are idle', () => {
    const reactions = (['completed', 'failed', 'stopped'] as const).map(
      (outcome) => petSignals({ kind: 'rested', outcome }).petReaction,
    );
    expect([...reactions, petSignals({ kind: 'unknown' }).petReaction]).toEqual([
      'success',
      'error',
      'idle',
      'idle',
    ]);
  });
});

describe('looksLikeTestRun', () => {
  const yes = [
    'npm test',
    'npm run test:unit',
    'cd app && npx vitest run',
    'cargo test -p core',
    'go test ./...',
    'python -m pytest -q',
    'CI=1 bun test',
    'sudo -E pytest',
    './gradlew test',
    'make && ctest',
    'poetry run pytest',
    'node --test',
  ];
  const no = [
    'ls test',
    'cat test.log',
    'git checkout test',
    'mkdir test',
    'echo npm test is slow',
    'grep -r jest .',
    'node test',
    'rm -rf test',
    'npm install vitest',
    '',
  ];
  for (const command of yes) test(`yes: ${command}`, () => expect(looksLikeTestRun(command)).toBe(true));
  for (const command of no)
    test(`no: ${command || '(empty)'}`, () => expect(looksLikeTestRun(command)).toBe(false));
});
