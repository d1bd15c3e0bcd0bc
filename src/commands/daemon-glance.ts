import { labelOf } from '../adapters/catalog.ts';
import type { TitlePrivacy } from '../runtime/config/schema.ts';
import { showTitle } from '../runtime/config/titles.ts';
import type { GlanceQuery } from '../runtime/daemon/connector/schema.ts';
import type { ConnectorSource } from '../runtime/daemon/connector/service.ts';
import { STATUS_LINE } from '../runtime/limits.ts';
import { isAsked } from '../runtime/notify/asked.ts';
import { folderName } from '../runtime/notify/notice.ts';
import { sortByNeed } from '../runtime/session/order.ts';
import { publicState } from '../runtime/session/project.ts';
import type { Session } from '../runtime/session/session.ts';
import type { Glance, GlanceRow } from './output/glance.ts';

/** What the daemon answers to `glance`: counts, and the few sessions that a bar or a menu has room for. */
export function glanceOf(
  source: ConnectorSource,
  query: GlanceQuery,
  titles: TitlePrivacy,
): Omit<Glance, 'ready'> {
  const present = source.sessions().filter(isPresent);
  const shown = sortByNeed(present).slice(0, STATUS_LINE.sessions);
  return {
    waiting: present.filter((session) => isAsked(session.shown)).length,
    working: present.filter(({ shown: { state } }) => state.kind === 'working').length,
    present: present.length,
    sessions: shown.map((session) => rowOf(session, source, query.titles === true ? titles : 'hidden')),
  };
}

/** Somebody is there, or at work: what lies in the archive of a runtime is no business of a status line. */
function isPresent({ shown }: Session): boolean {
  return shown.life === 'alive' || shown.state.kind === 'working' || isAsked(shown);
}

function rowOf(session: Session, source: ConnectorSource, titles: TitlePrivacy): GlanceRow {
  const { ref, facts, shown } = session;
  const folder = folderName(facts.workDir);
  const { title } = showTitle({ title: facts.title, workDir: undefined }, titles);
  return {
    runtimeId: ref.runtimeId,
    runtime: labelOf(ref.runtimeId),
    sessionId: ref.sessionId,
    state: publicState(shown.state),
    ...(folder === undefined ? {} : { folder }),
    ...(title === undefined ? {} : { title }),
    ...(isAsked(shown) ? { needsYou: true as const } : {}),
    ...(source.windowOf?.(ref) === undefined ? {} : { window: true as const }),
  };
}
