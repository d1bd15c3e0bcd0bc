import { afterAll, describe, expect, test } from 'bun:test';
import { claudeHook } from '../../../src/adapters/claude-code/hooks.ts';
import { readRow } from '../../../src/adapters/claude-code/rows.ts';
import { applyRow, NO_TURN, type Turn } from '../../../src/adapters/claude-code/turn.ts';
import { publicState, type SocketState } from '../../../src/runtime/session/project.ts';
import type { Registry } from '../../../src/runtime/session/registry.ts';
import { applyReport, type Reported } from '../../../src/runtime/session/reported.ts';
import { hasOpenTurn } from '../../../src/runtime/session/state.ts';
import { ARGUED, arguedIn, type Mode } from './argued.ts';
import { createDiskReplayer } from './disk-replayer.ts';
import { classOf, type KeyRow, recording, scenarios } from './recording.ts';
import { createReplayer } from './replayer.ts';
import { type Compared, scoreAllFeeds, scoreWithoutHooks } from './score.ts';

/** One answer and the key's, by the line of the key. */
interface Answer {
  readonly line: number;
  readonly key: string;
  readonly ours: string;
  readonly right: boolean;
  readonly exact?: boolean;
}

const shares = new Map<Mode, { right: number; exact: number; argued: number; all: number }>();

function judge(scenario: string, mode: Mode, answers: readonly Answer[]): void {
  const wrong = answers.filter((answer) => !answer.right);
  const share = shares.get(mode) ?? { right: 0, exact: 0, argued: 0, all: 0 };
  shares.set(mode, {
    right: share.right + answers.length - wrong.length,
    exact: share.exact + answers.filter((answer) => answer.exact ?? answer.right).length,
    argued: share.argued + arguedIn(scenario, mode).length,
    all: share.all + answers.length,
  });
  expect(wrong.map((answer) => `${answer.line}: ${answer.key} -> ${answer.ours}`)).toEqual([
    ...arguedIn(scenario, mode),
  ]);
}

afterAll(() => {
  for (const [mode, { right, exact, argued, all }] of shares) {
    const allowed =
      right > exact
        ? ` (${right - exact} of them a neighbour’s value within 0.1 s, or a fresh id’s own)`
        : '';
    console.log(
      `claude-code: ${mode} ${right + argued}/${all} right; ${right} as the key${allowed}, ${argued} keys argued wrong`,
    );
  }
});

describe('files alone: the state of the rows up to here (C2 … C13, G4, R-06, R-17)', () => {
  test.each(scenarios())('%s', (scenario) => {
    const turns = new Map<string, Turn>();
    const answers = recording(scenario).flatMap((row): Answer[] => {
      if (row.transcriptState === undefined || row.transcriptState === null || !row.file) return [];
      const read = readRow(JSON.parse(row.text ?? ''));
      if (!read) throw new Error('no row');
      const turn = applyRow(turns.get(row.file) ?? NO_TURN, read);
      turns.set(row.file, turn);
      const ours = publicState(turn.state);
      const right = classOf(ours) === classOf(row.transcriptState);
      return [{ line: row.keyLine, key: row.transcriptState, ours, right }];
    });
    judge(scenario, 'files alone', answers);
  });
});

describe('hooks alone: the state that reports add up to (S-103, S-410, R-06, R-07, R-08, R-11, R-18)', () => {
  const WORDS: Record<Reported['phase'], SocketState> = {
    starting: 'starting',
    working: 'working',
    idle: 'idle',
    ended: 'ended',
    waiting_input: 'waiting_for_input',
    waiting_permission: 'waiting_for_permission',
  };
  const wordAfter = (row: KeyRow, known: Map<string, Reported>): string => {
    const hook = claudeHook(row.hook, row.at);
    const next = hook && applyReport(known.get(hook.sessionId), hook.report);
    if (hook && next) known.set(hook.sessionId, next);
    const reported = known.get(String(row.hook?.['session_id']));
    return reported ? WORDS[reported.phase] : 'none';
  };

  test.each(scenarios())('%s', (scenario) => {
    const known = new Map<string, Reported>();
    const answers = recording(scenario).flatMap((row): Answer[] => {
      if (row.hookState === undefined) return [];
      const ours = wordAfter(row, known);
      return [{ line: row.keyLine, key: row.hookState, ours, right: ours === row.hookState }];
    });
    judge(scenario, 'hooks alone', answers);
  });
});

const answerOf = ({ row, ours, right, exact }: Compared): Answer => {
  return { line: row.keyLine, key: row.truth, ours, right, exact };
};

describe('all feeds: what the registry shows after every event (R-05, R-09, R-20)', () => {
  test.each(scenarios())('%s', (scenario) => {
    judge(scenario, 'all feeds', scoreAllFeeds(scenario).map(answerOf));
  });
});

describe('without hooks: what a scan of the real files shows after every look (R-09, R-16, R-20)', () => {
  test.each(scenarios())('%s', async (scenario) => {
    judge(scenario, 'without hooks', (await scoreWithoutHooks(scenario)).map(answerOf));
  });
});

describe('nothing works or waits once its process is gone (S1, S12, design rule 3)', () => {
  const openAfter = (registry: Registry, rows: readonly KeyRow[]): readonly string[] => {
    registry.tick((rows.at(-1)?.at ?? 0) + 1_000);
    const open = registry.sessions().filter((session) => hasOpenTurn(session.own.state));
    return open.map((session) => session.ref.sessionId);
  };

  test.each(scenarios())('%s, with all feeds', (scenario) => {
    const replayer = createReplayer();
    const rows = recording(scenario);
    for (const row of rows) replayer.play(row);
    expect(openAfter(replayer.registry, rows)).toEqual([]);
  });

  test.each(scenarios())('%s, seen for the first time by one scan', async (scenario) => {
    const replayer = createDiskReplayer();
    try {
      const rows = recording(scenario);
      for (const [index, row] of rows.entries()) await replayer.play(row, index < rows.length - 1);
      expect(openAfter(replayer.registry, rows)).toEqual([]);
    } finally {
      replayer.close();
    }
  });
});

test('every argued key names a line of a recording, and says why', () => {
  for (const argued of ARGUED) {
    const lines = Object.values(argued.lines).flat();
    expect(scenarios()).toContain(argued.scenario);
    expect(lines.length).toBeGreaterThan(0);
    expect(argued.why.length).toBeGreaterThan(40);
  }
});
