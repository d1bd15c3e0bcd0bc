import { describe, expect, test } from 'bun:test';
import type { Claim } from '../../../src/runtime/session/evidence.ts';
import {
  fuse,
  OUTCOME_GRACE_MS,
  RAISE_WINDOW_MS,
  UNPROVEN_TTL_MS,
} from '../../../src/runtime/session/fuse.ts';
import { publicState } from '../../../src/runtime/session/project.ts';
import { IDLE, RUNNING, type SessionState, waitingOn } from '../../../src/runtime/session/state.ts';

const T = 1_796_000_000_000;
const TOOL: SessionState = { kind: 'working', doing: 'tool', tool: { name: 'Bash', command: 'make -j' } };
const COMPLETED: SessionState = { kind: 'rested', outcome: 'completed' };

function live(says: Claim['says'], at: number, more: Partial<Claim> = {}): Claim {
  return {
    feed: 'x.live',
    owner: '10',
    confidence: 'exact',
    at,
    says,
    life: 'alive',
    detail: 'live',
    ...more,
  };
}
function hook(says: Claim['says'], at: number, more: Partial<Claim> = {}): Claim {
  return { feed: 'x.hooks', confidence: 'reported', at, says, detail: 'hook', ...more };
}
function rows(says: Claim['says'], at: number, more: Partial<Claim> = {}): Claim {
  return { feed: 'x.rows', confidence: 'inferred', at, says, detail: 'rows', ...more };
}
const lock = (life: 'alive' | 'dead', at = T): Claim => ({
  feed: 'x.lock',
  confidence: 'inferred',
  at,
  says: { kind: 'silent' },
  life,
  detail: 'lock',
});
const endedWell = { openedAt: T, endedAt: T + 900, end: 'completed' } as const;

interface Row {
  readonly name: string;
  readonly claims: readonly Claim[];
  readonly now: number;
  readonly want: string;
}

const table: readonly Row[] = [
  { name: 'no claims: unknown', claims: [], now: T, want: 'unknown' },
  {
    name: 'R-02 a live owner and no turn yet is idle',
    claims: [live(IDLE, T)],
    now: T + 9_000,
    want: 'idle',
  },
  {
    name: 'design rule 3: a quiet file without live evidence is unknown',
    claims: [rows({ kind: 'unknown' }, T)],
    now: T + 1,
    want: 'unknown',
  },
  {
    name: 'design rule 3: a file that states an outcome keeps it for ever',
    claims: [rows(COMPLETED, T, { turn: endedWell })],
    now: T + 1e12,
    want: 'completed',
  },
  {
    name: 'S6 a tool call in a file alone is work, inferred',
    claims: [rows(TOOL, T)],
    now: T + 1_000,
    want: 'tool_call',
  },
  {
    name: 'rule 3: an open turn without proof of life goes unknown',
    claims: [rows(TOOL, T)],
    now: T + UNPROVEN_TTL_MS + 1,
    want: 'unknown',
  },
  {
    name: 'C7 a tool that runs for an hour under a live owner is still a tool call',
    claims: [rows(TOOL, T), lock('alive')],
    now: T + 3_600_000,
    want: 'tool_call',
  },
  {
    name: 'S1 an open turn without a tool and without any sign ages out under a live owner',
    claims: [rows(RUNNING, T, { staleAfterMs: 600_000 }), lock('alive')],
    now: T + 600_001,
    want: 'unknown',
  },
  {
    name: 'R-02 death cuts an open turn',
    claims: [rows(TOOL, T), lock('dead')],
    now: T + 10,
    want: 'stopped',
  },
  {
    name: 'R-02 death cuts a wait',
    claims: [hook(waitingOn('tool'), T), rows(TOOL, T), lock('dead')],
    now: T + 10,
    want: 'stopped',
  },
  {
    name: 'R-02 death after the end keeps the outcome',
    claims: [rows(COMPLETED, T + 900, { turn: endedWell }), lock('dead')],
    now: T + 9e9,
    want: 'completed',
  },
  {
    name: 'R-17 an output limit stays blocked after the exit',
    claims: [
      rows(waitingOn('output-limit'), T, { turn: { openedAt: T, endedAt: T, end: 'limited' } }),
      lock('dead'),
    ],
    now: T + 9,
    want: 'blocked',
  },
  {
    name: 'killed while busy, before any row',
    claims: [live(RUNNING, T, { life: 'dead' })],
    now: T + 50,
    want: 'stopped',
  },
  {
    name: 'exact beats a report that is older',
    claims: [live(waitingOn('tool'), T + 10), hook(RUNNING, T)],
    now: T + 20,
    want: 'waiting_for_approval',
  },
  {
    name: 'R-05 a newer hook raises urgency for a moment',
    claims: [live(RUNNING, T), hook(waitingOn('tool'), T + 10)],
    now: T + 20,
    want: 'waiting_for_approval',
  },
  {
    name: 'R-05 … and lapses when the live value does not follow',
    claims: [live(RUNNING, T), hook(waitingOn('tool'), T + 10)],
    now: T + 10 + RAISE_WINDOW_MS + 1,
    want: 'running',
  },
  {
    name: 'R-05 a newer hook never lowers the exact value',
    claims: [live(waitingOn('tool'), T), hook(RUNNING, T + 10)],
    now: T + 20,
    want: 'waiting_for_approval',
  },
  {
    name: 'R-05 Stop does not end what the live value calls busy',
    claims: [live(RUNNING, T), hook(COMPLETED, T + 10, { turn: endedWell })],
    now: T + 20,
    want: 'running',
  },
  {
    name: 'R-06 a question is input, whatever the live value calls it',
    claims: [live(waitingOn('tool'), T), rows(waitingOn('question'), T)],
    now: T,
    want: 'blocked',
  },
  {
    name: 'R-06 a plan is an approval, whatever the live value calls it',
    claims: [live(waitingOn('unspecified'), T), rows(waitingOn('plan'), T)],
    now: T,
    want: 'waiting_for_approval',
  },
  {
    name: 'R-09 idle after a reported end',
    claims: [
      live(IDLE, T + 950),
      hook(COMPLETED, T + 900, { turn: endedWell }),
      rows(RUNNING, T + 100, { turn: { openedAt: T } }),
    ],
    now: T + 960,
    want: 'completed',
  },
  {
    name: 'R-09 idle and no end anywhere: stopped',
    claims: [live(IDLE, T + 500), rows(RUNNING, T, { turn: { openedAt: T } })],
    now: T + 500 + OUTCOME_GRACE_MS,
    want: 'stopped',
  },
  {
    name: 'R-09 an end before the newest prompt is another turn’s',
    claims: [
      live(IDLE, T + 5_000),
      rows(RUNNING, T + 2_000, { turn: { openedAt: T + 2_000 } }),
      hook(COMPLETED, T + 900, { turn: endedWell }),
    ],
    now: T + 9_000,
    want: 'stopped',
  },
  {
    name: 'S2 an API error row ends what hooks keep working',
    claims: [
      hook(RUNNING, T),
      rows({ kind: 'rested', outcome: 'failed' }, T + 10, {
        turn: { openedAt: T - 5, endedAt: T + 10, end: 'failed' },
      }),
    ],
    now: T + 20,
    want: 'failed',
  },
  {
    name: 'S11 a row flushed while the prompt stands is no answer',
    claims: [hook(waitingOn('tool'), T), rows(TOOL, T + 5)],
    now: T + 10,
    want: 'waiting_for_approval',
  },
  {
    name: 'R-10 the result of the pending call answers the wait',
    claims: [hook(waitingOn('tool'), T), rows(RUNNING, T + 5, { answeredAt: T + 5 })],
    now: T + 10,
    want: 'running',
  },
  {
    name: 'a report nobody confirms ages out too',
    claims: [hook(RUNNING, T)],
    now: T + UNPROVEN_TTL_MS + 1,
    want: 'unknown',
  },
  {
    name: 'R-04 of two live owners the busier one speaks',
    claims: [live(IDLE, T, { owner: '1' }), live(RUNNING, T - 500, { owner: '2' })],
    now: T,
    want: 'running',
  },
  {
    name: 'R-04 an owner without a status works beside an idle one',
    claims: [
      live(IDLE, T, { owner: '1' }),
      live({ kind: 'silent' }, T, { owner: '2' }),
      rows(TOOL, T + 4_000, { turn: { openedAt: T + 3_000 } }),
    ],
    now: T + 9_000,
    want: 'tool_call',
  },
  {
    name: 'R-04 a dead owner beside a live one does not stop the turn',
    claims: [live(RUNNING, T, { owner: '1' }), live(RUNNING, T, { owner: '2', life: 'dead' })],
    now: T,
    want: 'running',
  },
];

describe('fuse: which feed decides', () => {
  for (const row of table) {
    test(row.name, () => {
      expect(publicState(fuse(row.claims, undefined, row.now).state)).toBe(row.want as never);
      const reversed = [...row.claims].reverse();
      expect(publicState(fuse(reversed, undefined, row.now).state)).toBe(row.want as never);
    });
  }

  test('R-09 an owner that just came to rest keeps its state until the record can be there', () => {
    const busy = fuse([live(RUNNING, T), rows(RUNNING, T, { turn: { openedAt: T } })], undefined, T);
    const resting = [live(IDLE, T + 100), rows(RUNNING, T, { turn: { openedAt: T } })];
    const held = fuse(resting, busy, T + 100 + OUTCOME_GRACE_MS - 1);
    expect(publicState(held.state)).toBe('running');
    expect(publicState(fuse(resting, held, T + 100 + OUTCOME_GRACE_MS).state)).toBe('stopped');
  });

  test('the live value says that it works, the record says with which tool', () => {
    const fused = fuse([live(RUNNING, T), rows(TOOL, T + 5)], undefined, T + 10);
    expect(fused.state).toEqual(TOOL);
    expect(fused.evidence).toEqual({ source: 'x.live', at: T, confidence: 'exact' });
    expect(fused.chain.map((link) => [link.feed, link.verdict])).toEqual([
      ['x.rows', 'refines'],
      ['x.live', 'decides'],
    ]);
  });

  test('session-why names what was overruled and by whom', () => {
    const fused = fuse([live(waitingOn('tool'), T), hook(RUNNING, T - 10)], undefined, T);
    expect(fused.chain.find((link) => link.feed === 'x.hooks')).toMatchObject({
      verdict: 'overruled',
      why: 'overruled by exact evidence of x.live',
    });
  });

  test('R-08 background work is carried beside a rested turn', () => {
    const fused = fuse(
      [live(IDLE, T + 1_000, { backgroundWork: 1 }), hook(COMPLETED, T + 900, { turn: endedWell })],
      undefined,
      T + 1_000,
    );
    expect([publicState(fused.state), fused.backgroundWork]).toEqual(['completed', 1]);
  });
});
