import type { FeedSink } from '../../runtime/feed.ts';
import type { Sighting } from '../../runtime/session/session.ts';
import { type BusEvent, sessionOf } from './bus.ts';
import { FEED } from './claims.ts';
import { applyEvent, disposeInstance, seedSession } from './events.ts';
import { factsOf } from './info.ts';
import { isBusy, type LiveSession, liveClaim, looksSame } from './live.ts';
import type { ServerView } from './server-view.ts';
import type { Server } from './servers.ts';
import { LOCAL_INSTANCE, RUNTIME_ID } from './sightings.ts';
import type { StreamTimers } from './stream.ts';
import { objectOf, textOf } from './values.ts';

/** A time of activity is told again after this long, milliseconds: deltas come by the hundred. */
const ACTIVITY_MS = 1_000;
/** How long a removed session is still shown as ended, milliseconds (K-02). */
const REMOVED_SHOWN_MS = 10_000;

export interface StreamSessionsOptions {
  readonly server: Pick<Server, 'endpoint' | 'version'>;
  /** Told by our plugin inside this process, which need not listen anywhere. */
  readonly inside?: { readonly pid: number };
  /** Whether its sessions are those of this computer's store. */
  readonly local: boolean;
  readonly sink: FeedSink;
  readonly timers: StreamTimers;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

/** All sessions of one event stream, told to the sink as they change. */
export interface StreamSessions {
  hear(event: BusEvent): void;
  /** What was so when listening began. */
  seed(view: Pick<ServerView, 'statuses' | 'requests' | 'covers' | 'coversV2'>): void;
  /**
   * What the stream has added up to, as a scan asks for it. Its silence covers every turn that was opened since, and of
   * those before the folders that the server was asked about.
   */
  view(): ServerView;
  /** The stream is lost: nothing that it said stands any more. */
  lose(reason: string): void;
}

export function createStreamSessions(options: StreamSessionsOptions): StreamSessions {
  const { server, local, inside, sink, timers, now } = options;
  const url = server.endpoint.url;
  const feed = inside ? FEED.plugin : FEED.stream;
  const scope = `${feed} ${url}`;
  const sessions = new Map<string, LiveSession>();
  const told = new Map<string, number>();
  const cancels = new Set<() => void>();
  // What ended while the server was still being asked: its answer may be the older word.
  const asked = { covers: (_directory: string | undefined): boolean => false, coversV2: false };
  const over = {
    seeded: false,
    since: Number.POSITIVE_INFINITY,
    requests: new Set<string>(),
    sessions: new Set<string>(),
  };

  const noteEnd = ({ type, properties }: BusEvent, id: string | undefined): void => {
    if (over.seeded) return;
    const request = /\.(?:replied|rejected)$/.test(type) ? textOf(properties['requestID']) : undefined;
    if (request) over.requests.add(request);
    const rests = type === 'session.idle' || objectOf(properties['status'])?.['type'] === 'idle';
    if (rests && id) over.sessions.add(id);
  };

  const sightingOf = (session: LiveSession): Sighting => {
    const claim = liveClaim(session, feed, inside ? `process ${inside.pid}` : url);
    return {
      session: {
        runtimeId: RUNTIME_ID,
        instanceId: local ? LOCAL_INSTANCE : url,
        sessionId: session.info.id,
      },
      facts: {
        ...factsOf(session.info, 'server', isBusy(session) ? session.phase : 'idle'),
        ...(session.lastAt === undefined ? {} : { lastActivityAt: session.lastAt }),
        ...(inside ? { pids: [inside.pid] } : { endpoint: url }),
      },
      ...(claim ? { claims: [claim] } : {}),
    };
  };

  const put = (next: LiveSession): void => {
    const id = next.info.id;
    const before = sessions.get(id);
    sessions.set(id, next);
    const active = next.lastAt !== undefined && next.lastAt - (told.get(id) ?? 0) >= ACTIVITY_MS;
    if (looksSame(before, next) && !active) return;
    if (next.lastAt !== undefined) told.set(id, next.lastAt);
    sink.sighted(scope, [sightingOf(next)]);
    if (next.phase === 'removed' && before?.phase !== 'removed') forgetLater(id);
  };

  // A scope can't forget one session, so all of it is withdrawn and what is left said again.
  const forgetLater = (id: string): void => {
    const cancel = timers.after(REMOVED_SHOWN_MS, () => {
      cancels.delete(cancel);
      sessions.delete(id);
      sink.lost(scope, 'a session was removed');
      sink.sighted(scope, [...sessions.values()].map(sightingOf));
    });
    cancels.add(cancel);
  };

  return {
    hear(event) {
      if (event.type === 'server.instance.disposed') {
        const directory = textOf(event.properties['directory']) ?? event.directory;
        if (directory)
          for (const session of [...sessions.values()]) put(disposeInstance(session, directory, now()));
        return;
      }
      const id = sessionOf(event);
      noteEnd(event, id);
      const next = id === undefined ? undefined : applyEvent(sessions.get(id), event, now());
      if (next) put(next);
    },
    seed({ statuses, requests, covers, coversV2 }) {
      over.seeded = true;
      over.since = now();
      Object.assign(asked, { covers, coversV2 });
      for (const [id, status] of statuses) {
        if (over.sessions.has(id)) continue;
        const own = requests.filter((one) => one.sessionId === id && !over.requests.has(one.id));
        put(seedSession(sessions.get(id), id, status.type, own, now()));
      }
    },
    view: () => ({
      endpoint: server.endpoint,
      version: server.version,
      statuses: new Map([...sessions.values()].flatMap(statusOf)),
      requests: [],
      covers: asked.covers,
      coversV2: asked.coversV2,
      listeningSince: over.since,
      endedAt: (id) => sessions.get(id)?.turn.endedAt,
      failures: [],
      skipped: 0,
    }),
    lose(reason) {
      for (const cancel of cancels) cancel();
      sessions.clear();
      sink.lost(scope, reason);
    },
  };
}

function statusOf({
  info,
  phase,
}: LiveSession): readonly (readonly [string, { readonly type: 'busy' | 'retry' }])[] {
  return phase === 'busy' || phase === 'retry' ? [[info.id, { type: phase }]] : [];
}
