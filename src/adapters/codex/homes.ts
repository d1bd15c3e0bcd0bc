import { posix, win32 } from 'node:path';
import type { AdapterContext } from '../adapter.ts';

/** Where Codex keeps what we read. All of it is read only (design §8). */
export interface CodexHome {
  readonly root: string;
  /** `sessions/YYYY/MM/DD/rollout-*.jsonl`. */
  readonly sessions: string;
  /** Flat. */
  readonly archived: string;
  /** One lock file a thread; absent where only versions without locks ran (0.104). */
  readonly locks: string;
  /** Titles and renames of interactive threads, last line per id wins. */
  readonly names: string;
  /** The managed daemon's socket: a link into a folder of the system's temporary ones. */
  readonly socket: string;
  /** The managed daemon's identity. */
  readonly daemonPid: string;
}

/** `$CODEX_HOME` if non-empty, else `~/.codex` (S-620). A `CODEX_HOME` that is a link is followed by the system. */
export function codexHome(context: Pick<AdapterContext, 'env' | 'home' | 'platform'>): CodexHome {
  const path = context.platform === 'win32' ? win32 : posix;
  const named = context.env['CODEX_HOME'];
  const root = named ? path.resolve(context.home, named) : path.join(context.home, '.codex');
  return {
    root,
    sessions: path.join(root, 'sessions'),
    archived: path.join(root, 'archived_sessions'),
    locks: path.join(root, 'thread-writer-locks'),
    names: path.join(root, 'session_index.jsonl'),
    socket: path.join(root, 'app-server-control', 'app-server-control.sock'),
    daemonPid: path.join(root, 'app-server-daemon', 'daemon.pid'),
  };
}

/** Joins with the separator of the injected platform. */
export function joinPath(platform: NodeJS.Platform, ...parts: readonly string[]): string {
  return (platform === 'win32' ? win32 : posix).join(...parts);
}
