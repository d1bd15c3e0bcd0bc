import type { Report } from '../../../runtime/daemon/reporter.ts';
import type { WireState } from '../../../runtime/daemon/vocabulary.ts';
import { FIELD } from '../../../runtime/limits.ts';
import { asFields, type Fields, objectOf, textOf } from '../fields.ts';
import { statusOf } from '../server-view.ts';

/** One look at a server: what it has loaded, and what it says of each; `undefined` for one that could not be read. */
export type Look = ReadonlyMap<string, Fields | undefined>;

/** The reports of one look, and the threads that stand as reported after it. */
export interface LookReports {
  readonly reports: readonly Report[];
  readonly known: ReadonlySet<string>;
}

/**
 * What to report of a look at the wrapper's own server (S-763 … S-765): every thread of the user's again, each time;
 * an end for those that are no longer there. One that could not be read this time is left alone.
 */
export function reportLook(known: ReadonlySet<string>, look: Look): LookReports {
  const reports: Report[] = [];
  const next = new Set<string>();
  for (const [id, thread] of look) {
    if (thread === undefined) {
      if (known.has(id)) next.add(id);
      continue;
    }
    const state = isUsers(thread) ? stateOf(thread) : undefined;
    if (state === undefined || id.length > FIELD.idChars) continue;
    next.add(id);
    reports.push(observed(id, thread, state));
  }
  const ended = [...known].filter((id) => !next.has(id)).map(endOf);
  return { reports: [...ended, ...reports], known: next };
}

/** The end of a thread with its server. */
export function endOf(id: string): Report {
  return { op: 'end', payload: { session_id: id } };
}

function observed(id: string, thread: Fields, state: WireState): Report {
  const cwd = textOf(thread, 'cwd');
  const model = textOf(thread, 'model');
  return {
    op: 'observe',
    payload: {
      session_id: id,
      event: { stream_state: state },
      agent: 'codex',
      ...(cwd !== undefined && cwd.length <= FIELD.pathChars ? { cwd } : {}),
      ...(model !== undefined && model.length <= FIELD.nameChars ? { model } : {}),
    },
  };
}

/** A thread that a person talks to: no sub-agent, no helper such as the writer of titles (S-765). */
function isUsers(thread: Fields): boolean {
  const source = thread['source'];
  if (asFields(source) || (typeof source === 'string' && source.startsWith('subAgent'))) return false;
  if (thread['ephemeral'] === true || textOf(thread, 'parentThreadId') !== undefined) return false;
  const threadSource = textOf(thread, 'threadSource');
  return threadSource === undefined || threadSource === 'user';
}

/** `undefined` where the thread is not loaded, or in a status that nobody knows: that is its end here (S-763). */
function stateOf(thread: Fields): WireState | undefined {
  const status = statusOf(objectOf(thread, 'status'));
  switch (status?.kind) {
    case 'active':
      if (status.approval) return 'waiting_for_permission';
      return status.input ? 'waiting_for_input' : 'working';
    case 'idle':
    case 'error':
      return 'idle';
    default:
      return undefined;
  }
}
