import type { Adapter, AdapterContext, Logger } from '../adapters/adapter.ts';
import type { SessionIndex } from '../runtime/store/session-index.ts';
import type { Style } from './output/style.ts';

/** Everything a command may touch, injected: the machine, the clock, the terminal. */
export interface World {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  /** The folder the command was started in. */
  readonly cwd: string;
  readonly platform: NodeJS.Platform;
  readonly version: string;
  /** Epoch milliseconds. */
  now(): number;
  readonly log: Logger;
  readonly style: Style;
  /** Aborted by SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
  /** The runtimes whose sessions can be seen, in the order of the snapshot (`cli-surface.md` §5). */
  adapters(): Promise<readonly Adapter[]>;
  /** What is known of unchanged files; undefined where the connector home can't be used. */
  index(): SessionIndex | undefined;
  /** Program and first arguments with which this program starts itself again. */
  readonly self: readonly string[];
  /** What is piped into the command. `read` gives at most one byte more than the limit. */
  readonly stdin: { readonly isTerminal: boolean; read(limit: number): Promise<Uint8Array> };
}

/** The part of the world that adapters get. */
export function adapterContext(world: World): AdapterContext {
  const index = world.index();
  return {
    env: world.env,
    home: world.home,
    platform: world.platform,
    now: world.now,
    ...(index ? { index } : {}),
    log: world.log,
    signal: world.signal,
  };
}
