import { existsSync, statSync } from 'node:fs';
import { posix, win32 } from 'node:path';
import { scrubbedEnv } from '../process/scrubbed-env.ts';
import type { CommandRunner, Environment, Platform } from '../process/types.ts';

/** Opens the editor window of a session (S-855). */
export interface LauncherOptions {
  readonly platform: Platform;
  readonly env: Environment;
  readonly run: CommandRunner;
  readonly exists?: (path: string) => boolean;
  readonly isFolder?: (path: string) => boolean;
}

export type Launched = { readonly kind: 'opened' } | { readonly kind: 'refused'; readonly reason: string };

/** The editor's command hands the folder to the running editor and ends; what it leaves running is the editor. */
const LAUNCH_MS = 15_000;

/**
 * Opens a folder's window: only an absolute path of a folder that exists, which also keeps anything that begins with
 * `-` away from the editor's options.
 */
export async function openWindow(folder: string, options: LauncherOptions): Promise<Launched> {
  const { platform } = options;
  const isAbsolute = platform === 'win32' ? win32.isAbsolute(folder) : posix.isAbsolute(folder);
  if (!isAbsolute) return { kind: 'refused', reason: 'the folder is no absolute path' };
  if (!(options.isFolder ?? isFolder)(folder)) return { kind: 'refused', reason: 'the folder is not there' };
  const program = launcherOf(options);
  const env = scrubbedEnv(options.env);
  const result = await options.run({
    argv: [program, folder],
    env,
    timeoutMs: LAUNCH_MS,
    leaveBackground: true,
  });
  if (result.kind === 'failedToStart')
    return { kind: 'refused', reason: `${program} could not be started: ${result.reason}` };
  if (result.kind === 'exited' && result.code === 0) return { kind: 'opened' };
  return { kind: 'refused', reason: `${program} did not open it` };
}

/** `SHADOWOB_CONNECTOR_VSCODE_BIN`, the places where VS Code puts its command, else `code` on the search path. */
export function launcherOf({
  platform,
  env,
  exists = existsSync,
}: Omit<LauncherOptions, 'run' | 'isFolder'>): string {
  const named = env['SHADOWOB_CONNECTOR_VSCODE_BIN'];
  if (named) return named;
  return (
    wellKnown(platform, env).find((path) => exists(path)) ?? (platform === 'win32' ? 'code.cmd' : 'code')
  );
}

function wellKnown(platform: Platform, env: Environment): readonly string[] {
  if (platform === 'darwin') {
    const inBundle = 'Visual Studio Code.app/Contents/Resources/app/bin/code';
    const own = env['HOME'] ? [posix.join(env['HOME'], 'Applications', inBundle)] : [];
    return [posix.join('/Applications', inBundle), ...own, '/opt/homebrew/bin/code', '/usr/local/bin/code'];
  }
  if (platform === 'win32') {
    const roots = [env['LOCALAPPDATA'] && win32.join(env['LOCALAPPDATA'], 'Programs'), env['ProgramFiles']];
    return roots.flatMap((root) => (root ? win32.join(root, 'Microsoft VS Code', 'bin', 'code.cmd') : []));
  }
  return ['/usr/bin/code', '/usr/local/bin/code', '/snap/bin/code', '/usr/share/code/bin/code'];
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    // Not there, or not to be seen: either way no folder to open.
    return false;
  }
}
