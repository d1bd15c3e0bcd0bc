/** What this computer is, in the words of the target table. */
import { closeSync, openSync, readSync } from 'node:fs';
import type { Target } from './targets.ts';

/** The shape of a machine, as a build for it is named. */
export type Host = Pick<Target, 'os' | 'arch' | 'libc'>;

/** Throws when we have no build for this kind of machine. `readLibc` is asked on Linux only. */
export function hostFrom(platform: string, arch: string, readLibc: () => 'glibc' | 'musl'): Host {
  if (arch !== 'x64' && arch !== 'arm64') throw new Error(`no build for the processor type ${arch}`);
  if (platform === 'darwin') return { os: 'darwin', arch, libc: 'system' };
  if (platform === 'win32') return { os: 'windows', arch, libc: 'system' };
  if (platform === 'linux') return { os: 'linux', arch, libc: readLibc() };
  throw new Error(`no build for the system ${platform}`);
}

/**
 * The C library an ELF program is linked to, from the interpreter path in its first 4 KB. Files such as
 * `/lib/ld-musl-*` prove nothing: they exist on glibc systems too (I1).
 */
export function libcOfProgram(path: string): 'glibc' | 'musl' {
  const head = Buffer.alloc(4096);
  const file = openSync(path, 'r');
  try {
    const length = readSync(file, head, 0, head.length, 0);
    return head.subarray(0, length).includes('/ld-musl-') ? 'musl' : 'glibc';
  } finally {
    closeSync(file);
  }
}

/** This process's own machine. */
export function currentHost(): Host {
  return hostFrom(process.platform, process.arch, () => libcOfProgram(process.execPath));
}
