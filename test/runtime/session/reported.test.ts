import { describe, expect, test } from 'bun:test';
import { publicState, socketState } from '../../../src/runtime/session/project.ts';
import {
  applyReport,
  type Report,
  type Reported,
  reportedClaim,
} from '../../../src/runtime/session/reported.ts';
import type { SessionState } from '../../../src/runtime/session/state.ts';

const T = 1_796_000_000_000;

function after(...reports: readonly Omit<Report, 'at'>[]): Reported {
  const start: Reported | undefined = undefined;
  const last = reports.reduce<Reported | undefined>(
    (known, report, index) => applyReport(known, { ...report, at: T + index * 1_000 }),
    start,
  );
  if (!last) throw new Error('no session');
  return last;
}
function stateAfter(...reports: readonly Omit<Report, 'at'>[]): SessionState {
  const { says } = reportedClaim('x.hooks', after(...reports));
  if (says.kind === 'silent') throw new Error('says nothing');
  return says;
}

describe('reported evidence: questions and permissions', () => {
  test('R-06 a permission notice while a question is open leaves it a question', () => {
    const question = { event: 'agent_needs_input', on: 'question' } as const;
    const state = stateAfter({ event: 'user_prompt_submit' }, question, { event: 'permission_prompt' });
    expect([publicState(state), socketState(state)]).toEqual(['blocked', 'waiting_for_input']);
  });

  test('R-11 a permission notice after the idle reminder is a wait', () => {
    const state = stateAfter({ event: 'stop' }, { event: 'idle_prompt' }, { event: 'permission_prompt' });
    expect(publicState(state)).toBe('waiting_for_approval');
  });

  test('a repeated permission notice is about what the first one named', () => {
    const asked = { event: 'permission_prompt', on: 'plan', tool: { name: 'ExitPlanMode' } } as const;
    expect(stateAfter(asked, { event: 'permission_prompt' })).toEqual({
      kind: 'waiting',
      for: 'approval',
      on: 'plan',
      tool: { name: 'ExitPlanMode' },
    });
  });

  test('S-115 the wait of a sub-agent is about what its own report names', () => {
    const state = stateAfter(
      { event: 'user_prompt_submit' },
      { event: 'agent_needs_input', on: 'form', agentId: 'a1' },
    );
    expect(state).toMatchObject({ kind: 'waiting', on: 'form' });
  });
});

describe('reported evidence: work that is no turn of the user’s', () => {
  test('R-18 after a manual compaction the last outcome stays', () => {
    const failed = { event: 'stop', outcome: 'failed' } as const;
    const compacted = { event: 'stop', noTurn: true } as const;
    const state = stateAfter({ event: 'user_prompt_submit' }, failed, { event: 'post_tool_use' }, compacted);
    expect(publicState(state)).toBe('failed');
  });

  test('R-18 a compaction before the first prompt leaves a session that nobody has prompted', () => {
    const compacted = { event: 'stop', noTurn: true } as const;
    expect(publicState(stateAfter({ event: 'session_start' }, { event: 'post_tool_use' }, compacted))).toBe(
      'idle',
    );
  });
});
