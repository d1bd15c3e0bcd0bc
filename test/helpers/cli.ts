import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compiledBinary } from './binary.ts';

export interface CliResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliOptions {
  readonly home: string;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
}

/** The environment of a person who has nothing but this home: no PATH tricks, no colour, no real agents. */
export function bareEnvironment(
  home: string,
  env: Readonly<Record<string, string>> = {},
): Record<string, string> {
  return {
    HOME: home,
    PATH: '/usr/bin:/bin',
    LANG: 'C.UTF-8',
    TMPDIR: process.env['TMPDIR'] ?? tmpdir(),
    SHADOWOB_CONNECTOR_SKIP_LOGIN_SHELL: '1',
    ...env,
  };
}

/** Runs the compiled executable to its end. */
export async function cli(args: readonly string[], options: CliOptions): Promise<CliResult> {
  const child = Bun.spawn([await compiledBinary(), ...args], {
    cwd: options.cwd ?? options.home,
    env: bareEnvironment(options.home, options.env),
    stdin: new TextEncoder().encode(options.stdin ?? ''),
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { code: await child.exited, stdout, stderr };
}

/** A home folder that is gone when the test is over. */
export function temporaryHome(): { readonly path: string; [Symbol.dispose](): void } {
  const path = mkdtempSync(join(tmpdir(), 'connector-home-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}
