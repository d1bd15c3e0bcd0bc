import { dlopen, FFIType, ptr, read } from 'bun:ffi';
import { closeSync } from 'node:fs';
import { openLibc } from './libc.ts';

/**
 * A listening socket that the service manager made and keeps (S-334). It is served, and never unlinked: the
 * manager starts us again when the next client comes (S-335).
 */
export interface ActivatedSocket {
  readonly fd: number;
  readonly manager: 'systemd' | 'launchd';
}

export interface ActivationOptions {
  /** Its `LISTEN_*` are removed, so that no child believes the socket is its own. */
  readonly env: Record<string, string | undefined>;
  readonly pid: number;
  readonly platform: NodeJS.Platform;
  /** Sets close-on-exec; replaced in tests. */
  readonly closeOnExec?: (fd: number) => void;
  /** The sockets launchd keeps under a name; `undefined` when it keeps none. Replaced in tests. */
  readonly launchdSockets?: (name: string) => readonly number[] | undefined;
  readonly close?: (fd: number) => void;
}

/** First descriptor that systemd passes. */
const FIRST_FD = 3;
/** The key under `Sockets` in the LaunchAgent. */
const LAUNCHD_NAME = 'Listener';

/** The socket that the manager handed over, or `undefined`: then the service binds its own. */
export function adoptSocket(options: ActivationOptions): ActivatedSocket | undefined {
  if (options.platform === 'linux') return fromSystemd(options);
  return options.platform === 'darwin' ? fromLaunchd(options) : undefined;
}

function fromSystemd(options: ActivationOptions): ActivatedSocket | undefined {
  const { env, pid } = options;
  const forUs = env['LISTEN_PID'] === String(pid) && Number(env['LISTEN_FDS']) >= 1;
  for (const name of ['LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES']) delete env[name];
  if (!forUs) return undefined;
  (options.closeOnExec ?? setCloseOnExec)(FIRST_FD);
  return { fd: FIRST_FD, manager: 'systemd' };
}

function fromLaunchd(options: ActivationOptions): ActivatedSocket | undefined {
  const sockets = (options.launchdSockets ?? launchActivateSocket)(LAUNCHD_NAME);
  const [fd, ...rest] = sockets ?? [];
  for (const extra of rest) (options.close ?? closeSync)(extra);
  return fd === undefined ? undefined : { fd, manager: 'launchd' };
}

const F_SETFD = 2;
const FD_CLOEXEC = 1;

/** Bun closes what it did not open in the children it starts; this covers an `execve` of ours (S-334). */
function setCloseOnExec(fd: number): void {
  const libc = openLibc({ fcntl: { args: [FFIType.i32, FFIType.i32, FFIType.i32], returns: FFIType.i32 } });
  libc?.fcntl(fd, F_SETFD, FD_CLOEXEC);
}

function launchActivateSocket(name: string): readonly number[] | undefined {
  try {
    const { symbols } = dlopen('/usr/lib/libSystem.B.dylib', {
      launch_activate_socket: { args: [FFIType.ptr, FFIType.ptr, FFIType.ptr], returns: FFIType.i32 },
    });
    const list = new BigUint64Array(1);
    const count = new BigUint64Array(1);
    // The list is the caller's to free; it is some bytes, once in the life of the process.
    const status = symbols.launch_activate_socket(ptr(Buffer.from(`${name}\0`)), ptr(list), ptr(count));
    const address = Number(list[0] ?? 0n);
    if (status !== 0 || address === 0) return undefined;
    return Array.from({ length: Number(count[0] ?? 0n) }, (_, index) =>
      read.i32(asPointer(address), index * 4),
    );
  } catch {
    // No such function, or the process was not started by launchd: not activated (S-334).
    return undefined;
  }
}

type ReadPointer = Parameters<typeof read.i32>[0];

/** Bun types pointers as branded numbers; an address that C wrote into our memory is one. */
function asPointer(address: number): ReadPointer {
  return address as ReadPointer;
}
