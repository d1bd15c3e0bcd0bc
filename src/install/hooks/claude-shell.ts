import { existsSync } from 'node:fs';
import { win32 } from 'node:path';
import type { HooksContext } from './integration.ts';
import type { HookShell } from './shell.ts';

/** The shell that Claude Code runs hooks with, and how it is started. */
export interface ClaudeShell {
  readonly shell: HookShell;
  /** Before the command. */
  readonly argv: readonly string[];
}

/**
 * `sh` everywhere but on Windows (CC §4); Git Bash there (W1), where it is; else PowerShell is all that is left.
 *
 * @param exists whether a file is there; injected by tests
 */
export function claudeShell(
  { env, platform }: Pick<HooksContext, 'env' | 'platform'>,
  exists: (path: string) => boolean = existsSync,
): ClaudeShell {
  if (platform !== 'win32') return { shell: 'bash', argv: ['/bin/sh', '-c'] };
  const bash = gitBashPlaces(env).find(exists);
  if (bash !== undefined) return { shell: 'bash', argv: [bash, '-c'] };
  return { shell: 'powershell', argv: ['powershell.exe', '-NoProfile', '-Command'] };
}

/** Where Git for Windows puts it, for all users or for one, and beside a `git` of the PATH. */
function gitBashPlaces(env: HooksContext['env']): readonly string[] {
  const named = env['CLAUDE_CODE_GIT_BASH_PATH'];
  const roots = [
    ...[env['ProgramFiles'], env['ProgramFiles(x86)']].flatMap((root) =>
      root ? [win32.join(root, 'Git')] : [],
    ),
    ...(env['LOCALAPPDATA'] ? [win32.join(env['LOCALAPPDATA'], 'Programs', 'Git')] : []),
    ...(env['PATH'] ?? env['Path'] ?? '')
      .split(';')
      .filter((folder) => /[\\/]git[\\/](?:cmd|bin)[\\/]?$/i.test(folder))
      .map((folder) => win32.dirname(folder)),
  ];
  return [...(named ? [named] : []), ...roots.map((root) => win32.join(root, 'bin', 'bash.exe'))];
}
