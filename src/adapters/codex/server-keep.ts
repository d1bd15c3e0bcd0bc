import type { FeedSink } from '../../runtime/feed.ts';
import type { TimerPort } from '../../runtime/files/coalesce.ts';
import type { Logger } from '../adapter.ts';
import { connectServer, RESYNC_MS, type ServerConnection } from './app-server.ts';
import { ownerName, type ServerAddress } from './server-find.ts';
import { EMPTY_VIEW, type ServerView, serverSightings } from './server-view.ts';

/** A server that refused is asked again after this, doubled each time up to a minute. */
const RETRY_FIRST_MS = 1_000;
const RETRY_LAST_MS = 60_000;

export interface KeeperOptions {
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly log: Logger;
  readonly timers: TimerPort;
}

/** Holds one listening connection to each server that holds a lock. */
export interface ServerKeeper {
  /** Connects to those that are new; those that are gone close by themselves. */
  keep(addresses: readonly ServerAddress[]): void;
  readonly connected: number;
  close(): void;
}

interface Kept {
  readonly address: ServerAddress;
  connection?: ServerConnection;
  view: ServerView;
  failures: number;
  /** No new attempt before this, in the timers' milliseconds. */
  notBefore: number;
  connecting: boolean;
  cancelSync: () => void;
}

/** Makes a keeper; what its servers say goes to the sink under a scope for each. */
export function createServerKeeper(sink: FeedSink, options: KeeperOptions): ServerKeeper {
  const kept = new Map<string, Kept>();
  const state = { closed: false };
  const scopeOf = (one: Kept) => `codex.app-server:${ownerName(one.address)}`;

  const tell = (one: Kept, view: ServerView): void => {
    const owner = ownerName(one.address);
    const gone = [...one.view.values()]
      .filter((thread) => !view.has(thread.id))
      .map((thread) => ({ ...thread, status: { kind: 'not-loaded' } as const, at: options.now() }));
    one.view = view;
    const all = new Map([...view, ...gone.map((thread) => [thread.id, thread] as const)]);
    sink.sighted(scopeOf(one), serverSightings(all, owner));
  };

  const lose = (one: Kept, reason: string): void => {
    one.cancelSync();
    const had = one.connection !== undefined;
    delete one.connection;
    one.view = EMPTY_VIEW;
    one.failures += 1;
    const wait = Math.min(RETRY_LAST_MS, RETRY_FIRST_MS * 2 ** Math.min(one.failures - 1, 6));
    one.notBefore = options.timers.now() + (had ? 0 : wait);
    options.log.debug(`codex app-server ${ownerName(one.address)}: ${reason}`);
    if (had && !state.closed) sink.lost(scopeOf(one), reason);
  };

  const syncLater = (one: Kept): void => {
    one.cancelSync = options.timers.after(RESYNC_MS, () => {
      const { connection } = one;
      if (!connection) return;
      connection.sync().then(
        () => {
          if (one.connection === connection) syncLater(one);
        },
        (error: unknown) => {
          connection.close();
          if (one.connection === connection) lose(one, error instanceof Error ? error.message : 'no answer');
        },
      );
    });
  };

  const connect = async (one: Kept): Promise<void> => {
    one.connecting = true;
    try {
      const listener = {
        changed: (view: ServerView) => tell(one, view),
        closed: (reason: string) => lose(one, reason),
      };
      const connection = await connectServer(one.address.path, listener, options);
      if (state.closed) return connection.close();
      one.connection = connection;
      one.failures = 0;
      tell(one, connection.view);
      syncLater(one);
    } catch (error) {
      lose(one, error instanceof Error ? error.message : 'it cannot be reached');
    } finally {
      one.connecting = false;
    }
  };

  return {
    keep(addresses) {
      if (state.closed) return;
      for (const address of addresses) {
        const one = kept.get(address.path) ?? newKept(address);
        kept.set(address.path, one);
        const idle = !one.connection && !one.connecting;
        if (idle && options.timers.now() >= one.notBefore) void connect(one);
      }
      const wanted = new Set(addresses.map((address) => address.path));
      for (const [path, one] of kept)
        if (!wanted.has(path) && !one.connection && !one.connecting) kept.delete(path);
    },
    get connected() {
      return [...kept.values()].filter((one) => one.connection).length;
    },
    close() {
      state.closed = true;
      for (const one of kept.values()) {
        one.cancelSync();
        one.connection?.close();
      }
    },
  };
}

function newKept(address: ServerAddress): Kept {
  return { address, view: EMPTY_VIEW, failures: 0, notBefore: 0, connecting: false, cancelSync: () => {} };
}
