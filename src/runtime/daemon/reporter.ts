import { WRAP } from '../limits.ts';
import { type PostOutcome, post } from './sink/post.ts';
import type { End, Observe } from './vocabulary.ts';

/**
 * Reports of a wrapper to the `sessions` service. Nobody waits for them: one is under way at a time, so that they
 * arrive in order, the others queue, and what a service does not take in time is dropped (S-705).
 */

/** One report. */
export type Report =
  | { readonly op: 'observe'; readonly payload: Observe }
  | { readonly op: 'end'; readonly payload: End };

export interface Reporter {
  /** Returns at once. */
  send(report: Report): void;
  /** Resolves when everything was sent, at the latest after the time of one report. */
  finish(): Promise<void>;
}

export interface ReporterOptions {
  /** Address of the service, as `endpointOf` gives it. */
  readonly address: string;
  readonly post?: typeof post;
  readonly waitMs?: number;
  /** What became of each report. */
  done?(report: Report, outcome: PostOutcome): void;
}

export function createReporter(options: ReporterOptions): Reporter {
  const send = options.post ?? post;
  const waitMs = options.waitMs ?? WRAP.reportMs;
  const state = { queue: [] as Report[], working: Promise.resolve(), busy: false };

  async function work(): Promise<void> {
    for (let report = state.queue.shift(); report; report = state.queue.shift()) {
      const { op, payload } = report;
      const line = `${JSON.stringify({ service: 'sessions', op, payload })}\n`;
      const outcome = await send(options.address, line, { allMs: waitMs });
      options.done?.(report, outcome);
      // A service that took its time gets only what still counts: the newest of each session.
      if (outcome === 'timeout') state.queue = newest(state.queue);
    }
    state.busy = false;
  }

  return {
    send(report) {
      state.queue.push(report);
      if (state.queue.length > WRAP.reports) state.queue.shift();
      if (state.busy) return;
      state.busy = true;
      state.working = work();
    },
    async finish() {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, waitMs);
      await Promise.race([state.working, promise]);
      clearTimeout(timer);
    },
  };
}

function newest(reports: readonly Report[]): Report[] {
  const last = new Map(reports.map((report) => [report.payload.session_id, report]));
  return reports.filter((report) => last.get(report.payload.session_id) === report);
}
