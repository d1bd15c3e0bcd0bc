import type { ApprovalPolicy } from '../../../runtime/control.ts';

/** What becomes of what the turn must ask for. */
export const POLICY_WORDS: Readonly<Record<ApprovalPolicy, string>> = {
  ask: 'what it must ask for is asked here: session-approve',
  deny: 'what it would have to ask for is refused',
  'allow-edits': 'edits are allowed, all else is asked here: session-approve',
  'runtime-default': 'its own settings decide, and nobody is asked',
};

/** The command with which the user goes on in a terminal (M4). */
export function resumeCommand(sessionId: string, directory: string, platform: NodeJS.Platform): string {
  if (platform === 'win32') return `cd /d "${directory}" && opencode --session ${sessionId}`;
  const quoted = /^[\w./@%+:,=-]+$/.test(directory) ? directory : `'${directory.replaceAll("'", "'\\''")}'`;
  return `cd ${quoted} && opencode --session ${sessionId}`;
}
