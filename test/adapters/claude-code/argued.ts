/** What a comparison was made from: rows alone, hooks alone, everything together, everything but the hooks. */
export type Mode = 'files alone' | 'hooks alone' | 'all feeds' | 'without hooks';

/** Keys that are wrong, by what lies beside them (`docs/decisions/0003-answer-keys-claude-code.md`). Nothing else is excused. */
export interface Argued {
  readonly scenario: string;
  /** 1-based lines of `expected.jsonl`, by the comparison in which they differ. */
  readonly lines: Partial<Record<Mode, readonly number[]>>;
  readonly key: string;
  readonly ours: string;
  readonly why: string;
}

const RESTS_ALREADY =
  'R-20: the end_turn row and the live file’s idle stand above these lines; the key goes on with `running` until the next change';
const NO_STATUS =
  'print mode of 2.1.197 has no status, so the key can’t see rest: Stop hook and end_turn row say that the turn is over';
const ASKED_OVER_STDIO =
  'print mode of 2.1.197 has no status, so the key can’t see the wait: the host answered a second and more later, as in the recording of 2.1.332, whose live file says `waiting`';

export const ARGUED: readonly Argued[] = [
  {
    scenario: 'i-esc-streaming@2.1.197',
    lines: { 'files alone': [23] },
    key: 'completed',
    ours: 'stopped',
    why: 'the row is the half reply that Esc cut, which 2.1.197 saves as `<synthetic>` after its unfinished thinking; the truth of the same line is `stopped`',
  },
  {
    scenario: 'h-resume-continue-fork',
    lines: { 'hooks alone': [123] },
    key: 'ended',
    ours: 'none',
    why: 'R-07: a SessionEnd of an id that was never seen makes no session (S-119)',
  },
  {
    scenario: 'h-resume-continue-fork@2.1.197',
    lines: { 'hooks alone': [73] },
    key: 'ended',
    ours: 'none',
    why: 'R-07: a SessionEnd of an id that was never seen makes no session (S-119)',
  },
  {
    scenario: 'i-clear',
    lines: { 'all feeds': [46], 'without hooks': [46] },
    key: 'running',
    ours: 'completed',
    why: 'the row belongs to the session that /clear has just left; the live file, which the key follows, names the new one',
  },
  {
    scenario: 'i-bang-shell',
    lines: { 'all feeds': [37, 38], 'without hooks': [37, 38] },
    key: 'running',
    ours: 'completed',
    why: RESTS_ALREADY,
  },
  {
    scenario: 'i-bang-shell@2.1.197',
    lines: { 'all feeds': [18, 19, 20, 21], 'without hooks': [19, 20, 21] },
    key: 'running',
    ours: 'completed',
    why: RESTS_ALREADY,
  },
  {
    scenario: 'k-live-install',
    lines: { 'all feeds': [34, 35, 36, 37], 'without hooks': [34, 35, 36, 37] },
    key: 'running',
    ours: 'completed',
    why: RESTS_ALREADY,
  },
  {
    scenario: 'k-live-install@2.1.197',
    lines: { 'all feeds': [14, 15, 16, 17, 18, 19], 'without hooks': [15, 16, 17, 18, 19] },
    key: 'running',
    ours: 'completed',
    why: RESTS_ALREADY,
  },
  {
    scenario: 'k-live-install@2.1.197',
    lines: { 'all feeds': [35] },
    key: 'completed',
    ours: 'running',
    why: 'the row is the third prompt, its reply comes 13 ms later by their own times; the key follows a live file whose change was too short to be recorded',
  },
  {
    scenario: 's-two-turns@2.1.197',
    lines: { 'all feeds': [12, 13, 20, 21], 'without hooks': [12, 21] },
    key: 'running',
    ours: 'completed',
    why: NO_STATUS,
  },
  {
    scenario: 's-can-use-tool@2.1.197',
    lines: { 'all feeds': [14, 18, 19, 20] },
    key: 'running',
    ours: 'waiting_for_approval',
    why: ASKED_OVER_STDIO,
  },
];

/** The argued lines of one scenario in one comparison, as `line: key -> ours`. */
export function arguedIn(scenario: string, mode: Mode): readonly string[] {
  return ARGUED.filter((argued) => argued.scenario === scenario)
    .flatMap((argued) => (argued.lines[mode] ?? []).map((line) => ({ line, argued })))
    .sort((a, b) => a.line - b.line)
    .map(({ line, argued }) => `${line}: ${argued.key} -> ${argued.ours}`);
}
