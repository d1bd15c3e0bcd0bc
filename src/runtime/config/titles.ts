import { posix, win32 } from 'node:path';
import type { Fused, Session } from '../session/session.ts';
import type { SessionState } from '../session/state.ts';
import { clip } from '../session/text.ts';
import type { TitlePrivacy } from './schema.ts';

/** Longest title under `short`, in graphemes. */
export const SHORT_TITLE = 24;

interface Shown {
  readonly title: string | undefined;
  readonly workDir: string | undefined;
}

/** A title and a folder as `privacy.titles` lets them be shown: as they are, cut to a few words, or not at all. */
export function showTitle(shown: Shown, titles: TitlePrivacy): Shown {
  if (titles === 'full') return shown;
  if (titles === 'hidden') return { title: undefined, workDir: undefined };
  const { title, workDir } = shown;
  return {
    title: title === undefined ? undefined : clip(title, SHORT_TITLE),
    workDir: workDir === undefined ? undefined : baseName(workDir),
  };
}

function baseName(path: string): string {
  return (/^[a-z]:[\\/]|^\\\\/i.test(path) ? win32.basename(path) : posix.basename(path)) || path;
}

/** A session as a list may show it. */
export function sessionWithTitles(session: Session, titles: TitlePrivacy): Session {
  if (titles === 'full') return session;
  const { title: _title, workDir: _workDir, ...rest } = session.facts;
  const { title, workDir } = showTitle(
    { title: session.facts.title, workDir: session.facts.workDir },
    titles,
  );
  const shown = { ...(title === undefined ? {} : { title }), ...(workDir === undefined ? {} : { workDir }) };
  if (titles === 'short') return { ...session, facts: { ...rest, ...shown } };
  const { note: _note, native: _native, endpoint: _endpoint, ...facts } = rest;
  const own = withoutLabels(session.own);
  return {
    ...session,
    facts,
    own,
    shown: session.shown === session.own ? own : withoutLabels(session.shown),
  };
}

/** Without error text, and without what a tool does it to: both quote the work. */
function withoutLabels(fused: Fused): Fused {
  return { ...fused, state: withoutTool(fused.state), error: undefined, chain: [] };
}

function withoutTool(state: SessionState): SessionState {
  if (!('tool' in state) || state.tool === undefined) return state;
  return { ...state, tool: { name: state.tool.name } };
}
