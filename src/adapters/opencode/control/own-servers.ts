import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { readBounded, type WriteResult, writePrivate } from '../../../runtime/files/private-file.ts';
import { identityFromProc, isAlive } from '../../../runtime/process/identity.ts';
import type { ProcessIdentity } from '../../../runtime/process/types.ts';
import { connectorHome } from '../../../runtime/store/home.ts';
import type { Credentials } from '../http.ts';
import { numberOf, objectOf, parseJson, textOf } from '../values.ts';

/**
 * A server of OpenCode's that we have started. `managed`: the owner asked for one that stays (opt-in); `turn`: one
 * process of ours uses it for one session and ends it.
 */
export interface OwnServer {
  readonly life: 'managed' | 'turn';
  /** A pid counts with its start alone. */
  readonly process: ProcessIdentity;
  /** An address of this computer, without a slash at the end. */
  readonly url: string;
  /** Generated; lies in this 0600 file and in the server's own environment, never on a command line. */
  readonly credentials: Credentials;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  /** When a process of ours last had work for it, epoch milliseconds. */
  readonly usedAt: number;
  /** The process of ours that ends a `turn` server; when that one is gone, anybody of ours may. */
  readonly owner?: ProcessIdentity;
}

const RECORD_BYTES = 16 * 1024;
const MANAGED = 'managed.json';
/** Whatever a record says, a password of ours never leaves this computer. */
const LOOPBACK = /^http:\/\/127\.0\.0\.1:\d{1,5}$/;

/**
 * Where the records lie: `control/opencode` below the connector home. Not in `run/`: that folder's existence says that
 * a service has run.
 */
export function serversFolder(home: string): string {
  return join(home, 'control', 'opencode');
}

/** The one managed server has a fixed name, so that everybody finds it; of the others there may be many. */
function pathOf(home: string, { life, process }: Pick<OwnServer, 'life' | 'process'>): string {
  return join(serversFolder(home), life === 'managed' ? MANAGED : `turn-${process.pid}.json`);
}

/** Writes a server down: private from birth, and not flushed, since no process outlives a power cut. */
export function writeServer(home: string, server: OwnServer): WriteResult {
  const text = `${JSON.stringify({ version: 1, ...server })}\n`;
  return writePrivate(pathOf(home, server), text, { durable: false });
}

/** Removes the record of a server that has ended, unless another one has taken its name. */
export function forgetServer(home: string, server: OwnServer): void {
  const path = pathOf(home, server);
  const now = readServer(path);
  if (now && !isSame(now.process, server.process)) return;
  rmSync(path, { force: true });
}

/** All records, alive or not; what isn't one is skipped. */
export function listServers(home: string): readonly OwnServer[] {
  const folder = serversFolder(home);
  return namesIn(folder)
    .filter((name) => /^(?:managed|turn-\d+)\.json$/.test(name))
    .flatMap((name) => readServer(join(folder, name)) ?? []);
}

/**
 * Whether the process of a record still runs. A pid that now belongs to another process is not it; where the start of
 * a process costs a program to learn (all but Linux), the pid alone is asked, which only ever sends a password to
 * this computer.
 */
export function seemsAlive({ process }: Pick<OwnServer, 'process'>, platform: NodeJS.Platform): boolean {
  if (!isAlive(process.pid)) return false;
  if (platform !== 'linux' || process.startToken === null) return true;
  return identityFromProc(process.pid)?.startToken === process.startToken;
}

/** Whether two records speak of one process. */
export function isSame(a: ProcessIdentity, b: ProcessIdentity): boolean {
  return a.pid === b.pid && a.startToken === b.startToken;
}

function readServer(path: string): OwnServer | undefined {
  const read = readBounded(path, RECORD_BYTES);
  if (read.kind !== 'read') return undefined;
  const raw = objectOf(parseJson(read.bytes.toString('utf8')));
  const life = raw?.['life'];
  const process = readIdentity(raw?.['process']);
  const url = textOf(raw?.['url']);
  const credentials = objectOf(raw?.['credentials']);
  const user = textOf(credentials?.['user']);
  const password = textOf(credentials?.['password']);
  const startedAt = numberOf(raw?.['startedAt']);
  const usedAt = numberOf(raw?.['usedAt']);
  const owner = readIdentity(raw?.['owner']);
  if (raw?.['version'] !== 1 || (life !== 'managed' && life !== 'turn') || !process) return undefined;
  if (!url || !LOOPBACK.test(url) || !user || !password) return undefined;
  if (startedAt === undefined || usedAt === undefined) return undefined;
  return {
    life,
    process,
    url,
    credentials: { user, password },
    startedAt,
    usedAt,
    ...(owner ? { owner } : {}),
  };
}

function readIdentity(value: unknown): ProcessIdentity | undefined {
  const raw = objectOf(value);
  const pid = numberOf(raw?.['pid']);
  if (pid === undefined || !Number.isInteger(pid) || pid <= 1) return undefined;
  return { pid, startToken: textOf(raw?.['startToken']) ?? null };
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    // No server of ours has run yet.
    return [];
  }
}

/** The records of servers that run. */
export type OwnServers = readonly OwnServer[];

/** Our servers that run, for whoever asks a server: the password of each is in its record. */
export function ownServersOf({
  env,
  home,
  platform,
}: {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly platform: NodeJS.Platform;
}): OwnServers {
  return listServers(connectorHome(env, home)).filter((server) => seemsAlive(server, platform));
}

/** Whether a `turn` server has a process of ours that will end it. */
export function isOwned({ owner }: OwnServer, platform: NodeJS.Platform): boolean {
  return owner !== undefined && seemsAlive({ process: owner }, platform);
}

/** Whether it is this process that ends it. */
export function isMine({ owner }: OwnServer): boolean {
  return owner?.pid === process.pid;
}

/** `localhost` and `127.0.0.1` are one listener. */
export function isSameUrl(a: string, b: string): boolean {
  return a.replace('//localhost:', '//127.0.0.1:') === b.replace('//localhost:', '//127.0.0.1:');
}
