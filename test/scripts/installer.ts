/** Runs `scripts/install.sh` in a home of its own, with chosen tools before the system's. */
import { chmodSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

export const INSTALLER = resolve(import.meta.dir, '..', '..', 'scripts', 'install.sh');

/** Every shell of this machine that users pipe the installer to. */
export const SHELLS: readonly (readonly string[])[] = [
  ['sh'],
  ...(Bun.which('dash') ? [['dash']] : []),
  ...(Bun.which('busybox') ? [['busybox', 'sh']] : []),
  ...(Bun.which('bash') ? [['bash']] : []),
];

export type Outcome = { readonly code: number; readonly out: string; readonly err: string };

export type Setup = {
  readonly home: string;
  /** Before the system's PATH; or the whole PATH with `onlyTools`. */
  readonly tools: string;
  readonly onlyTools?: boolean;
  readonly shell?: readonly string[];
  readonly env?: Record<string, string>;
  /** Given to the shell on stdin instead of by path, as `curl | sh` does. */
  readonly piped?: string;
};

/** Starts it; the caller may send signals. */
export function startInstaller(setup: Setup): Bun.Subprocess<Blob | 'ignore', 'pipe', 'pipe'> {
  const [shell = 'sh', ...shellArgs] = setup.shell ?? ['sh'];
  const program = Bun.which(shell) ?? shell;
  const systemPath = process.env['PATH'] ?? '';
  return Bun.spawn([program, ...shellArgs, ...(setup.piped === undefined ? [INSTALLER] : [])], {
    cwd: setup.home,
    env: {
      HOME: setup.home,
      SHELL: '/bin/zsh',
      PATH: setup.onlyTools ? setup.tools : `${setup.tools}:${systemPath}`,
      ...setup.env,
    },
    stdin: setup.piped === undefined ? 'ignore' : new Blob([setup.piped]),
    stdout: 'pipe',
    stderr: 'pipe',
  });
}

/** Runs it to its end. */
export async function runInstaller(setup: Setup): Promise<Outcome> {
  const child = startInstaller(setup);
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, out, err };
}

/** Writes an executable shell script. */
export function writeTool(folder: string, name: string, body: string): void {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, name);
  writeFileSync(file, `#!/bin/sh\n${body}\n`);
  chmodSync(file, 0o755);
}

/** A folder that holds only these of the system's tools. */
export function linkTools(folder: string, names: readonly string[]): void {
  mkdirSync(folder, { recursive: true });
  for (const name of names) {
    const path = Bun.which(name);
    if (path) symlinkSync(path, join(folder, name));
  }
}

/** All names in a folder, hidden ones too; empty when there is no folder. */
export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    // An absent folder holds nothing, which is what the tests ask.
    return [];
  }
}

/**
 * The first bytes of a program: ELF class (1 for 32 bit, 2 for 64 bit) and the loader's path. Stands for
 * /bin/sh of another system.
 */
export function elfHead(elfClass: 1 | 2, loader: string): Uint8Array {
  const bytes = new Uint8Array(1024);
  bytes.set([0x7f, 0x45, 0x4c, 0x46, elfClass, 1, 1]);
  bytes.set(new TextEncoder().encode(loader), 0x238);
  return bytes;
}
