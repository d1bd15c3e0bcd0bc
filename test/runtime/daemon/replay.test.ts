/**
 * Recordings played into a real daemon in recorded order: hooks over its socket, transcripts, rollouts, live files, locks
 * and processes on a disk of their own, the app-server's word from its stream. After every row the registry must
 * say what the key says.
 */
import { afterAll, describe, expect, test } from 'bun:test';
import { arguedIn } from '../../adapters/claude-code/argued.ts';
import { createDiskReplayer } from '../../adapters/claude-code/disk-replayer.ts';
import { scenarios as claudeScenarios, recording } from '../../adapters/claude-code/recording.ts';
import { type Compared, compare, promptTimes } from '../../adapters/claude-code/score.ts';
import { scenarios as codexScenarios, loadRecording } from '../../adapters/codex/recording.ts';
import { replay } from '../../adapters/codex/replayer.ts';
import { Score, timeOfDay } from '../../adapters/codex/score.ts';
import { startReplayDaemon } from './replay-daemon.ts';

const totals = { claude: { right: 0, argued: 0, rows: 0 }, codex: new Score() };

async function playClaude(scenario: string): Promise<readonly Compared[]> {
  const rows = recording(scenario);
  const disk = createDiskReplayer();
  const daemon = await startReplayDaemon('claude-code', disk.look);
  const prompted = promptTimes(rows, true);
  const compared: Compared[] = [];
  try {
    for (const row of rows) {
      daemon.clock.now = row.at;
      await disk.play(row, true);
      if (row.hook) await daemon.hook('claude', row.hook, row.at);
      await daemon.look();
      const ref = { runtimeId: 'claude-code', instanceId: 'transcripts', sessionId: row.sessionId ?? '' };
      compared.push(...compare(row, rows, daemon.find(ref), prompted, true));
    }
  } finally {
    await daemon.close();
    disk.close();
  }
  return compared;
}

describe('Claude Code: hooks, live files, transcripts and processes together', () => {
  test.each(claudeScenarios())('%s', async (scenario) => {
    const compared = await playClaude(scenario);
    const wrong = compared
      .filter((one) => !one.right)
      .map(({ row, ours }) => `${row.keyLine}: ${row.truth} -> ${ours}`);
    const argued = arguedIn(scenario, 'all feeds');
    totals.claude.rows += compared.length;
    totals.claude.right += compared.length - wrong.length;
    totals.claude.argued += argued.length;
    expect(wrong).toEqual([...argued]);
  });
});

describe('Codex: hooks, rollouts, locks, processes and the app-server’s stream together', () => {
  const recordings = codexScenarios().map(loadRecording);
  for (const one of recordings.filter(({ key }) => key.length > 0)) {
    test(one.name, async () => {
      const held = { scan: async () => ({ instances: [], sightings: [], problems: [] }) } as {
        scan: Parameters<typeof startReplayDaemon>[1];
      };
      const daemon = await startReplayDaemon('codex', () => held.scan());
      const score = new Score();
      try {
        const steps = await replay(
          one,
          { hooks: true, index: true },
          {
            at(now) {
              daemon.clock.now = now;
            },
            hook: (payload, at) => daemon.hook('codex', payload, at),
            server(sightings) {
              if (sightings) daemon.sink.sighted('codex.app-server', sightings);
              else daemon.sink.lost('codex.app-server', 'it was killed');
            },
            async look(scan) {
              held.scan = scan;
              await daemon.look();
            },
            find: daemon.find,
            sessions: daemon.sessions,
          },
        );
        for (const { row, state } of steps)
          if (row.state !== '-') score.add(`${timeOfDay(row)} ${row.what.slice(0, 60)}`, row.state, state);
      } finally {
        await daemon.close();
      }
      totals.codex.rows += score.rows;
      totals.codex.right += score.right;
      expect(score.wrong).toEqual([]);
    });
  }
});

afterAll(() => {
  const { right, argued, rows } = totals.claude;
  console.log(`claude-code: in the daemon ${right + argued}/${rows} right, ${argued} keys argued wrong`);
  console.log(`codex: in the daemon ${totals.codex.share}`);
});
