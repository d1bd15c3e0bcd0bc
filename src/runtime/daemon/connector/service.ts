import type { RuntimeInstance, ScanProblem } from '../../feed.ts';
import type { Session, SessionRef } from '../../session/session.ts';
import type { InsideOps } from '../inside/service.ts';
import { RequestError } from '../protocol.ts';
import type { OpHandler, Service, ServiceStatus } from '../service.ts';
import { createPages } from './pages.ts';
import { CONNECTOR_VERSION, type GlanceQuery, type ListQuery, readConnector } from './schema.ts';

/** Operations that act on sessions. Who can do one hands its handler in; without it, it is refused by its name. */
export const ACTS = ['upload', 'send', 'abort', 'approve', 'create', 'focus'] as const;
export type Act = (typeof ACTS)[number];

/** What the service reads from: the one registry as it is now. */
export interface ConnectorSource {
  /** Resolves when everything has been looked at once. */
  readonly ready: Promise<void>;
  revision(): number;
  /** When the revision last moved, epoch milliseconds. */
  changedAt(): number;
  onChange(listener: () => void): () => void;
  now(): number;
  sessions(): readonly Session[];
  find(ref: SessionRef): Session | undefined;
  /** The folder that `focus` would open: the first of the window that shows the session (S-208). */
  windowOf?(ref: SessionRef): string | undefined;
  instances(): readonly RuntimeInstance[];
  /** By the runtime they were met with. */
  problems(): Readonly<Record<string, readonly ScanProblem[]>>;
  status(): ServiceStatus;
}

/** How rows and reasons are made: the same builders as those of the commands, which hand them in. */
export interface ConnectorBuilders {
  /** The snapshot of `session-list --json`, cut to fit a line. `at` is epoch milliseconds. */
  list(source: ConnectorSource, query: ListQuery, at: number): object;
  /** The document of `session-why --json`. Throws with words for the client. */
  why(source: ConnectorSource, session: string): object;
  /** Counts, and the few sessions that a bar or menu has room for. */
  glance?(source: ConnectorSource, query: GlanceQuery): object;
}

export interface ConnectorOptions {
  readonly source: ConnectorSource;
  readonly builders: ConnectorBuilders;
  readonly acts?: Partial<Readonly<Record<Act, OpHandler>>>;
  /** The way back through extensions inside programs. */
  readonly inside?: InsideOps;
}

/** The `connector` service on the socket (R-43): all runtimes' sessions, with their evidence, for any client. */
export function createConnectorService(options: ConnectorOptions): Service {
  const { source, builders, inside } = options;
  const pages = createPages();
  const state = { ready: false };
  source.ready.then(() => {
    state.ready = true;
  });

  const look = (cursor: string | undefined): object => {
    const page =
      cursor === undefined ? pages.first(source.sessions(), source.now()) : pages.after(cursor, source.now());
    if (!page) throw new RequestError('this look is over: begin again without a cursor');
    const head = cursor === undefined ? { instances: source.instances(), problems: source.problems() } : {};
    return { version: CONNECTOR_VERSION, revision: source.revision(), ...head, ...page };
  };

  return {
    name: 'connector',
    ops: {
      ...Object.fromEntries(ACTS.map((act) => [act, options.acts?.[act] ?? unsupported(act)])),
      ...inside?.ops,
      async list(payload) {
        const query = readConnector.list(payload);
        await source.ready;
        return { version: CONNECTOR_VERSION, ...builders.list(source, query, source.now()) };
      },
      async why(payload) {
        const { session } = readConnector.why(payload);
        await source.ready;
        return { version: CONNECTOR_VERSION, ...builders.why(source, session) };
      },
      glance(payload) {
        const query = readConnector.glance(payload);
        // A prompt waits for nobody: before the first look is over there is nothing to show, and that is said.
        const rows = state.ready ? builders.glance?.(source, query) : undefined;
        return { version: CONNECTOR_VERSION, ready: rows !== undefined, ...rows };
      },
      async look(payload) {
        const { cursor } = readConnector.look(payload);
        await source.ready;
        return look(cursor ?? undefined);
      },
      async whole(payload) {
        const { version: _, ...ref } = readConnector.whole(payload);
        await source.ready;
        const session = source.find(ref);
        if (!session) throw new RequestError(`no session ${ref.sessionId}`);
        const relatives = session.subAgents.flatMap((child) => source.find(child) ?? []);
        return {
          version: CONNECTOR_VERSION,
          session: withChain(session),
          relatives: relatives.map(withChain),
        };
      },
    },
    subscriptions: {
      ...inside?.subscriptions,
      subscribe(payload) {
        const query = readConnector.subscribe(payload);
        const revision = (): object => ({ version: CONNECTOR_VERSION, revision: source.revision() });
        // Stamped with the last change: two frames of one state are then the same bytes, and sent once (S-320).
        const rows = (): object => ({ ...revision(), ...builders.list(source, query, source.changedAt()) });
        return {
          version: source.revision,
          onChange: source.onChange,
          sample: query.rows === false ? revision : rows,
        };
      },
    },
    status: () => source.status(),
  };
}

/** A chain is made when it is asked for, so JSON alone would leave it out. */
function withChain(session: Session): Session {
  const { own, shown } = session;
  return { ...session, own: { ...own, chain: own.chain }, shown: { ...shown, chain: shown.chain } };
}

function unsupported(act: Act): OpHandler {
  return () => {
    throw new RequestError(
      `unsupported: this daemon has no "${act}" yet; use shadowob-connector ${COMMAND[act]}`,
    );
  };
}

const COMMAND: Readonly<Record<Act, string>> = {
  upload: 'session-send',
  send: 'session-send',
  abort: 'session-abort',
  approve: 'session-approve',
  create: 'session-create',
  focus: 'session-show',
};
