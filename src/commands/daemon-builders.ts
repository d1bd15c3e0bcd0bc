import type { Adapter } from '../adapters/adapter.ts';
import type { TitlePrivacy } from '../runtime/config/schema.ts';
import type { ListQuery } from '../runtime/daemon/connector/schema.ts';
import type { ConnectorBuilders, ConnectorSource } from '../runtime/daemon/connector/service.ts';
import { readMonitor, type SessionsView, toSnapshot } from './collect.ts';
import { glanceOf } from './daemon-glance.ts';
import { readFilter, type SessionFilter } from './filter.ts';
import { resolveSession } from './resolve.ts';
import { concerns, whyData } from './session-why.ts';

/** The rows and reasons of the `connector` service, made as the commands make theirs. */
export function connectorBuilders(
  adapters: readonly Adapter[],
  titles: () => TitlePrivacy = () => 'full',
): ConnectorBuilders {
  return {
    glance: (source, query) => glanceOf(source, query, titles()),
    list(source, query, at) {
      const filter = filterOf(query);
      const chosen = adapters.filter((adapter) => filter.runtimes?.includes(adapter.id) ?? true);
      const look = readMonitor(viewOf(source, filter.runtimes), filter, { titles: titles(), problems: [] });
      const limited =
        filter.limit === undefined ? look : { ...look, sessions: look.sessions.slice(0, filter.limit) };
      // Whatever was asked for, it must fit on one line of the socket (S-304): `truncated` says what did not.
      const snapshot = toSnapshot(limited, chosen, { ...filter, all: false, limit: undefined }, at);
      const total = look.sessions.length;
      const shown = snapshot.sessions.length;
      return shown < total ? { ...snapshot, truncated: { shown, total } } : snapshot;
    },
    why(source, session) {
      const view = viewOf(source, undefined);
      const found = resolveSession(view, session);
      const relatives = found.subAgents.flatMap((ref) => source.find(ref) ?? []);
      return whyData(
        found,
        relatives,
        view.problems().filter((problem) => concerns(problem, found)),
      );
    },
  };
}

function filterOf(query: ListQuery): SessionFilter {
  const { since, dir } = query;
  const words = readFilter({ state: query.states?.join(','), runtime: query.runtimes?.join(',') }, '/', 0);
  return {
    ...words,
    since: since ?? undefined,
    dir: dir ?? undefined,
    limit: query.limit ?? undefined,
    all: query.all === true,
    redact: query.redact === true,
  };
}

function viewOf(source: ConnectorSource, runtimes: readonly string[] | undefined): SessionsView {
  const chosen = (id: string) => runtimes?.includes(id) ?? true;
  const sessions = source.sessions().filter((session) => chosen(session.ref.runtimeId));
  return {
    registry: { sessions: () => [...sessions], find: source.find, size: sessions.length },
    instances: () => source.instances().filter((one) => chosen(one.runtimeId)),
    problems: () =>
      Object.entries(source.problems()).flatMap(([id, problems]) => (chosen(id) ? problems : [])),
  };
}
