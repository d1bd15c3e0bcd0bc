import type { RuntimeInstance } from '../feed.ts';
import { NOTIFY } from '../limits.ts';
import type { Notice, NoticeEvent, RuntimeWord } from './notice.ts';

/** Tells of runtimes that come and go, several of one moment in one notice. Pure. */
export interface RuntimeDecider {
  begin(instances: readonly RuntimeInstance[]): void;
  /** What is due by `now`. `sessionsOf` counts the sessions known of runtimes. */
  observe(
    instances: readonly RuntimeInstance[],
    now: number,
    sessionsOf: (runtimeIds: readonly string[]) => number,
  ): readonly Notice[];
  nextAt(): number | undefined;
}

interface Moving {
  readonly to: RuntimeWord;
  readonly since: number;
}

const EVENTS: Readonly<Record<Exclude<RuntimeWord, 'off'>, NoticeEvent>> = {
  ready: 'connector.runtime.ready',
  degraded: 'connector.runtime.degraded',
  error: 'connector.runtime.error',
};

export function createRuntimeDecider(labelOf: (runtimeId: string) => string): RuntimeDecider {
  /** What was last told, or found at the beginning. */
  const told = new Map<string, RuntimeWord>();
  const moving = new Map<string, Moving>();

  const note = (words: ReadonlyMap<string, RuntimeWord>, now: number): void => {
    for (const [id, word] of words) {
      if ((told.get(id) ?? 'off') === word) moving.delete(id);
      else if (moving.get(id)?.to !== word) moving.set(id, { to: word, since: now });
    }
  };

  return {
    begin(instances) {
      told.clear();
      moving.clear();
      for (const [id, word] of wordsOf(instances)) told.set(id, word);
    },
    observe(instances, now, sessionsOf) {
      note(wordsOf(instances), now);
      // One that has settled takes those along that move the same way at the same time.
      const settled = new Set(
        [...moving.values()].filter(({ since }) => since + NOTIFY.settleMs <= now).map(({ to }) => to),
      );
      return [...settled].flatMap((to) => {
        const ids = [...moving].filter(([, move]) => move.to === to).map(([id]) => id);
        const from = told.get(ids[0] ?? '') ?? 'off';
        for (const id of ids) {
          told.set(id, to);
          moving.delete(id);
        }
        // A server that its owner has ended is no news.
        if (to === 'off') return [];
        const sessions = sessionsOf(ids);
        return {
          id: `${EVENTS[to]} ${ids.join(' ')} ${now}`,
          kind: 'runtimes' as const,
          event: EVENTS[to],
          at: now,
          runtimes: ids.map((id) => ({ id, label: labelOf(id) })),
          from,
          to,
          ...(to === 'ready' ? { sessions } : {}),
          details: {},
        };
      });
    },
    nextAt() {
      const times = [...moving.values()].map(({ since }) => since + NOTIFY.settleMs);
      return times.length === 0 ? undefined : Math.min(...times);
    },
  };
}

/** How each runtime stands by its instances: some well and some not is "degraded". */
function wordsOf(instances: readonly RuntimeInstance[]): ReadonlyMap<string, RuntimeWord> {
  const ids = new Set(instances.map(({ runtimeId }) => runtimeId));
  return new Map([...ids].map((id) => [id, wordOf(instances.filter(({ runtimeId }) => runtimeId === id))]));
}

function wordOf(instances: readonly RuntimeInstance[]): RuntimeWord {
  const isWell = instances.some(({ status }) => status === 'running' || status === 'available');
  const isIll = instances.some(({ status }) => status === 'error');
  if (isWell) return isIll ? 'degraded' : 'ready';
  return isIll ? 'error' : 'off';
}
