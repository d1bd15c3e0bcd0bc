import { SESSIONS } from '../../limits.ts';
import { mapInSlices } from '../../slices.ts';
import type { Scheduler, ServiceClock } from '../clock.ts';
import type { LogFields, ServiceLog } from '../log.ts';
import { createPeriodic, type Periodic } from '../periodic.ts';
import type { SessionsEngine } from '../sessions/engine.ts';
import type { RepoLookup } from '../sessions/repo.ts';
import { withRepo } from '../sessions/service.ts';
import type { Agent } from '../vocabulary.ts';
import type { DiscoveryPorts, RolloutPort, TranscriptPort } from './ports.ts';
import { createRolloutTracker } from './rollouts.ts';
import { createTranscriptTracker, type Known } from './transcripts.ts';

export interface DiscoveryOptions {
  readonly engine: SessionsEngine;
  readonly repos: RepoLookup;
  readonly clock: ServiceClock;
  readonly scheduler: Scheduler;
  readonly log: ServiceLog;
  readonly ports: DiscoveryPorts;
  /** What else is known of a session. */
  readonly known: (agent: Agent, id: string) => Known;
}

/** The watchers of feeds 2 and 6b (S-343). Each fails and is reset alone. */
export function createDiscoveryWatchers(options: DiscoveryOptions): readonly Periodic[] {
  const { transcripts, rollouts } = options.ports;
  return [
    ...(transcripts ? [transcriptWatcher(options, transcripts)] : []),
    ...(rollouts ? [rolloutWatcher(options, rollouts)] : []),
  ];
}

function transcriptWatcher(options: DiscoveryOptions, port: TranscriptPort): Periodic {
  const tracker = createTranscriptTracker();
  return createPeriodic({
    name: 'transcripts',
    everyMs: SESSIONS.filesPollMs,
    scheduler: options.scheduler,
    log: options.log,
    reset: tracker.reset,
    async scan(): Promise<LogFields> {
      const known = (id: string): Known => options.known('claude', id);
      const { sightings, ...counts } = tracker.scan(port.list(), options.clock.now(), known);
      // What follows a report is done once for all of a slice (`soon`).
      await mapInSlices(sightings, ({ id, path, event }) =>
        options.engine.observe({ session_id: id, event, transcript_path: path }, 'local'),
      );
      dropped(options.log, 'transcript_owner_gone', counts.ownerGone);
      dropped(options.log, 'transcript_growth_spoken_for', counts.spokenFor);
      return { files: tracker.size, ...counts };
    },
  });
}

function rolloutWatcher(options: DiscoveryOptions, port: RolloutPort): Periodic {
  const tracker = createRolloutTracker();
  return createPeriodic({
    name: 'rollouts',
    everyMs: SESSIONS.filesPollMs,
    scheduler: options.scheduler,
    log: options.log,
    reset: tracker.reset,
    async scan(): Promise<LogFields> {
      const { clock, engine } = options;
      const times = { now: clock.now(), awake: clock.awakeMs() };
      const result = tracker.scan(port.list(), times, port.head, port.locks());
      const { sightings, skipped, ...counts } = result;
      const told: (() => void)[] = [];
      for (const one of sightings) {
        if (one.kind === 'end') {
          told.push(() => engine.end({ session_id: one.id, reason: one.why }, 'local'));
          continue;
        }
        const { id, path, cwd } = one;
        const base = { session_id: id, event: 'transcript_discovered', agent: 'codex' } as const;
        // The repository is looked up before the engine is asked (S-013).
        const whole = await withRepo({ ...base, transcript_path: path, cwd }, options.repos);
        told.push(() => engine.observe(whole, 'local'));
      }
      await mapInSlices(told, (run) => run());
      dropped(options.log, 'rollout_unowned', counts.unowned);
      for (const [gate, count] of Object.entries(skipped)) dropped(options.log, `rollout_${gate}`, count);
      return { files: tracker.size, ...counts };
    },
  });
}

/** A gate that has kept sightings out; the counters add it up (S-938). */
function dropped(log: ServiceLog, gate: string, count: number): void {
  if (count > 0) log('debug', 'sighting_dropped', { gate, count });
}
