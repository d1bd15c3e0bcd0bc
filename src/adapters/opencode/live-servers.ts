import type { ServerView } from './server-view.ts';
import type { Refused, Server } from './servers.ts';

/** A server whose event stream is held, and what the stream has added up to. */
export interface ConnectedServer {
  readonly server: Server;
  /** Whether its sessions are those of this computer's store. */
  readonly local: boolean;
  view(): ServerView;
}

/** What a watch knows of servers, so that a scan beside it need not ask them again. */
export interface LiveServers {
  connected(): readonly ConnectedServer[];
  /** Whether servers were looked for, and each that was found has told what it runs, or was lost. */
  settled(): boolean;
  /** Servers that answered, but not with sessions: they want a password, say. */
  refused(): readonly Refused[];
  /** The address that the user gave with `--opencode-url`. */
  named(): string | undefined;
}

/** The same, as the watch fills it. */
export interface MutableLiveServers extends LiveServers {
  /** The servers that a look has found; until each is put or dropped, nothing is settled. */
  await(urls: readonly string[]): void;
  put(connected: ConnectedServer): void;
  drop(url: string): void;
  setRefused(refused: readonly Refused[]): void;
  setNamed(url: string | undefined): void;
}

export function createLiveServers(): MutableLiveServers {
  const servers = new Map<string, ConnectedServer>();
  const awaited = new Set<string>();
  const state = { looked: false };
  const last: { refused: readonly Refused[]; named: string | undefined } = { refused: [], named: undefined };
  return {
    connected: () => [...servers.values()],
    refused: () => last.refused,
    settled: () => state.looked && awaited.size === 0,
    await(urls) {
      state.looked = true;
      for (const url of urls) awaited.add(url);
    },
    put(connected) {
      const { url } = connected.server.endpoint;
      awaited.delete(url);
      servers.set(url, connected);
    },
    drop(url) {
      awaited.delete(url);
      servers.delete(url);
    },
    named: () => last.named,
    setRefused(refused) {
      last.refused = refused;
    },
    setNamed(url) {
      last.named = url;
    },
  };
}
