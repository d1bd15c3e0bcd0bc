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
  /** Servers that answered, but not with sessions: they want a password, say. */
  refused(): readonly Refused[];
  /** The address that the user gave with `--opencode-url`. */
  named(): string | undefined;
}

/** The same, as the watch fills it. */
export interface MutableLiveServers extends LiveServers {
  put(connected: ConnectedServer): void;
  drop(url: string): void;
  setRefused(refused: readonly Refused[]): void;
  setNamed(url: string | undefined): void;
}

export function createLiveServers(): MutableLiveServers {
  const servers = new Map<string, ConnectedServer>();
  const last: { refused: readonly Refused[]; named: string | undefined } = { refused: [], named: undefined };
  return {
    connected: () => [...servers.values()],
    refused: () => last.refused,
    put(connected) {
      servers.set(connected.server.endpoint.url, connected);
    },
    drop(url) {
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
