import { SESSIONS } from '../limits.ts';
import { findProcess } from '../process/identity.ts';
import type { ProcessHost } from '../process/types.ts';
import type { Scheduler } from './clock.ts';
import type { LogFields, ServiceLog } from './log.ts';
import { createPeriodic, type Periodic } from './periodic.ts';
import type { PidCandidate, SessionsEngine } from './sessions/engine.ts';

/** What a look at one pid tells (S-640, S-641). */
export interface PidSight {
  readonly alive: boolean;
  /** Opaque start time, compared for equality only; `undefined` where it can't be read. */
  readonly token: string | undefined;
}

export type PidProbe = (pid: number) => Promise<PidSight>;

/** Looks through the one process port: `/proc`, `ps`, or PowerShell. */
export function systemPidProbe(host: ProcessHost): PidProbe {
  return async (pid) => {
    const found = await findProcess(pid, host);
    return { alive: found !== null, token: found?.startToken ?? undefined };
  };
}

export interface PidWatcherOptions {
  readonly engine: Pick<SessionsEngine, 'candidates' | 'confirmPidLiveness' | 'processEnded'>;
  readonly probe: PidProbe;
  readonly scheduler: Scheduler;
  readonly log: ServiceLog;
}

/**
 * Looks at the owner processes of sessions every ten seconds (S-640 … S-648). A process that this watcher has seen
 * alive, and that is gone or replaced by another one with its number, ends its sessions; one that it never saw was
 * most likely the shell of a hook. A living one keeps the session that was last active in it from ageing out.
 */
export function createPidWatcher(options: PidWatcherOptions): Periodic {
  const { engine } = options;
  const confirmed = new Set<number>();
  return createPeriodic({
    name: 'pids',
    everyMs: SESSIONS.pidPollMs,
    scheduler: options.scheduler,
    log: options.log,
    reset: () => confirmed.clear(),
    scan: async (): Promise<LogFields> => {
      const candidates = engine.candidates().filter(({ pid }) => pid > 1);
      const pids = [...new Set(candidates.map(({ pid }) => pid))];
      const sights = new Map<number, PidSight>();
      // One after the other: on macOS each look is a process of its own.
      for (const pid of pids) sights.set(pid, await options.probe(pid));
      for (const pid of confirmed) if (!sights.has(pid)) confirmed.delete(pid);
      const counts = { candidates: candidates.length, pids: pids.length, ended: 0, confirmed: 0 };
      for (const [pid, sight] of sights) {
        const owned = candidates.filter((candidate) => candidate.pid === pid);
        if (sight.alive) applyAlive(owned, sight, counts);
        else if (confirmed.delete(pid))
          for (const { id } of owned) counts.ended += Number(engine.processEnded(id, pid));
      }
      return counts;
    },
  });

  function applyAlive(
    owned: readonly PidCandidate[],
    sight: PidSight,
    counts: { ended: number; confirmed: number },
  ): void {
    const [first] = owned;
    if (!first) return;
    const recycled = owned.filter(
      ({ pidStart }) => pidStart !== undefined && sight.token !== undefined && pidStart !== sight.token,
    );
    for (const { id, pid } of recycled) counts.ended += Number(engine.processEnded(id, pid));
    if (recycled.length > 0) confirmed.delete(first.pid);
    if (recycled.length === owned.length) return;
    confirmed.add(first.pid);
    const newest = [...owned].sort(byActivity)[0];
    if (!newest || recycled.includes(newest)) return;
    if (sight.token === undefined || !newest.prompted || newest.streamed) return;
    engine.confirmPidLiveness(newest.id, sight.token);
    counts.confirmed += 1;
  }
}

/** Newest activity first; of equals the newest start, then the lowest id, so at most one wins (S-645). */
function byActivity(a: PidCandidate, b: PidCandidate): number {
  return b.lastSeen - a.lastSeen || b.startedAt - a.startedAt || (a.id < b.id ? -1 : 1);
}
