import type { TableRow } from './recording.ts';

/** How a state and a key's word are compared (R-20, and the recordings' own words). */
export function comparable(word: string): string {
  // A call may be running or not begun; a thread before its first prompt is `idle` only if its owner is proven.
  if (word === 'tool_call') return 'running';
  if (word === 'idle') return 'unknown';
  // Copied history says nothing about the thread that it was copied into: it has not begun.
  return word.startsWith('(inherited') ? 'unknown' : word;
}

/** A key that the recorded bytes beside it prove wrong; `docs/decisions/0004-answer-keys-codex.md`. */
export interface WrongKey {
  readonly scenario: string;
  readonly file: string;
  readonly line: number;
  readonly key: string;
  readonly right: string;
}

export const WRONG_KEYS: readonly WrongKey[] = [
  // `rollout_only` says completed. But this version ends a turn that went well with the model's message, and this turn
  // has none: the file alone supports `failed`, which is also what happened (`state` of the same line).
  { scenario: 'legacy-0.104-error', file: 'rollout.jsonl', line: 10, key: 'completed', right: 'failed' },
];

/** A row whose state cannot be seen without hooks, by nature. */
export interface Hidden {
  readonly scenario: string;
  /** Time of day of the row, UTC. */
  readonly at: string;
  readonly seen: string;
  readonly why: string;
}

const STATUS_FOLLOWS =
  'only the hook is that early: the server’s status follows within 16 ms and decides from then on';
const NO_SERVER = 'codex --no-daemon has no server to ask, and a rollout never shows an approval';

export const HIDDEN_WITHOUT_HOOKS: readonly Hidden[] = [
  { scenario: 'app-server-stdio', at: '20:19:38.698', seen: 'running', why: STATUS_FOLLOWS },
  { scenario: 'app-server-stdio', at: '20:19:39.926', seen: 'running', why: STATUS_FOLLOWS },
  { scenario: 'app-server-stdio', at: '20:19:40.969', seen: 'running', why: STATUS_FOLLOWS },
  { scenario: 'app-server-stdio', at: '20:19:41.934', seen: 'running', why: STATUS_FOLLOWS },
  { scenario: 'tui-approval-answered-by-monitor', at: '20:20:40.502', seen: 'running', why: STATUS_FOLLOWS },
  { scenario: 'tui-approval-approve', at: '20:24:24.051', seen: 'running', why: STATUS_FOLLOWS },
  { scenario: 'tui-approval-codemode', at: '20:32:03.842', seen: 'running', why: STATUS_FOLLOWS },
  { scenario: 'tui-approval-decline', at: '20:24:34.829', seen: 'running', why: STATUS_FOLLOWS },
  { scenario: 'tui-approval-patch', at: '20:24:57.194', seen: 'running', why: STATUS_FOLLOWS },
  { scenario: 'tui-kill9-tui-daemon-survives', at: '20:22:32.743', seen: 'running', why: STATUS_FOLLOWS },
  { scenario: 'tui-subagent-v2-approval', at: '20:31:08.033', seen: 'running', why: STATUS_FOLLOWS },
  { scenario: 'tui-nodaemon-approval-kill9', at: '20:23:25.165', seen: 'running', why: NO_SERVER },
  { scenario: 'tui-nodaemon-approval-kill9', at: '20:23:27.978', seen: 'running', why: NO_SERVER },
];

export function timeOfDay(row: Pick<TableRow, 'at'>): string {
  return new Date(row.at).toISOString().slice(11, 23);
}

/** Counts rows, and keeps what differs as text that says where. */
export class Score {
  rows = 0;
  right = 0;
  readonly wrong: string[] = [];

  add(where: string, want: string, got: string): void {
    this.rows += 1;
    if (comparable(want) === comparable(got)) this.right += 1;
    else this.wrong.push(`${where}: ${want} expected, ${got} seen`);
  }

  get share(): string {
    return `${this.right} of ${this.rows} (${((100 * this.right) / Math.max(1, this.rows)).toFixed(2)} %)`;
  }
}
