import { join } from 'node:path';
import { type SessionRef, sessionKey } from '../session/session.ts';

/**
 * Where acting on sessions keeps its files, below the connector home. Not in `run/`: that folder's existence says
 * that a service has run. Names are hashes, because ids of runtimes may hold anything and socket paths must
 * stay short (S-332).
 */
export interface SessionPlaces {
  /** Held by the system for as long as a process of ours may push; never deleted (see `daemon/lock.ts`). */
  readonly lock: string;
  /** Which process of ours has the session, and its child: ids and times only. */
  readonly record: string;
  readonly socket: string;
  /** Folder of the messages that wait. */
  readonly queue: string;
}

const folder = (home: string, name: 'hosts' | 'locks' | 'queue'): string => join(home, 'control', name);

/** Folder of the host records. */
export function hostsFolder(home: string): string {
  return folder(home, 'hosts');
}

/** Folder above the queues of all sessions. */
export function queuesFolder(home: string): string {
  return folder(home, 'queue');
}

/** The folders that must be there before a lock can be taken or a socket bound. */
export function foldersOf(home: string): readonly string[] {
  return [folder(home, 'locks'), folder(home, 'hosts')];
}

/** The places of one session. */
export function placesOf(home: string, session: SessionRef): SessionPlaces {
  const name = new Bun.CryptoHasher('sha256').update(sessionKey(session)).digest('hex').slice(0, 16);
  return {
    lock: join(folder(home, 'locks'), `${name}.lock`),
    record: join(folder(home, 'hosts'), `${name}.json`),
    socket: join(folder(home, 'hosts'), `${name}.sock`),
    queue: join(folder(home, 'queue'), name),
  };
}
