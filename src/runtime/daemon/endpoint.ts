import { join } from 'node:path';
import { WIRE } from '../limits.ts';

/**
 * Where the service listens. On Unix a socket file; on Windows a named pipe whose name is made from the path
 * that the socket file would have, so that one user's homes never share a pipe and `--socket` works the same.
 */
export type Endpoint =
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'pipe'; readonly path: string };

/** Name of the socket file in the connector home (S-330, R-30). */
export const SOCKET_NAME = 'daemon.sock';
/** Name of the lock file beside it. */
export const LOCK_NAME = 'daemon.lock';

/** The socket path of a connector home. */
export function socketPathIn(home: string): string {
  return join(home, SOCKET_NAME);
}

/** Whether every Unix system can bind this path; the limit is on bytes and includes the closing NUL (S-332). */
export function fitsSocketPath(path: string): boolean {
  return Buffer.byteLength(path) < WIRE.socketPathBytes;
}

/** The address behind a socket path; see {@link Endpoint}. */
export function endpointOf(socketPath: string, platform: NodeJS.Platform = process.platform): Endpoint {
  if (platform !== 'win32') return { kind: 'unix', path: socketPath };
  if (/^[\\/]{2}[.?][\\/]pipe[\\/]/i.test(socketPath)) return { kind: 'pipe', path: socketPath };
  return { kind: 'pipe', path: `\\\\.\\pipe\\shadowob-connector-${pathHash(socketPath)}` };
}

/** Windows paths name the same file in any case and with either slash. */
function pathHash(path: string): string {
  const normal = path.replaceAll('/', '\\').toLowerCase();
  return new Bun.CryptoHasher('sha256').update(normal).digest('hex').slice(0, 32);
}
