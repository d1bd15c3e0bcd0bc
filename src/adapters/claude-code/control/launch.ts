import { dirname, join } from 'node:path';
import type { HostSpec } from '../../../runtime/control/driver.ts';
import type { ApprovalPolicy } from '../../../runtime/control.ts';
import { scrubbedEnv } from '../../../runtime/process/scrubbed-env.ts';
import type { FoundTranscript } from '../discover.ts';

/** How the session is brought into a process. */
export type Entry = HostSpec['start'];

/**
 * The arguments of a process that takes messages as lines on stdin, answers in lines, and gives our messages and
 * answers back, which is how it is known that they arrived. No text of the user's is ever an argument. Works alike
 * in 2.1.197 and 2.1.332.
 */
export function claudeArguments(
  entry: Entry,
  sessionId: string,
  policy: ApprovalPolicy,
  model: string | undefined,
): readonly string[] {
  return [
    '-p',
    '--input-format',
    'stream-json',
    '--output-format',
    'stream-json',
    '--verbose',
    '--replay-user-messages',
    ...policyArguments(policy),
    ...(model === undefined ? [] : ['--model', model]),
    ...entryArguments(entry, sessionId),
  ];
}

/**
 * `ask`: this connector is asked. `deny`: nobody is, and what would prompt is refused at once. `runtime-default`: as
 * `deny`, since a process without a terminal has nobody to ask; named apart because the settings may allow more.
 */
function policyArguments(policy: ApprovalPolicy): readonly string[] {
  const host = ['--permission-prompt-tool', 'stdio'];
  switch (policy) {
    case 'ask':
      return host;
    case 'allow-edits':
      return [...host, '--permission-mode', 'acceptEdits'];
    case 'deny':
    case 'runtime-default':
      return [];
  }
}

function entryArguments(entry: Entry, sessionId: string): readonly string[] {
  switch (entry.kind) {
    case 'resume':
      return ['--resume', sessionId];
    case 'new':
      return ['--session-id', sessionId];
    case 'fork':
      return ['--resume', entry.of, '--fork-session', '--session-id', sessionId];
  }
}

/**
 * The environment of such a process: marks of a session around us are gone, PATH finds what the program needs, and the
 * home is the one that the session lies in. `configHome` is undefined for the default `~/.claude`.
 */
export function claudeEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  path: string,
  configHome: string | undefined,
): Record<string, string> {
  const kept = Object.entries(scrubbedEnv(env)).filter(
    ([name]) => name.toUpperCase() !== 'PATH' && name !== 'CLAUDE_CONFIG_DIR',
  );
  return {
    ...Object.fromEntries(kept),
    PATH: path,
    ...(configHome === undefined ? {} : { CLAUDE_CONFIG_DIR: configHome }),
  };
}

/** The home that a transcript lies in, two folders up; undefined for the default one. */
export function configHomeOf(
  transcript: Pick<FoundTranscript, 'path'>,
  userHome: string,
): string | undefined {
  const root = dirname(dirname(dirname(transcript.path)));
  return root === join(userHome, '.claude') ? undefined : root;
}

/** The command with which the user goes on in a terminal (M4): sessions of print mode are not in Claude's own picker. */
export function resumeCommand(
  sessionId: string,
  workDir: string,
  configHome: string | undefined,
  platform: NodeJS.Platform,
): string {
  if (platform === 'win32') {
    const set = configHome === undefined ? '' : `set "CLAUDE_CONFIG_DIR=${configHome}" && `;
    return `${set}cd /d "${workDir}" && claude --resume ${sessionId}`;
  }
  const set = configHome === undefined ? '' : `CLAUDE_CONFIG_DIR=${quoted(configHome)} `;
  return `cd ${quoted(workDir)} && ${set}claude --resume ${sessionId}`;
}

/** As a shell reads it; a plain path stays as it is. */
function quoted(text: string): string {
  return /^[\w./@%+:,=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
