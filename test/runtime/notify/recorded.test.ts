import { describe, expect, test } from 'bun:test';
import { createDecider } from '../../../src/runtime/notify/decide.ts';
import { createLedger } from '../../../src/runtime/notify/ledger.ts';
import type { Notice } from '../../../src/runtime/notify/notice.ts';
import { recording, scenarios } from '../../adapters/claude-code/recording.ts';
import { createReplayer } from '../../adapters/claude-code/replayer.ts';

const MINUTE = 60_000;

/** What is told of a recorded session of the real program, event by event and by the clock between them. */
function toldOf(scenario: string): readonly Notice[] {
  const rows = recording(scenario);
  const replayer = createReplayer();
  const decider = createDecider({
    ledger: createLedger(),
    wants: () => true,
    isQuiet: () => false,
    patienceMs: () => 10 * MINUTE,
    labelOf: () => 'Claude Code',
  });
  const start = (rows[0]?.at ?? 0) - 1;
  decider.begin([], start);
  const told: Notice[] = [];
  const look = (now: number): void => {
    replayer.registry.tick(now);
    told.push(...decider.observe(replayer.registry.sessions(), now));
  };
  const passUntil = (end: number): void => {
    for (let at = decider.nextAt(); at !== undefined && at <= end; at = decider.nextAt()) look(at);
  };
  for (const row of rows) {
    passUntil(row.at);
    replayer.play(row);
    look(row.at);
  }
  const last = rows.at(-1)?.at ?? 0;
  look(last + 1_000);
  passUntil(last + 20 * MINUTE);
  return told;
}

const kindsOf = (scenario: string) =>
  toldOf(scenario).map(({ kind, backgroundWork }) => `${kind}${backgroundWork ? '+' : ''}`);

describe('recorded sessions of Claude Code, as their owner would have been told', () => {
  const cases: readonly [string, string, readonly string[]][] = [
    ['i-bg-bash', 'N1 N2 R-08: a background command wakes the model; one notice', ['done']],
    ['i-bg-bash@2.1.197', 'the same in the older version', ['done']],
    [
      'i-subagent-bg',
      'N1 N2: a background sub-agent comes back as a prompt of its own; one notice',
      ['done'],
    ],
    ['i-subagent-bg@2.1.197', 'the same in the older version', ['done']],
    ['i-idle-notification', 'R-11: the reminder after a minute is no wait', ['done']],
    [
      'i-compact',
      'R-18: a compaction is no turn: two of three turns were at rest for two seconds',
      ['done', 'done'],
    ],
    ['i-perm-approve', 'an approval, and then the end', ['approval', 'done']],
    [
      'i-perm-deny-feedback',
      'a wait that is answered within two seconds, and a turn that its user ended',
      [],
    ],
    ['i-plan-mode', 'a plan waits for approval', ['approval']],
    ['i-ask-user-question', 'R-06: a question is an input, whatever the hook calls it', ['input', 'done']],
    ['s-can-use-tool', 'the second wait is answered at once', ['approval', 'done']],
    ['i-max-tokens', 'R-17: the output limit asks for its user', ['input']],
    ['h-api-error-401', 'S2: a login that is lost in a turn is a failure', ['failed']],
    ['i-api-error', 'a failure, and the next turn', ['failed', 'done']],
    ['i-esc-early', 'an interrupt is no news', []],
    ['i-esc-tool', 'an interrupt is no news', []],
    ['i-sighup-terminal-close', 'nor is a terminal that was closed', []],
    ['h-signal-sigkill', 'nor a killed process', []],
    ['i-exit-resume', 'N3: leaving and resuming repeats nothing', ['done', 'done', 'done']],
    ['i-subagent-fg', 'N2: a sub-agent within the turn ends nothing', ['done']],
    ['k-stop-hook-continues', 'R-05: a Stop hook that sends the model on is no end', ['done']],
    ['i-trust-dialog', 'S8: no turn, no news', []],
  ];
  for (const [scenario, says, told] of cases) {
    test(`${scenario}: ${says}`, () => expect(kindsOf(scenario)).toEqual([...told]));
  }

  test('in no recording is a turn or a wait told twice', () => {
    const all = scenarios();
    expect(all.length).toBeGreaterThan(50);
    for (const scenario of all) {
      const ids = toldOf(scenario).map(({ id }) => id);
      expect([scenario, new Set(ids).size]).toEqual([scenario, ids.length]);
    }
  });
});
