import {
  chmodSync,
  closeSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  unlinkSync,
} from 'node:fs';
import { createServer, type Server as NetServer, type Socket } from 'node:net';
import { devNull } from 'node:os';
import { dirname } from 'node:path';
import { ConnectorError } from '../errors.ts';
import { errorCode } from '../files/file-system.ts';
import { WIRE } from '../limits.ts';
import { ensureHome, PRIVATE_FOLDER_MODE } from '../store/home.ts';
import type { ActivatedSocket } from './activation.ts';
import { type Endpoint, fitsSocketPath } from './endpoint.ts';
import type { HeldLock } from './lock.ts';

/** What accepts connections: a socket of the service manager's, or one that we bind ourselves. */
export type ListenPlan =
  | { readonly kind: 'adopted'; readonly socket: ActivatedSocket }
  | { readonly kind: 'bind'; readonly endpoint: Endpoint; readonly lock: HeldLock };

export interface Listener {
  /** Starts to accept. Rejects with a `ConnectorError` that says why it can't. */
  open(onSocket: (socket: Socket) => void): Promise<void>;
  /** Stops to accept, at once; a socket file that we bound is gone when it returns, the manager's stays (S-335). */
  close(): void;
  /**
   * Whether clients still find it: `gone` when somebody has removed the socket, `lost` when the lock's file is not
   * there either (the whole home was removed), so that another daemon may already be on its way.
   */
  place(): 'ours' | 'gone' | 'lost';
}

/**
 * Makes the folder of a socket: 0700 when it is new or the connector home itself (S-331). An existing folder that
 * the user named with `--socket` keeps its mode: it may be `/tmp`.
 */
export function prepareSocketFolder(socketPath: string, home: string, platform: NodeJS.Platform): void {
  const folder = dirname(socketPath);
  const state = folder === home ? ensureHome(folder, platform) : makeFolder(folder);
  if (state.kind === 'ready') return;
  throw new ConnectorError(
    'daemon',
    `the folder ${folder} of the socket can't be used: ${state.code}`,
    'name another folder with SHADOWOB_CONNECTOR_HOME',
  );
}

function makeFolder(
  folder: string,
): { readonly kind: 'ready' } | { readonly kind: 'unavailable'; readonly code: string } {
  try {
    mkdirSync(folder, { recursive: true, mode: PRIVATE_FOLDER_MODE });
    return { kind: 'ready' };
  } catch (error) {
    return { kind: 'unavailable', code: errorCode(error) };
  }
}

/** Accepts on what the plan says. */
export function createListener(plan: ListenPlan): Listener {
  const state = { server: undefined as NetServer | undefined };
  return {
    async open(onSocket) {
      const server = createServer({ allowHalfOpen: true }, onSocket);
      state.server = server;
      await (plan.kind === 'adopted' ? adopt(server, plan.socket.fd) : bind(server, plan.endpoint));
    },
    close() {
      state.server?.close();
      state.server = undefined;
      if (plan.kind === 'bind' && plan.endpoint.kind === 'unix') removeSocket(plan.endpoint.path);
    },
    place() {
      // The manager's socket is the manager's to look after, and a pipe has no file.
      if (plan.kind === 'adopted' || plan.endpoint.kind === 'pipe') return 'ours';
      if (!plan.lock.inPlace()) return 'lost';
      return kindOf(plan.endpoint.path) === 'missing' ? 'gone' : 'ours';
    },
  };
}

function adopt(server: NetServer, fd: number): Promise<void> {
  return listening(server, 'the socket of the service manager', () => server.listen({ fd }));
}

/** Only called by the holder of the lock, so whatever socket lies at the path has nobody behind it. */
function bind(server: NetServer, endpoint: Endpoint): Promise<void> {
  if (endpoint.kind === 'pipe') return listening(server, endpoint.path, () => server.listen(endpoint.path));
  const { path } = endpoint;
  if (!fitsSocketPath(path)) {
    throw new ConnectorError(
      'daemon',
      `the socket path has ${Buffer.byteLength(path)} bytes, and the system takes less than ${WIRE.socketPathBytes}: ${path}`,
      'name a shorter folder with SHADOWOB_CONNECTOR_HOME, or a shorter path with --socket',
    );
  }
  removeStale(path);
  return listening(server, path, () => {
    // 0600 from birth (S-331). The mask belongs to the whole process; binding is synchronous, so it is put back
    // before anything else can run.
    const before = process.umask(0o177);
    try {
      server.listen(path);
    } finally {
      process.umask(before);
    }
    tighten(path);
  });
}

function listening(server: NetServer, name: string, start: () => void): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('listening', resolve);
  const fail = (error: unknown): void =>
    reject(new ConnectorError('daemon', `can't listen on ${name}: ${errorCode(error)}`, undefined, error));
  server.once('error', fail);
  try {
    start();
  } catch (error) {
    // Bun 1.4.5 throws at once what Node tells by an event, for a descriptor that is no listening socket.
    fail(error);
  }
  return promise;
}

function tighten(path: string): void {
  try {
    chmodSync(path, 0o600);
  } catch {
    // The bind failed, which `listening` reports; or the mask did it already.
  }
}

function removeStale(path: string): void {
  const kind = kindOf(path);
  if (kind === 'missing') return;
  if (kind === 'socket') {
    removeSocket(path);
    return;
  }
  throw new ConnectorError(
    'daemon',
    `${path} is no socket, and is not ours to remove`,
    `look at it, then: rm ${path}`,
  );
}

function kindOf(path: string): 'socket' | 'missing' | 'other' {
  try {
    return lstatSync(path).isSocket() ? 'socket' : 'other';
  } catch (error) {
    return errorCode(error) === 'ENOENT' ? 'missing' : 'other';
  }
}

function removeSocket(path: string): void {
  try {
    if (lstatSync(path).isSocket()) unlinkSync(path);
  } catch {
    // Gone already: Bun unlinks its own path when it stops to listen.
  }
}

/**
 * How many clients may be connected at once (S-337): the table's number, less where this process may open few
 * files. Bun keeps a core busy when an accept fails for want of descriptors, so clients never get the last ones.
 */
export function connectionBudget(
  ceiling: number = WIRE.connections,
  limit: number | undefined = softLimit(),
  open: number = openDescriptors(),
): number {
  if (limit === undefined) return ceiling;
  return Math.min(ceiling, Math.max(4, limit - open - WIRE.reservedDescriptors));
}

/** The soft limit on open files; `undefined` where the system does not show it. Bun raises it to the hard one. */
function softLimit(): number | undefined {
  try {
    const row = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'));
    return row ? Number(row[1]) : undefined;
  } catch {
    // Not Linux: the systems that hide it here allow thousands after Bun has raised it.
    return undefined;
  }
}

function openDescriptors(): number {
  try {
    return readdirSync('/proc/self/fd').length;
  } catch {
    // The same systems.
    return 32;
  }
}

/** Whether a file can still be opened: false means that accepting fails too (S-337). */
export function descriptorsLeft(): boolean {
  try {
    closeSync(openSync(devNull, 'r'));
    return true;
  } catch (error) {
    return !['EMFILE', 'ENFILE'].includes(errorCode(error));
  }
}
