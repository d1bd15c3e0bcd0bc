import type { ApprovalPolicy } from '../../../runtime/control.ts';

/** What becomes of what the turn must ask for. */
export const POLICY_WORDS: Readonly<Record<ApprovalPolicy, string>> = {
  ask: 'what it must ask for is asked here: session-approve',
  deny: 'what it would have to ask for is refused',
  'allow-edits': 'edits are allowed, all else is asked here: session-approve',
  'runtime-default': 'its own settings decide; what they ask for is asked here: session-approve',
};

/** The same for a turn of somebody else's, which a message only goes into: it is asked for as before. */
export const STEERED_WORDS = 'a turn that runs already; it is asked for where it was begun';

/** The command with which the user goes on in a terminal (M4). */
export function resumeCommand(sessionId: string, directory: string, platform: NodeJS.Platform): string {
  if (platform === 'win32') return `cd /d "${directory}" && codex resume ${sessionId}`;
  const quoted = /^[\w./@%+:,=-]+$/.test(directory) ? directory : `'${directory.replaceAll("'", "'\\''")}'`;
  return `cd ${quoted} && codex resume ${sessionId}`;
}
