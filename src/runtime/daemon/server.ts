import type { Socket } from 'node:net';
import { WIRE } from '../limits.ts';
import { type BuildInfo, builtinService } from './builtin.ts';
import { every, type Scheduler, systemScheduler } from './clock.ts';
import { type Connection, type Routed, type Router, serveConnection } from './connection.ts';
import {
  connectionBudget,
  createListener,
  descriptorsLeft,
  type Listener,
  type ListenPlan,
} from './listener.ts';
import { type ServiceLog, silent } from './log.ts';
import { RequestError } from './protocol.ts';
import type { RequestContext, Service } from './service.ts';

/** Bounds that tests shorten; each has its value from the table of limits. */
export type ServerLimits = { readonly [Name in keyof typeof WIRE]: number };

export interface ServerOptions {
  readonly plan: ListenPlan;
  readonly services: readonly Service[];
  readonly build: BuildInfo;
  readonly log?: ServiceLog;
  readonly scheduler?: Scheduler;
  readonly tickMs?: number;
  readonly limits?: Partial<ServerLimits>;
  /** Epoch milliseconds. */
  readonly now?: () => number;
  /** Milliseconds awake, for the length of an outage (S-209). */
  readonly awakeMs?: () => number;
  /** More for `ping` and `status`. */
  readonly about?: () => Readonly<Record<string, unknown>>;
  /** Whether descriptors are left, looked at once a second; replaced in tests. */
  readonly descriptorsLeft?: () => boolean;
}

export interface Server {
  /** Binds or adopts the socket, then serves. Rejects with a `ConnectorError`. */
  listen(): Promise<void>;
  /** Resolves when somebody has asked for `shutdown`; the owner then calls `stop`. */
  readonly shutdownRequested: Promise<void>;
  /** Stops in the order of S-336. Resolves when every connection has ended and every service has stopped. */
  stop(): Promise<void>;
  readonly connections: number;
}

/** How often it is checked that accepting still works. */
const GUARD_MS = 1_000;

/** The socket server: one listener, bounded connections, services by name (S-301 … S-337). */
export function createServer(options: ServerOptions): Server {
  const limits: ServerLimits = { ...WIRE, ...options.limits };
  const log = options.log ?? silent;
  const scheduler = options.scheduler ?? systemScheduler;
  const now = options.now ?? (() => Date.now());
  const shutdown = Promise.withResolvers<void>();
  const listener = createListener(options.plan);
  const connections = new Set<Connection>();
  const state = {
    stopping: undefined as Promise<void> | undefined,
    endGuard: () => {},
    budget: limits.connections,
  };

  const builtin = builtinService({
    build: options.build,
    pid: process.pid,
    startedAt: new Date(now()).toISOString(),
    services: () => options.services,
    about: options.about,
  });
  const router = createRouter([builtin, ...options.services], () => shutdown.resolve());

  const awakeMs = options.awakeMs ?? (() => performance.now());
  const credit = (ms: number): void => {
    for (const service of options.services) service.creditOutage?.(ms);
  };
  const crowded = createOutage(awakeMs, log, limits.acceptLogGapMs, credit);
  const starved = createOutage(awakeMs, log, limits.acceptLogGapMs, credit);

  const onSocket = (socket: Socket): void => {
    if (state.stopping || connections.size >= state.budget) {
      // Accepted and closed at once: left in the queue it would make the accept fail over and over (S-337).
      if (!state.stopping) crowded.begin('too many connections');
      socket.on('error', () => {
        // The client may be gone by now; nothing is owed to it.
      });
      socket.destroy();
      return;
    }
    const connection = serveConnection({
      socket,
      router,
      scheduler,
      log,
      limits,
      tickMs: options.tickMs ?? limits.tickMs,
      onClosed: () => {
        connections.delete(connection);
        if (connections.size < state.budget) crowded.end();
      },
    });
    connections.add(connection);
  };

  return {
    async listen() {
      state.budget = connectionBudget(limits.connections);
      await listener.open(onSocket);
      const hasRoom = options.descriptorsLeft ?? descriptorsLeft;
      state.endGuard = guardAccepting({
        listener,
        onSocket,
        plan: options.plan,
        connections,
        hasRoom,
        outage: starved,
        scheduler,
        limits,
        onLost: () => {
          log('warn', 'place_lost');
          shutdown.resolve();
        },
      });
    },
    shutdownRequested: shutdown.promise,
    stop() {
      state.stopping ??= stopAll();
      return state.stopping;
    },
    get connections() {
      return connections.size;
    },
  };

  async function stopAll(): Promise<void> {
    state.endGuard();
    listener.close();
    for (const connection of connections) connection.finish();
    const ended = Promise.all([...connections].map((connection) => connection.closed));
    await within(ended, limits.drainMs, scheduler);
    for (const connection of connections) connection.abort();
    await Promise.allSettled(options.services.map((service) => service.stop?.()));
    log('info', 'stopped');
  }
}

async function within(done: Promise<unknown>, ms: number, scheduler: Scheduler): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const cancel = scheduler.after(ms, resolve);
  await Promise.race([done, promise]);
  cancel();
}

/** Finds the handler of a request. Names come from outside, so only own entries of the maps count. */
function createRouter(services: readonly Service[], onShutdown: () => void): Router {
  const byName = new Map(services.map((service) => [service.name, service]));
  return {
    async route(name, op, payload, context): Promise<Routed> {
      const service = byName.get(name);
      if (!service) throw new RequestError(`unknown service: ${name}`);
      const { ops, subscriptions = {} } = service;
      if (Object.hasOwn(subscriptions, op)) {
        const source = subscriptions[op]?.(payload);
        if (source) return { kind: 'subscribe', source };
      }
      const reply = Object.hasOwn(ops, op) ? await call(ops[op], payload, context) : undefined;
      if (!reply) throw new RequestError(`unknown ${name} op: ${op}`);
      const stops = name === 'daemon' && op === 'shutdown';
      return { ...reply, ...(stops ? { afterwards: onShutdown } : {}) };
    },
  };
}

async function call(
  handler: Service['ops'][string] | undefined,
  payload: unknown,
  context: RequestContext,
): Promise<{ readonly kind: 'reply'; readonly payload: unknown } | undefined> {
  return handler && { kind: 'reply', payload: await handler(payload, context) };
}

/** A time in which clients could not reach us: logged once a while, credited when it is over (S-209, S-337). */
interface Outage {
  begin(reason: string): void;
  end(): void;
}

function createOutage(
  now: () => number,
  log: ServiceLog,
  logGapMs: number,
  credit: (ms: number) => void,
): Outage {
  const state = { since: undefined as number | undefined, loggedAt: Number.NEGATIVE_INFINITY, logged: false };
  return {
    begin(reason) {
      if (state.since !== undefined) return;
      state.since = now();
      if (state.since - state.loggedAt < logGapMs) return;
      state.loggedAt = state.since;
      state.logged = true;
      log('warn', 'accept_failed', { reason });
    },
    end() {
      if (state.since === undefined) return;
      const ms = Math.max(0, now() - state.since);
      state.since = undefined;
      credit(ms);
      if (state.logged) log('info', 'accept_recovered', { ms });
      state.logged = false;
    },
  };
}

interface GuardOptions {
  readonly listener: Listener;
  readonly plan: ListenPlan;
  readonly onSocket: (socket: Socket) => void;
  readonly connections: ReadonlySet<Connection>;
  readonly hasRoom: () => boolean;
  readonly outage: Outage;
  readonly scheduler: Scheduler;
  readonly limits: ServerLimits;
  /** The home was removed under us: nobody finds this daemon any more. */
  readonly onLost: () => void;
}

/**
 * Looks once a second whether files can still be opened. If not, every accept fails too and Bun would spin (S-337):
 * idle clients are sent away, and if that is not enough our own listener is closed and opened again with a growing
 * back-off (K-37). The manager's socket can't be given back, so there only clients are sent away.
 * A socket that somebody has removed is bound again; a daemon whose whole home was removed ends. Bun unlinks its path
 * when it stops to listen, whoever's socket lies there by then: that one's own guard binds it again.
 */
function guardAccepting(options: GuardOptions): () => void {
  const { listener, plan, onSocket, connections, hasRoom, outage, scheduler, limits } = options;
  const state = { paused: false, cancelRetry: () => {} };

  const retry = (waitMs: number): void => {
    state.cancelRetry = scheduler.after(waitMs, async () => {
      if (listener.place() === 'lost') return options.onLost();
      const reopened = hasRoom() && (await reopen());
      if (!reopened) return retry(Math.min(waitMs * 2, limits.acceptCapMs));
      state.paused = false;
      outage.end();
    });
  };

  const reopen = (): Promise<boolean> =>
    listener.open(onSocket).then(
      () => true,
      // Still no descriptor, or the folder is gone for the moment: the next try tells.
      () => false,
    );

  const openAgain = (reason: string): void => {
    outage.begin(reason);
    state.paused = true;
    listener.close();
    retry(limits.acceptFirstMs);
  };

  const cancel = every(scheduler, GUARD_MS, () => {
    if (state.paused) return;
    if (hasRoom()) {
      const place = listener.place();
      if (place === 'lost') options.onLost();
      if (place === 'gone') openAgain('the socket was removed');
      return;
    }
    outage.begin('no file descriptors left');
    for (const connection of connections) if (connection.idle) connection.abort();
    if (plan.kind !== 'adopted') openAgain('no file descriptors left');
  });
  return () => {
    cancel();
    state.cancelRetry();
  };
}
