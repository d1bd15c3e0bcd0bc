import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { createServer } from 'node:net';
import { lockSession } from '../../../runtime/control/push-lock.ts';
import type { Refusal } from '../../../runtime/control.ts';
import { CONTROL } from '../../../runtime/limits.ts';
import { checkProcess, findProcess, identityFromProc } from '../../../runtime/process/identity.ts';
import { killTree } from '../../../runtime/process/kill-tree.ts';
import { type DetachedChild, startDetached } from '../../../runtime/process/spawn.ts';
import type { KillReport, ProcessHost, ProcessIdentity } from '../../../runtime/process/types.ts';
import { needsCmd } from '../../../runtime/process/windows-command.ts';
import type { ControlContext } from '../../adapter.ts';
import { createServerApi } from '../server-api.ts';
import type { Server } from '../servers.ts';
import { RUNTIME_ID } from '../sightings.ts';
import {
  forgetServer,
  isOwned,
  listServers,
  type OwnServer,
  seemsAlive,
  writeServer,
} from './own-servers.ts';
import { findOpencode, type OpencodeProgram } from './program.ts';

/** How long a server may take until it listens (seen: 3 s cold), milliseconds. */
const START_MS = 60_000;
/** A free port may be taken between our look and the server's. */
const TRIES = 3;
/** A managed server that nobody has used for this long is ended by whoever comes by, milliseconds. */
export const IDLE_MS = CONTROL.keepMs;

export interface StartOptions {
  readonly life: OwnServer['life'];
  /** The folder it starts in; one that is missing is replaced by the user's home. */
  readonly directory: string;
}

/**
 * Starts `opencode serve` on a free port of 127.0.0.1 with a generated password. The port is chosen here: `--port 0`
 * takes 4096 first, which is the user's. It is written down before it listens, which takes seconds: if this process is
 * killed meanwhile, the next one finds it (K1). Resolves once it says that it listens.
 */
export async function startOwnServer(
  context: ControlContext,
  host: ProcessHost,
  options: StartOptions,
): Promise<OwnServer | Refusal> {
  const program = await findOpencode(context);
  if ('reason' in program) return program;
  const failures: Refusal[] = [];
  for (let attempt = 0; attempt < TRIES; attempt += 1) {
    const started = await startOnce(context, host, program, options);
    if ('url' in started) return started;
    failures.push(started);
  }
  return failures[0] ?? didNotStart('no port is free');
}

async function startOnce(
  context: ControlContext,
  host: ProcessHost,
  program: OpencodeProgram,
  { life, directory }: StartOptions,
): Promise<OwnServer | Refusal> {
  const port = await freePort();
  if (port === undefined) return didNotStart('no port is free');
  const credentials = { user: 'opencode', password: randomBytes(32).toString('base64url') };
  const child = startDetached({
    argv: argvOf(program.path, ['serve', '--hostname', '127.0.0.1', '--port', String(port)], context),
    env: {
      ...program.env,
      OPENCODE_SERVER_USERNAME: credentials.user,
      OPENCODE_SERVER_PASSWORD: credentials.password,
    },
    cwd: isFolder(directory) ? directory : context.home,
    stdin: '',
  });
  if (child.kind !== 'started') return didNotStart(child.message);
  const now = context.now();
  const begun: OwnServer = {
    life,
    process: child.identity,
    url: `http://127.0.0.1:${port}`,
    credentials,
    startedAt: now,
    usedAt: now,
    ...(life === 'turn' ? { owner: ourselves() } : {}),
  };
  const written = writeServer(context.connectorHome, begun);
  const listens = written.kind !== 'failed' && (await readUrl(child)) === begun.url;
  const server = { ...begun, process: await identified(child.identity, host) };
  child.letGo();
  // Where the start of a process costs a program to learn, the record gets it only now.
  const again = listens && server.process !== begun.process;
  const kept = again ? writeServer(context.connectorHome, server) : written;
  if (listens && kept.kind !== 'failed') return server;
  // A server that can't be found again, or does not listen, must not be left running.
  const report = await killTree(server.process, {}, host);
  if (report.gone) forgetServer(context.connectorHome, begun);
  if (kept.kind === 'failed') return didNotStart(`it could not be written down (${kept.code})`);
  return didNotStart('it did not say that it listens');
}

/** npm's shim on Windows is a script; only fixed words and a port follow its path. */
function argvOf(
  program: string,
  args: readonly string[],
  { platform, env }: ControlContext,
): readonly string[] {
  if (platform !== 'win32' || !needsCmd(program)) return [program, ...args];
  return [env['ComSpec'] ?? 'cmd.exe', '/d', '/c', program, ...args];
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function freePort(): Promise<number | undefined> {
  const { promise, resolve } = Promise.withResolvers<number | undefined>();
  const probe = createServer();
  probe.once('error', () => resolve(undefined));
  probe.listen({ host: '127.0.0.1', port: 0 }, () => {
    const address = probe.address();
    const port = typeof address === 'object' && address !== null ? address.port : undefined;
    probe.close(() => resolve(port));
  });
  return promise;
}

const LISTENING = /listening on (http:\/\/127\.0\.0\.1:\d{1,5})\s/;

/** The address that the server prints; undefined when it ends, or says nothing in time. */
async function readUrl({ stdout }: Pick<DetachedChild, 'stdout'>): Promise<string | undefined> {
  const reader = stdout.getReader();
  const decoder = new TextDecoder();
  const timer = setTimeout(() => void reader.cancel(), START_MS);
  const said = { text: '' };
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      said.text = (said.text + decoder.decode(next.value, { stream: true })).slice(-4_096);
      const url = LISTENING.exec(said.text)?.[1];
      if (url !== undefined) return url;
    }
    return undefined;
  } finally {
    clearTimeout(timer);
    // Nobody reads on: 1.18.33 writes nothing more, and lives on when it tries (checked).
    await reader.cancel();
  }
}

async function identified(identity: ProcessIdentity, host: ProcessHost): Promise<ProcessIdentity> {
  if (identity.startToken !== null) return identity;
  const found = await findProcess(identity.pid, host);
  return found ? { pid: found.pid, startToken: found.startToken } : identity;
}

function ourselves(): ProcessIdentity {
  return identityFromProc(process.pid) ?? { pid: process.pid, startToken: null };
}

function didNotStart(reason: string): Refusal {
  return {
    reason: `OpenCode’s server could not be started: ${reason}`,
    kind: 'refused',
    next: 'Try it by hand: opencode serve --port 0',
  };
}

/** A record as a server that can be talked to; undefined when it does not answer with our password. */
export async function reachOwn(server: OwnServer, context: ControlContext): Promise<Server | undefined> {
  const endpoint = { url: server.url, named: false, credentials: server.credentials };
  const api = createServerApi(endpoint, context.now);
  const health = await api.health();
  return health.kind === 'ok' ? { endpoint, version: health.value, api } : undefined;
}

/** The managed server that runs already; a record whose process has gone is forgotten. */
export async function findManaged(
  context: ControlContext,
): Promise<{ readonly record: OwnServer; readonly server: Server } | undefined> {
  const record = listServers(context.connectorHome).find(({ life }) => life === 'managed');
  if (!record) return undefined;
  if (!seemsAlive(record, context.platform)) {
    forgetServer(context.connectorHome, record);
    return undefined;
  }
  const server = await reachOwn(record, context);
  return server && { record, server };
}

/** The lock under which the managed server is started and ended, so that there is one. */
const MANAGED = { runtimeId: RUNTIME_ID, instanceId: 'managed-server', sessionId: 'managed-server' };
const LOCK_RETRY_MS = 50;

/** The managed server, found again or started. */
export async function ensureManaged(
  context: ControlContext,
  host: ProcessHost,
  directory: string,
): Promise<{ readonly record: OwnServer; readonly server: Server } | Refusal> {
  const deadline = performance.now() + START_MS;
  while (performance.now() < deadline) {
    const found = await findManaged(context);
    if (found) return found;
    const lock = await lockSession(context, MANAGED);
    if (lock.kind === 'unavailable') return didNotStart(lock.reason);
    if (lock.kind === 'held') {
      try {
        const again = await findManaged(context);
        if (again) return again;
        await endUnreachable(context, host);
        const record = await startOwnServer(context, host, { life: 'managed', directory });
        if ('reason' in record) return record;
        const server = await reachOwn(record, context);
        return server ? { record, server } : didNotStart('it does not answer');
      } finally {
        lock.release();
      }
    }
    await Bun.sleep(LOCK_RETRY_MS);
  }
  return didNotStart('another process of ours has been starting it for too long');
}

/** A managed server whose process lives and that does not answer is ended before another one takes its name. */
async function endUnreachable(context: ControlContext, host: ProcessHost): Promise<void> {
  const record = listServers(context.connectorHome).find(({ life }) => life === 'managed');
  if (record) await endOwnServer(context, host, record);
}

/**
 * Ends a server of ours with all that it started, and says what is left (K1). Only while the pid is still its own:
 * where its start can't be told, a process that takes our password is.
 */
export async function endOwnServer(
  context: ControlContext,
  host: ProcessHost,
  server: OwnServer,
): Promise<KillReport> {
  const state = await checkProcess(server.process, host);
  if (state === 'unknown' && !(await reachOwn(server, context))) {
    return { gone: false, survivors: [server.process] };
  }
  const report: KillReport =
    state === 'gone' ? { gone: true, survivors: [] } : await killTree(server.process, {}, host);
  if (report.gone) forgetServer(context.connectorHome, server);
  return report;
}

/** Notes that a managed server has just had work. */
export function touch(context: ControlContext, server: OwnServer): void {
  const written = writeServer(context.connectorHome, { ...server, usedAt: context.now() });
  if (written.kind === 'failed') context.log.warn(`the record of OpenCode’s server: ${written.code}`);
}

/** Takes over a `turn` server that another process of ours has started. */
export function takeOver(context: ControlContext, pid: number): OwnServer | undefined {
  const found = listServers(context.connectorHome).find(
    (server) => server.life === 'turn' && server.process.pid === pid,
  );
  if (!found || !seemsAlive(found, context.platform)) return undefined;
  const taken: OwnServer = { ...found, owner: ourselves() };
  return writeServer(context.connectorHome, taken).kind === 'failed' ? undefined : taken;
}

/**
 * Ends the servers of ours that nobody ends any more: one whose process of ours was killed (K1), and a managed one that
 * has had no work for {@link IDLE_MS}. `isBusy` says whether a managed one still works.
 */
export async function sweepServers(
  context: ControlContext,
  host: ProcessHost,
  isBusy: (server: OwnServer) => Promise<boolean>,
): Promise<void> {
  for (const server of listServers(context.connectorHome)) {
    if (!seemsAlive(server, context.platform)) {
      forgetServer(context.connectorHome, server);
      continue;
    }
    const idle = server.life === 'managed' && context.now() - server.usedAt > IDLE_MS;
    const left = server.life === 'turn' && !isOwned(server, context.platform);
    if (!left && !(idle && !(await isBusy(server)))) continue;
    const report = await endOwnServer(context, host, server);
    const how = report.gone ? 'ended' : 'could not end';
    context.log.warn(`${how} OpenCode’s server ${server.process.pid}, which nobody of ours uses any more`);
  }
}
