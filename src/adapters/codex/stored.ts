import { asFields } from './fields.ts';
import type { Rollout } from './rollout.ts';
import type { Turn } from './turn.ts';

/**
 * What the index keeps of a rollout: times, ids, cleaned titles and no other content. The command of an open
 * call and the text of an error are content; they are left out and the file is read again where they matter.
 */
export interface StoredRollout {
  readonly rollout: Rollout;
  /** Something was left out. */
  readonly partial: boolean;
  /** Lines that could not be read. */
  readonly skipped: number;
}

/** The schema of the stored values; raise it when their meaning changes. */
export const ROLLOUT_SCOPE = 'codex-rollouts/1';

export function storeRollout(rollout: Rollout, skipped: number): string {
  const { turn } = rollout;
  const { tool, error, calls, ...rest } = turn;
  const bareCalls = [...calls].map(([id, call]) => [id, call.asks, call.tool.name] as const);
  const stored = { ...rest, ...(tool ? { tool: { name: tool.name } } : {}), calls: bareCalls };
  const partial = error !== undefined || tool !== undefined || calls.size > 0;
  return JSON.stringify({ ...rollout, turn: stored, partial, skipped });
}

/** Reads a stored value back; `undefined` if it is not one of ours. */
export function restoreRollout(value: string): StoredRollout | undefined {
  try {
    const stored = asFields(JSON.parse(value));
    const turn = asFields(stored?.['turn']);
    const calls = turn?.['calls'];
    if (!stored || !turn || !Array.isArray(calls)) return undefined;
    const { partial, skipped, ...rollout } = stored;
    return {
      partial: partial === true,
      skipped: typeof skipped === 'number' ? skipped : 0,
      rollout: {
        ...(rollout as unknown as Rollout),
        turn: { ...(turn as unknown as Turn), calls: callsOf(calls) },
      },
    };
  } catch {
    // Written by a broken disk or another build: the file is read again.
    return undefined;
  }
}

function callsOf(stored: readonly unknown[]): Turn['calls'] {
  return new Map(
    stored.flatMap((entry) => {
      if (!Array.isArray(entry)) return [];
      const [id, asks, name] = entry as readonly unknown[];
      if (typeof id !== 'string' || typeof name !== 'string') return [];
      return [[id, { asks: asks === true, tool: { name } }] as const];
    }),
  );
}
