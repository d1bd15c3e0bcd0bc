import { describe, expect, test } from 'bun:test';
import { eventData, requestData } from '../../src/commands/output/control-data.ts';
import { createEventPrinter, requestText, safeLines } from '../../src/commands/output/control-text.ts';
import type { Style } from '../../src/commands/output/style.ts';
import type { ControlEvent, PendingRequest } from '../../src/runtime/control.ts';

const PLAIN: Style = { colour: false, columns: undefined, rows: undefined, canRedraw: false, unicode: true };
const AT = Date.parse('2026-11-30T10:00:00Z');
const session = { runtimeId: 'claude-code', instanceId: 'transcripts', sessionId: 's-1' };

const request: PendingRequest = {
  requestId: 'r-1',
  session,
  kind: 'permission',
  askedAt: AT - 5_000,
  expiresAt: AT + 90_000,
  subject: 'Bash',
  detail: 'rm -rf src\n  && echo \u001b[31mgone\u202e',
  allows: ['allow-once', 'allow-session', 'deny'],
  sessionScope: 'Bash(rm *)',
};

function printed(events: readonly ControlEvent[]) {
  const print = createEventPrinter();
  const parts = events.map((event) => print(event, PLAIN));
  const join = (key: 'out' | 'err') => parts.flatMap((part) => part[key] ?? []).join('\n');
  return { out: join('out'), err: join('err') };
}

describe('what people read of a turn', () => {
  const accepted: ControlEvent = {
    type: 'accepted',
    at: AT,
    session,
    mode: 'process',
    detail: 'it took it',
    resume: 'cd /a && claude --resume s-1',
  };
  const says = (text: string): ControlEvent => ({ type: 'progress', at: AT, doing: 'running', text });
  const done: ControlEvent = { type: 'done', at: AT, outcome: 'completed', text: 'Last.' };

  test('the final text alone is on stdout, and stands there once', () => {
    const { out, err } = printed([accepted, says('First.'), says('Last.'), done]);
    expect(out).toBe('Last.');
    expect(err).toContain('First.');
    expect(err).not.toContain('Last.');
  });

  test('M4: the command with which to go on is printed', () => {
    expect(printed([accepted]).err).toContain('go on in a terminal: cd /a && claude --resume s-1');
  });

  test('leaving says what goes on: the turn, or the message that waits', () => {
    const left: ControlEvent = { type: 'left', at: AT, reason: 'caller left' };
    expect(printed([accepted, left]).err).toContain('left: the turn goes on');
    expect(printed([{ type: 'queued', at: AT, reason: 'later' }, left]).err).toContain(
      'the message still waits',
    );
  });

  test('A4: what it is queued behind can be answered', () => {
    const queued: ControlEvent = {
      type: 'queued',
      at: AT,
      reason: 'behind it',
      behind: { requestId: 'r-1', subject: 'Bash' },
    };
    expect(printed([queued]).err).toBe(
      'queued: behind it\nanswer it: shadowob-connector session-approve r-1 --allow',
    );
  });

  test('O4: text of a model never moves the cursor', () => {
    const { out } = printed([{ ...done, text: 'a\u001b[2Jb\n\tc\r\nd' }]);
    expect(out).toBe('a b\n  c\nd');
    expect(safeLines('\u202eevil\u0007')).toBe('evil');
  });
});

describe('a request as people read it', () => {
  test('shows the exact action, when it is denied, and each way to answer', () => {
    expect(requestText(PLAIN, request, AT).split('\n')).toEqual([
      'Claude Code wants to use Bash  asked 5s ago, denied in 2 min',
      '  request r-1, session s-1',
      '    rm -rf src',
      '      && echo gone',
      '  shadowob-connector session-approve r-1 --allow',
      '  shadowob-connector session-approve r-1 --allow-session   (allows for this session: Bash(rm *))',
      '  shadowob-connector session-approve r-1 --deny --note "…"',
    ]);
  });

  test('says when it is cut', () => {
    expect(requestText(PLAIN, { ...request, detailCut: true }, AT)).toContain('(cut: there is more of it)');
  });
});

describe('the same for programs', () => {
  test('times are ISO, and the session’s fields stand beside the others', () => {
    expect(requestData(request)).toMatchObject({
      ...session,
      requestId: 'r-1',
      askedAt: '2026-11-30T09:59:55.000Z',
      expiresAt: '2026-11-30T10:01:30.000Z',
    });
    const refused: ControlEvent = {
      type: 'refused',
      at: AT,
      kind: 'ownedElsewhere',
      reason: 'open elsewhere',
      next: 'close it',
    };
    expect(eventData(refused)).toEqual({
      type: 'refused',
      at: '2026-11-30T10:00:00.000Z',
      error: { kind: 'ownedElsewhere', exitCode: 43, message: 'open elsewhere', next: 'close it' },
    });
  });
});
