import { petSignals } from '../../runtime/session/pet.ts';
import { publicState } from '../../runtime/session/project.ts';
import type { Session, SessionRef } from '../../runtime/session/session.ts';
import { oneLine } from '../../runtime/session/text.ts';
import { age } from './age.ts';
import { stateWords } from './states.ts';
import type { Style } from './style.ts';
import { type Cell, type Column, table } from './table.ts';

const COLUMNS: readonly Column[] = [
  { head: 'SESSION' },
  { head: 'RUNTIME' },
  { head: 'STATE' },
  { head: 'AGE', align: 'right' },
  { head: 'FOLDER', shrinkTo: 10 },
  { head: 'TITLE', shrinkTo: 12 },
];

export interface TableOptions {
  readonly now: number;
  readonly home: string;
  readonly redact: boolean;
  labelOf(runtimeId: string): string;
  idOf(ref: SessionRef): string;
}

/** The list of sessions as people read it. */
export function sessionTable(style: Style, sessions: readonly Session[], options: TableOptions): string {
  const rows = sessions.map((session) => sessionCells(session, options));
  return table(style, COLUMNS, rows);
}

function sessionCells(session: Session, options: TableOptions): Cell[] {
  const { facts, shown } = session;
  const state = stateWords(session);
  const since =
    shown.state.kind === 'waiting' ? (shown.evidence?.at ?? facts.lastActivityAt) : facts.lastActivityAt;
  return [
    { text: options.idOf(session.ref) },
    { text: options.labelOf(session.ref.runtimeId) },
    state,
    { text: age(since, options.now) },
    { text: options.redact ? '' : shortPath(facts.workDir, options.home) },
    { text: options.redact ? '' : titleText(session), look: 'dim' },
  ];
}

function titleText(session: Session): string {
  const { facts, shown } = session;
  const doing = shown.state.kind === 'working' ? petSignals(shown.state).petActivity?.label : undefined;
  const extra = [
    session.subAgents.length > 0 ? `${session.subAgents.length} sub-agents` : undefined,
    facts.note,
    publicState(shown.state) === 'failed' ? shown.error : undefined,
    doing,
  ].filter((part): part is string => part !== undefined && part !== '');
  const title = facts.title ?? '(no title)';
  return oneLine(extra.length > 0 ? `${title} [${extra.join('; ')}]` : title);
}

/** A path as people write it: `~` for home; control characters never reach the terminal. */
export function shortPath(path: string | undefined, home: string): string {
  if (path === undefined) return '-';
  const below = home !== '' && (path === home || path.startsWith(`${home}/`) || path.startsWith(`${home}\\`));
  return oneLine(below ? `~${path.slice(home.length)}` : path);
}
