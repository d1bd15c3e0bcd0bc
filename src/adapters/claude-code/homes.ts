import { realpathSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';

/** One folder in which Claude Code keeps everything (`~/.claude`, or what `CLAUDE_CONFIG_DIR` names). */
export interface ClaudeHome {
  readonly root: string;
  readonly projects: string;
  readonly sessions: string;
  readonly jobs: string;
  readonly roster: string;
}

/**
 * The homes to read: what `CLAUDE_CONFIG_DIR` names, and always `~/.claude`, since sessions started without the
 * variable stay there. Two names of one folder (a symlinked home) are one home; a variable that is empty counts as
 * unset, a relative one is taken from the current folder.
 */
export function claudeHomes(
  env: Readonly<Record<string, string | undefined>>,
  userHome: string,
): readonly ClaudeHome[] {
  const named = env['CLAUDE_CONFIG_DIR'];
  const roots = [...(named ? [isAbsolute(named) ? named : resolve(named)] : []), join(userHome, '.claude')];
  const seen = new Set<string>();
  return roots
    .filter((root) => {
      const real = realPath(root);
      if (seen.has(real)) return false;
      seen.add(real);
      return true;
    })
    .map(homeAt);
}

function homeAt(root: string): ClaudeHome {
  return {
    root,
    projects: join(root, 'projects'),
    sessions: join(root, 'sessions'),
    jobs: join(root, 'jobs'),
    roster: join(root, 'daemon', 'roster.json'),
  };
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // Missing or unreadable: the name itself is all there is to compare.
    return path;
  }
}
