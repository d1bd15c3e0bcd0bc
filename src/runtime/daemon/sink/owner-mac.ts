import { dlopen, FFIType, ptr } from 'bun:ffi';
import type { ProcessGlance } from './owner.ts';

/** `proc_pidinfo(pid, flavor, arg, buffer, size)` of libproc: bytes written, 0 for a failure. */
export type PidInfo = (pid: number, flavor: number, arg: bigint, buffer: Uint8Array, size: number) => number;

/** `PROC_PIDTBSDINFO`, and where its `proc_bsdinfo` holds what we need. */
const FLAVOR = 3;
const SIZE = 136;
const PARENT_AT = 16;
const COMM_AT = 48;
const COMM_LENGTH = 16;

/** Looks at a process of macOS without starting one. */
export function glanceOnMac(
  info: PidInfo | undefined = systemPidInfo(),
): (pid: number) => ProcessGlance | undefined {
  return (pid) => {
    const buffer = Buffer.alloc(SIZE);
    if (!info || info(pid, FLAVOR, 0n, buffer, SIZE) < SIZE) return undefined;
    const comm = buffer.subarray(COMM_AT, COMM_AT + COMM_LENGTH);
    const end = comm.indexOf(0);
    return {
      name: comm.toString('utf8', 0, end < 0 ? COMM_LENGTH : end),
      parent: buffer.readUInt32LE(PARENT_AT),
    };
  };
}

function systemPidInfo(): PidInfo | undefined {
  try {
    const { symbols } = dlopen('/usr/lib/libSystem.B.dylib', {
      proc_pidinfo: {
        args: [FFIType.i32, FFIType.i32, FFIType.u64, FFIType.ptr, FFIType.i32],
        returns: FFIType.i32,
      },
    });
    return (pid, flavor, arg, buffer, size) => symbols.proc_pidinfo(pid, flavor, arg, ptr(buffer), size);
  } catch {
    // Not macOS, or not a macOS we know: no owner is better than a wrong one.
    return undefined;
  }
}
