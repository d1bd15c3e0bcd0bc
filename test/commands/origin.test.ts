import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { openStage as openClaude } from '../adapters/claude-code/control/stage.ts';
import { openStage as openCodex } from '../adapters/codex/control/stage.ts';
import { openStage as openOpencode } from '../adapters/opencode/control/stage.ts';

// Each starts several programs, and the machine may be busy.
setDefaultTimeout(120_000);

describe.skipIf(process.platform !== 'linux')('R-42: origin', () => {
  /** A message that this runtime's stand-in never answers. */
  const STAGES = {
    'claude-code': { open: openClaude, endless: 'hang' },
    codex: { open: openCodex, endless: 'Write a long answer' },
    opencode: { open: openOpencode, endless: 'hang' },
  } as const;

  for (const [runtime, { open, endless }] of Object.entries(STAGES)) {
    test(`${runtime}: a session that a process of ours runs is connectorOwned, any other is not`, async () => {
      await using stage = open();
      const [ours, other] = [stage.session(), stage.session()];
      await stage.run(['session-send', ours, '--message', endless]);
      const listed = await stage.run(['session-list', '--all', '--json']);
      const { sessions } = JSON.parse(listed.stdout) as { sessions: { sessionId: string; origin: string }[] };
      const originOf = (id: string) => sessions.find(({ sessionId }) => sessionId === id)?.origin;
      expect([originOf(ours), originOf(other)]).toEqual(['connectorOwned', 'unboundLocal']);
      await stage.run(['session-abort', ours, '--kill']);
    });
  }

  test('codex: a session that we have begun stays connectorOwned, by the name in its first record', async () => {
    await using stage = openCodex();
    await stage.run(['session-create', '--runtime', 'codex', '--dir', stage.folder]);
    const listed = await stage.run(['session-list', '--all', '--json']);
    expect(JSON.parse(listed.stdout).sessions).toMatchObject([{ origin: 'connectorOwned' }]);
  });
});
