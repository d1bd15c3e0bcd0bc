/**
 * A world of its own for each test process: network with nothing but loopback, process numbers of its own, and a mount
 * namespace for the `/proc` that goes with them. Several programs look for updates, plugins and model lists at start,
 * whatever their settings say, and one leaves a daemon behind; in here they reach nobody, and end with their world.
 *
 * `scripts/e2e.ts` starts each file of scenarios through `isolated`; the file's first act is `openWorld`.
 */
import { dlopen, FFIType, ptr } from 'bun:ffi';
import { existsSync, readFileSync, readlinkSync } from 'node:fs';

/** Set inside: the world outside, to prove that this one is another. */
export const OUTSIDE = 'SHADOWOB_E2E_OUTSIDE_NET';

/** Gives a normal user what namespaces need, loopback included, and keeps the user's number: Codex has a folder by it. */
const AS_MYSELF = ['--user', '--map-current-user', '--keep-caps'];

const FLAGS = ['--net', '--mount', '--pid', '--fork', '--mount-proc', '--kill-child'];

/** `isolated` wraps a command so that it runs in a fresh world; `reason` says why none can be made. */
export type Isolation =
  | { readonly kind: 'available'; isolated(command: readonly string[]): string[] }
  | { readonly kind: 'unavailable'; readonly reason: string };

/** Tries to make a world, and says how. */
export function probeIsolation(): Isolation {
  if (process.platform !== 'linux') return { kind: 'unavailable', reason: 'network namespaces need Linux' };
  const unshare = Bun.which('unshare');
  if (!unshare) return { kind: 'unavailable', reason: 'unshare (util-linux) is missing' };
  const flags = process.getuid?.() === 0 ? FLAGS : [...AS_MYSELF, ...FLAGS];
  const tried = Bun.spawnSync([unshare, ...flags, 'true'], { stdin: 'ignore', stderr: 'pipe' });
  if (tried.exitCode !== 0) return { kind: 'unavailable', reason: tried.stderr.toString().trim() };
  return {
    kind: 'available',
    // The first process of a world has to collect the orphans; a shell that waits does that.
    isolated: (command) => [
      unshare,
      ...flags,
      'sh',
      '-c',
      `${OUTSIDE}=$1; export ${OUTSIDE}; shift; "$@" & wait $!`,
      'sh',
      networkOf('self'),
      ...command,
    ],
  };
}

/** Whether this process runs in a world of its own. */
export function isIsolated(): boolean {
  const outside = process.env[OUTSIDE];
  return outside !== undefined && outside !== networkOf('self') && onlyLoopback();
}

/** Brings loopback up. Throws when this process is not in a world of its own: nothing real may be started then. */
export function openWorld(): void {
  if (!isIsolated()) throw new Error('not in a namespace of its own; use: npm run test:e2e');
  bringLoopbackUp();
}

function networkOf(process: 'self'): string {
  return readlinkSync(`/proc/${process}/ns/net`);
}

function onlyLoopback(): boolean {
  const names = readFileSync('/proc/net/dev', 'utf8').split('\n').slice(2);
  return names.every((line) => line.trim() === '' || line.trim().startsWith('lo:'));
}

const AF_INET = 2;
const SOCK_DGRAM = 2;
const SIOCSIFFLAGS = 0x8914;
const IFF_UP = 1;

/** What `ip link set lo up` does; iproute2 is not on every machine that has Node and git. */
function bringLoopbackUp(): void {
  const libc = ['libc.so.6', `/lib/libc.musl-${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}.so.1`].find(
    (name) => !name.startsWith('/') || existsSync(name),
  );
  const { symbols, close } = dlopen(libc ?? 'libc.so.6', {
    socket: { args: [FFIType.i32, FFIType.i32, FFIType.i32], returns: FFIType.i32 },
    ioctl: { args: [FFIType.i32, FFIType.u64, FFIType.ptr], returns: FFIType.i32 },
    close: { args: [FFIType.i32], returns: FFIType.i32 },
  });
  const request = new Uint8Array(40);
  request.set(new TextEncoder().encode('lo'));
  new DataView(request.buffer).setInt16(16, IFF_UP, true);
  const fd = symbols.socket(AF_INET, SOCK_DGRAM, 0);
  const failed = fd < 0 || symbols.ioctl(fd, SIOCSIFFLAGS, ptr(request)) !== 0;
  if (fd >= 0) symbols.close(fd);
  close();
  if (failed) throw new Error('the loopback interface could not be brought up');
}
