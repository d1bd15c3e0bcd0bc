import { JOURNAL } from '../../limits.ts';
import { createSessionsEngine } from '../sessions/engine.ts';
import type { Entry } from '../sessions/entry.ts';
import { nanosToMs, parseNanos } from '../stamp.ts';
import { byStamp, type JournalAgent, type JournalRecord, payloadOf } from './record.ts';

/** What can be found out about the life of a session from outside (S-522). */
export interface LifeProbes {
  /** The process that has this pid now; `startedAt` in epoch milliseconds, null when it can't be read. */
  process(pid: number): Promise<{ readonly startedAt: number | null } | null>;
  /**
   * Whether some process holds the Codex thread's writer lock. `free`: the lock file is there and nobody holds it;
   * `absent` and `unknown` say nothing, since the thread may lie in another home.
   */
  codexLock(sessionId: string): 'held' | 'free' | 'absent' | 'unknown';
}

/** What becomes of a journal at first sight (S-521). */
export type Verdict =
  | { readonly kind: 'accept'; readonly proven: boolean }
  | { readonly kind: 'reject'; readonly reason: 'ended' | 'too_old' | 'dead' | 'stale' }
  /** Nothing usable in it. */
  | { readonly kind: 'unreadable' };

/**
 * Judges a journal by a replay into a scratch engine that forgets nothing (S-521), and by proof of life (S-522).
 *
 * @param now epoch milliseconds
 */
export async function judgeJournal(
  whose: { readonly agent: JournalAgent; readonly id: string },
  records: readonly JournalRecord[],
  probes: LifeProbes,
  now: number,
): Promise<Verdict> {
  const sorted = [...records].sort(byStamp);
  const newest = sorted.at(-1);
  if (!newest) return { kind: 'unreadable' };
  const age = now - msOf(newest);
  if (age > JOURNAL.ageMs) return { kind: 'reject', reason: 'too_old' };
  const entry = replayScratch(sorted, now);
  if (!entry || entry.shown.phase === 'ended') return { kind: 'reject', reason: 'ended' };
  const proof = await proofOfLife(whose, entry, sorted, probes);
  if (proof === 'dead') return { kind: 'reject', reason: 'dead' };
  if (proof === 'alive') return { kind: 'accept', proven: true };
  return age <= JOURNAL.unprovenMs ? { kind: 'accept', proven: false } : { kind: 'reject', reason: 'stale' };
}

function msOf(record: JournalRecord): number {
  return nanosToMs(parseNanos(record.ts) ?? 0n);
}

/** The session that these records, in their order, add up to. */
export function replayScratch(sorted: readonly JournalRecord[], now: number): Readonly<Entry> | undefined {
  const engine = createSessionsEngine({ clock: { now: () => now, awakeMs: () => 0 }, reaps: false });
  for (const record of sorted) {
    if (record.op === 'observe') engine.observe(payloadOf(record), 'replay');
    else engine.end(payloadOf(record), 'replay');
  }
  const [first] = sorted;
  return first && engine.entry(first.session_id);
}

/**
 * A held lock, or an owner process that is not younger than the first record with its pid. A pid that is gone,
 * recycled or unreadable only proves nothing: it may have been the shell of one hook.
 */
async function proofOfLife(
  whose: { readonly agent: JournalAgent; readonly id: string },
  entry: Readonly<Entry>,
  sorted: readonly JournalRecord[],
  probes: LifeProbes,
): Promise<'alive' | 'dead' | 'unknown'> {
  const lock = whose.agent === 'codex' ? probes.codexLock(entry.id) : 'unknown';
  if (lock === 'held') return 'alive';
  if (lock === 'free') return 'dead';
  const { pid } = entry;
  const first = sorted.find((record) => record.pid === pid);
  if (pid === undefined || !first) return 'unknown';
  const found = await probes.process(pid);
  if (found === null || found.startedAt === null) return 'unknown';
  return found.startedAt <= msOf(first) + JOURNAL.startSlackMs ? 'alive' : 'unknown';
}
