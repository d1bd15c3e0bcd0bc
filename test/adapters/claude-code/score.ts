import { publicState } from '../../../src/runtime/session/project.ts';
import type { Session } from '../../../src/runtime/session/session.ts';
import { createDiskReplayer } from './disk-replayer.ts';
import { classOf, type KeyRow, recording } from './recording.ts';
import { createReplayer } from './replayer.ts';

/** One compared row. */
export interface Compared {
  readonly row: KeyRow;
  readonly ours: string;
  /** What the rules of R-20 accept for the row; the key's own value first. */
  readonly accepted: readonly string[];
  readonly right: boolean;
  /** Right by the key's own value, where `unknown` and `idle` before a first prompt are one. */
  readonly exact: boolean;
}

/** Within this of a change of the live file either neighbour's value is right, milliseconds. */
export const LIVE_LAG_MS = 100;

const NOTHING_YET = ['idle', 'unknown'];

/** Plays one scenario with all its feeds and compares the public state with `truth` after every event. */
export function scoreAllFeeds(scenario: string): readonly Compared[] {
  const rows = recording(scenario);
  const replayer = createReplayer();
  const prompted = promptTimes(rows, true);
  return rows.flatMap((row): readonly Compared[] => {
    replayer.play(row);
    return compare(row, rows, replayer.session(row.sessionId ?? ''), prompted, true);
  });
}

/**
 * The same without hooks, through the real scan of real files: what a one-shot command sees. The hooks are no events
 * here: between a prompt and its first trace in a file nobody who reads files can know of it. And rows that the recorder
 * found in one look are read in one look: `t` is when it looked.
 */
export async function scoreWithoutHooks(scenario: string): Promise<readonly Compared[]> {
  const rows = recording(scenario);
  const replayer = createDiskReplayer();
  const prompted = promptTimes(rows, false);
  const compared: Compared[] = [];
  try {
    for (const [index, row] of rows.entries()) {
      if (row.src === 'hook') continue;
      const next = rows[index + 1];
      const sameLook = row.src === 'transcript' && next?.src === 'transcript' && next.at === row.at;
      await replayer.play(row, sameLook);
      if (sameLook) continue;
      compared.push(...compare(row, rows, replayer.session(row.sessionId ?? ''), prompted, false));
    }
    return compared;
  } finally {
    replayer.close();
  }
}

/** Our answer after a row, against the key's; nothing where no session is named. */
export function compare(
  row: KeyRow,
  rows: readonly KeyRow[],
  session: Session | undefined,
  prompted: ReadonlyMap<string, number>,
  withHooks: boolean,
): readonly Compared[] {
  // Before the first sign of any session (a process that starts, a dialog) there is nothing to compare with.
  if (!row.sessionId) return [];
  const ours = session ? publicState(session.own.state) : 'unknown';
  const accepted = acceptedFor(row, rows, prompted.get(row.sessionId), withHooks);
  const right = accepted.some((value) => classOf(value) === classOf(ours));
  const nothingYet = NOTHING_YET.includes(ours) && NOTHING_YET.includes(row.truth);
  return [{ row, ours, accepted, right, exact: nothingYet || classOf(row.truth) === classOf(ours) }];
}

/** When each session got its first prompt, by the first event that shows one. */
export function promptTimes(rows: readonly KeyRow[], withHooks: boolean): ReadonlyMap<string, number> {
  const times = new Map<string, number>();
  for (const row of rows) {
    const told = withHooks && row.hook?.['hook_event_name'] === 'UserPromptSubmit';
    const prompt = told || row.transcriptState === 'running';
    if (prompt && row.sessionId && !times.has(row.sessionId)) times.set(row.sessionId, row.at);
  }
  return times;
}

function acceptedFor(
  row: KeyRow,
  rows: readonly KeyRow[],
  promptedAt: number | undefined,
  withHooks: boolean,
): readonly string[] {
  const index = rows.indexOf(row);
  const own = rows.filter((r) => r.sessionId === row.sessionId);
  const changes = own.filter((r) => r.src.startsWith('statefile'));
  const neighbours = changes.flatMap((change, at) =>
    Math.abs(change.at - row.at) <= LIVE_LAG_MS
      ? [
          changes[at - 1]?.truth ?? 'unknown',
          rows[rows.indexOf(change) - 1]?.truth ?? 'unknown',
          change.truth,
        ]
      : [],
  );
  const values = [row.truth, ...neighbours];
  // `truth` follows the recording, not the session: a fresh id begins with the former one's outcome.
  const fresh = promptedAt === undefined || row.at < promptedAt;
  const former = rows.slice(0, index).some((r) => r.sessionId !== row.sessionId && r.truth === row.truth);
  return fresh
    ? values.flatMap((v) => (v === 'unknown' || former || !withHooks ? [v, ...NOTHING_YET] : [v]))
    : values;
}
