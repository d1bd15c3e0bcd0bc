import { posix, win32 } from 'node:path';
import { NOTIFY } from '../limits.ts';
import type { PublicState } from '../session/project.ts';
import type { SessionRef } from '../session/session.ts';
import { clip, oneLine } from '../session/text.ts';

/** What can be told, as the settings name it. */
export type NoticeKind = 'approval' | 'input' | 'done' | 'failed' | 'runtimes' | 'test';

/**
 * The names under which sinks hear of it: the reference's, `waitingForInput` in the same form beside them, and
 * `connector.test` for `notify test`.
 */
export type NoticeEvent =
  | 'connector.runtime.ready'
  | 'connector.runtime.degraded'
  | 'connector.runtime.error'
  | 'connector.session.waitingForApproval'
  | 'connector.session.waitingForInput'
  | 'connector.session.completed'
  | 'connector.session.failed'
  | 'connector.test';

/** The event of each kind of news about a session. */
export const EVENT_OF = {
  approval: 'connector.session.waitingForApproval',
  input: 'connector.session.waitingForInput',
  done: 'connector.session.completed',
  failed: 'connector.session.failed',
} as const satisfies Record<Exclude<NoticeKind, 'runtimes' | 'test'>, NoticeEvent>;

/** What only a sink whose owner asked for it gets. */
export interface NoticeDetails {
  readonly title?: string;
  readonly workDir?: string;
  readonly error?: string;
}

/** One thing to tell. */
export interface Notice {
  /** The same for the same wait or turn, whenever it is asked for. */
  readonly id: string;
  readonly kind: NoticeKind;
  readonly event: NoticeEvent;
  /** Epoch milliseconds. */
  readonly at: number;
  /** Product names: one, or several where runtimes are told of together. */
  readonly runtimes: readonly { readonly id: string; readonly label: string }[];
  readonly session?: SessionRef;
  /** The base name of the folder, cleaned. */
  readonly folder?: string;
  readonly from: PublicState | RuntimeWord | 'new';
  readonly to: PublicState | RuntimeWord;
  readonly subject?: string;
  /** Background shells that still run. */
  readonly backgroundWork?: number;
  readonly sessions?: number;
  readonly details: NoticeDetails;
}

/** How a runtime stands. */
export type RuntimeWord = 'ready' | 'degraded' | 'error' | 'off';

/** A banner: two short lines. Names the runtime and the folder, and nothing of the work but with `details`. */
export interface Banner {
  readonly title: string;
  readonly text: string;
}

/** What a notice says to a person. */
export function bannerOf(notice: Notice, details: boolean): Banner {
  const said = sentence(notice);
  const more = details
    ? [notice.details.title, notice.details.error].filter((part) => part !== undefined)
    : [];
  return {
    title: heading(notice),
    text: [said, ...more.map((part) => clip(oneLine(part), NOTIFY.titleChars))].join('\n'),
  };
}

function heading(notice: Notice): string {
  const names = listed(notice.runtimes.map(({ label }) => oneLine(label)));
  return notice.folder === undefined ? names : `${names} · ${notice.folder}`;
}

function sentence(notice: Notice): string {
  switch (notice.kind) {
    case 'approval':
      return notice.subject === 'plan' ? 'Waiting for your yes to a plan.' : 'Waiting for your approval.';
    case 'input':
      return INPUT[notice.subject ?? ''] ?? 'Waiting for your answer.';
    case 'done':
      return `Done.${stillRuns(notice.backgroundWork ?? 0)}`;
    case 'failed':
      return `Failed.${stillRuns(notice.backgroundWork ?? 0)}`;
    case 'runtimes':
      return runtimesSentence(notice);
    case 'test':
      return 'This is a test. Notifications arrive here.';
  }
}

const INPUT: Readonly<Record<string, string>> = {
  'output-limit': 'Stopped at its output limit; waiting for you.',
  setup: 'Needs to be set up in its terminal.',
};

function stillRuns(count: number): string {
  if (count === 0) return '';
  return count === 1 ? ' One background command still runs.' : ` ${count} background commands still run.`;
}

function runtimesSentence({ runtimes, to, sessions = 0 }: Notice): string {
  const names = listed(runtimes.map(({ label }) => label));
  const is = runtimes.length === 1 ? 'is' : 'are';
  if (to === 'error') return `${names} ${is} not reachable.`;
  if (to !== 'ready') return `${names} ${is} only partly reachable.`;
  const found =
    sessions === 1 ? ' 1 local session found.' : sessions > 1 ? ` ${sessions} local sessions found.` : '';
  return `${names} ${is} ready.${found}`;
}

/** "A", "A and B", "A, B and C". */
export function listed(names: readonly string[]): string {
  const last = names.at(-1) ?? '';
  return names.length < 2 ? last : `${names.slice(0, -1).join(', ')} and ${last}`;
}

/** The base name of a folder as a notice may show it; undefined for none, and for the root. */
export function folderName(workDir: string | undefined): string | undefined {
  if (workDir === undefined) return undefined;
  const base = /^[a-z]:[\\/]|^\\\\/i.test(workDir) ? win32.basename(workDir) : posix.basename(workDir);
  const clean = clip(oneLine(base), NOTIFY.folderChars);
  return clean === '' ? undefined : clean;
}

/** A notice as programs get it: the document of the command's stdin and of the webhook. */
export function eventOf(notice: Notice, details: boolean): Readonly<Record<string, unknown>> {
  const { session, folder, subject, backgroundWork, sessions } = notice;
  const [first] = notice.runtimes;
  return {
    version: 1,
    id: notice.id,
    event: notice.event,
    at: new Date(notice.at).toISOString(),
    from: notice.from,
    to: notice.to,
    ...(session && first
      ? { runtimeId: session.runtimeId, runtime: first.label, sessionId: session.sessionId }
      : {}),
    ...(session ? {} : { runtimes: notice.runtimes }),
    ...(folder === undefined ? {} : { folder }),
    ...(subject === undefined ? {} : { waitingOn: subject }),
    ...(backgroundWork ? { backgroundWork } : {}),
    ...(sessions === undefined ? {} : { sessions }),
    text: lineOf(notice),
    ...(details ? { details: notice.details } : {}),
  };
}

/** A notice on one line, without details. */
export function lineOf(notice: Notice): string {
  const { title, text } = bannerOf(notice, false);
  return notice.kind === 'runtimes' ? text : `${title}: ${text}`;
}
