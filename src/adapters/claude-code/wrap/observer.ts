import type { Report } from '../../../runtime/daemon/reporter.ts';
import type { PostOutcome } from '../../../runtime/daemon/sink/post.ts';
import { FIELD } from '../../../runtime/limits.ts';
import type { Diagnostics } from './diagnostics.ts';
import {
  type EffectiveState,
  effectiveState,
  isChatter,
  type LineNote,
  NEW_STREAM,
  observeLine,
  type StreamState,
} from './stream-state.ts';
import type { Side, TeeCounts } from './tee.ts';

/** Turns what is said into reports: on each change, and again while something goes on (S-705, S-715, S-716). */
export interface Observer {
  line(side: Side, text: string): void;
  /** Whether a line can be left out unread; see `isChatter`. */
  idle(side: Side, start: Uint8Array): boolean;
  /** To be called every 30 s: says `working` and waits again, never `idle` (S-716). */
  keepAlive(): void;
  /** The program has gone: ends its session, if it ever had one. */
  end(): void;
  /** What became of a report, for the diagnostics. */
  reported(report: Report, outcome: PostOutcome): void;
  /** Writes the counters into the diagnostics. */
  summary(counts: Readonly<TeeCounts>, event: 'summary' | 'final_summary'): void;
}

export interface ObserverOptions {
  readonly childPid: number;
  send(report: Report): void;
  /** The model has become known, or another one. */
  model(id: string): void;
  readonly diagnostics: Diagnostics | undefined;
}

export function createObserver(options: ObserverOptions): Observer {
  const { childPid, diagnostics } = options;
  const state = {
    stream: NEW_STREAM as StreamState,
    said: undefined as { readonly state: EffectiveState; readonly model: string | undefined } | undefined,
  };
  const notes: Record<LineNote, number> = {
    parse_failure: 0,
    unknown_control: 0,
    missing_permission_id: 0,
    permission_cap: 0,
  };

  function say(): void {
    const { sessionId, cwd, model } = state.stream;
    if (sessionId === undefined || sessionId.length > FIELD.idChars) return;
    const now = effectiveState(state.stream);
    state.said = { state: now, model };
    options.send({
      op: 'observe',
      payload: {
        session_id: sessionId,
        event: { stream_state: now },
        pid: childPid,
        ...(cwd !== undefined && cwd.length <= FIELD.pathChars ? { cwd } : {}),
        ...(model !== undefined && model.length <= FIELD.nameChars ? { model } : {}),
      },
    });
    diagnostics?.record('state', { session_id: sessionId, child_pid: childPid, state: now });
  }

  function endOf(sessionId: string | undefined): void {
    if (sessionId === undefined || state.said === undefined) return;
    options.send({ op: 'end', payload: { session_id: sessionId, pid: childPid } });
    state.said = undefined;
  }

  return {
    line(side, text) {
      const before = state.stream;
      const step = observeLine(before, side, text);
      if (step.note) notes[step.note] += 1;
      state.stream = step.state;
      const { sessionId, model } = step.state;
      if (sessionId !== before.sessionId) {
        // `/clear`, or the id of a start that became a resume: one process has one session.
        endOf(before.sessionId);
        diagnostics?.record('identity', { session_id: sessionId, child_pid: childPid });
      }
      if (model !== undefined && model !== before.model) options.model(model);
      const changed = effectiveState(step.state) !== state.said?.state || model !== state.said.model;
      if (changed) say();
    },
    idle: (side, start) => isChatter(state.stream, side, start),
    keepAlive() {
      if (effectiveState(state.stream) !== 'idle') say();
    },
    end: () => endOf(state.stream.sessionId),
    reported({ op, payload }, outcome) {
      diagnostics?.record('report', { session_id: payload.session_id, child_pid: childPid, op, outcome });
    },
    summary(counts, event) {
      diagnostics?.record(event, {
        session_id: state.stream.sessionId,
        child_pid: childPid,
        tee_full: counts.full,
        tee_closed: counts.closed,
        tee_oversize: counts.oversize,
        tee_non_utf8: counts.nonUtf8,
        parse_failures: notes.parse_failure,
        unknown_controls: notes.unknown_control,
        missing_permission_ids: notes.missing_permission_id,
        permission_cap_drops: notes.permission_cap,
        diagnostic_drops: diagnostics.dropped,
      });
    },
  };
}
