import { afterAll, describe, expect, test } from 'bun:test';
import { isInherited } from '../../../src/adapters/codex/inherited.ts';
import type { SessionMeta } from '../../../src/adapters/codex/meta.ts';
import { toRecord } from '../../../src/adapters/codex/records.ts';
import { applyRecord, NO_TURN, type Turn, turnState } from '../../../src/adapters/codex/turn.ts';
import { publicState } from '../../../src/runtime/session/project.ts';
import { linesOf, loadRecording, type Recording, scenarios } from './recording.ts';
import { replay, type Step } from './replayer.ts';
import { HIDDEN_WITHOUT_HOOKS, Score, timeOfDay, WRONG_KEYS } from './score.ts';

const recordings = scenarios().map(loadRecording);
const scored = recordings.filter((recording) => recording.key.length > 0);

/** The turn after each line of a file, by the reducer alone. */
function turnsOf(recording: Recording, file: string, before: Turn): Turn[] {
  let meta: SessionMeta | undefined;
  let turn = NO_TURN;
  return linesOf(recording, file).map((line) => {
    const record = toRecord(JSON.parse(line));
    if (record.kind === 'meta') meta ??= record.meta;
    if (!isInherited(record, meta)) turn = applyRecord(turn, record);
    // A segment without a turn keeps what its base came to.
    return turn.phase === 'none' && meta?.base?.threadId === meta?.id ? before : turn;
  });
}

function scoreFiles(recording: Recording, score: Score): void {
  let before = NO_TURN;
  for (const file of [...recording.paths.keys()].sort()) {
    const turns = turnsOf(recording, file, before);
    for (const key of recording.key.filter((one) => one.file === file)) {
      const wrong = WRONG_KEYS.find(
        (one) => one.scenario === recording.name && one.file === file && one.line === key.line,
      );
      const turn = turns[key.line - 1];
      const want = wrong?.right ?? key.rollout_only ?? key.state;
      score.add(`${file}:${key.line} ${key.record}`, want, turn ? publicState(turnState(turn)) : 'missing');
    }
    before = turns.at(-1) ?? before;
  }
}

function scoreSteps(
  steps: readonly Step[],
  score: Score,
  hidden: readonly { at: string; seen: string }[],
): void {
  for (const { row, state } of steps) {
    if (row.state === '-') continue;
    const excuse = hidden.find((one) => one.at === timeOfDay(row));
    score.add(`${timeOfDay(row)} ${row.what.slice(0, 60)}`, excuse?.seen ?? row.state, state);
  }
}

const totals = { files: new Score(), all: new Score(), withoutHooks: new Score() };

function keep(total: Score, one: Score): void {
  total.rows += one.rows;
  total.right += one.right;
  expect(one.wrong).toEqual([]);
  expect(one.rows).toBeGreaterThan(0);
}

describe('files alone: the reducer against the answer key, line by line', () => {
  for (const recording of scored) {
    test(recording.name, () => {
      const score = new Score();
      scoreFiles(recording, score);
      keep(totals.files, score);
      expect(score.rows).toBe(recording.key.length);
    });
  }
});

describe('all feeds together: rollouts, locks, processes, hooks and app-server, row by row', () => {
  for (const recording of scored) {
    test(recording.name, async () => {
      const score = new Score();
      scoreSteps(await replay(recording, { hooks: true, index: true }), score, []);
      keep(totals.all, score);
    });
  }
});

describe('without hooks: what a one-shot command sees', () => {
  for (const recording of scored) {
    test(recording.name, async () => {
      const score = new Score();
      const hidden = HIDDEN_WITHOUT_HOOKS.filter((one) => one.scenario === recording.name);
      scoreSteps(await replay(recording, { hooks: false, index: false }), score, hidden);
      keep(totals.withoutHooks, score);
    });
  }
});

describe('the share of right states (R-45)', () => {
  test('is 100 % in every mode, over every row of the keys', () => {
    for (const score of Object.values(totals)) expect(score.right).toBe(score.rows);
    expect(totals.files.rows).toBe(1448);
    expect(totals.all.rows).toBe(2444);
    expect(totals.withoutHooks.rows).toBe(2444);
  });

  test('nothing is excused but one key and the rows that no feed can show without hooks', () => {
    expect(WRONG_KEYS.length).toBe(1);
    expect(HIDDEN_WITHOUT_HOOKS.length).toBe(13);
    for (const one of HIDDEN_WITHOUT_HOOKS) {
      const rows = recordings.find((recording) => recording.name === one.scenario)?.table ?? [];
      const row = rows.find((candidate) => timeOfDay(candidate) === one.at);
      expect(row?.state).toBe('waiting_for_approval');
    }
  });

  afterAll(() => {
    console.error(
      [
        'codex states against the recordings:',
        `  files alone       ${totals.files.share}, ${WRONG_KEYS.length} key argued wrong`,
        `  all feeds         ${totals.all.share}`,
        `  without hooks     ${totals.withoutHooks.share}, ${HIDDEN_WITHOUT_HOOKS.length} rows hidden by nature`,
      ].join('\n'),
    );
  });
});

describe('R-14 a sub-agent’s wait shows on its parent', () => {
  test('tui-subagent-v2-approval: the parent works, and is shown as waiting for the approval', async () => {
    const steps = await replay(loadRecording('tui-subagent-v2-approval'), { hooks: false, index: false });
    const waiting = steps.filter((step) =>
      step.row.what.startsWith("app-server status active ['waitingOnApproval']"),
    );
    expect(waiting.length).toBe(1);
    const root = waiting[0]?.root;
    expect(root && publicState(root.own.state)).toBe('tool_call');
    expect(root && publicState(root.shown.state)).toBe('waiting_for_approval');
    expect(root?.shownFrom).toBe('01a22e27-759e-7921-8295-848cb9d4128f');
  });

  test('the child folds: one row for the two threads', async () => {
    const steps = await replay(loadRecording('exec-subagent-v1'), { hooks: true, index: true });
    expect(steps.at(-1)?.session?.subAgents.length).toBe(1);
    expect(steps.at(-1)?.state).toBe('completed');
  });
});
