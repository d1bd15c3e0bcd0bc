/**
 * Which hooks of Claude Code are installed (R-21, S-810 with R-07). A name that a version does not know opens a
 * blocking warning at every start of its terminal program, so the list follows the oldest version that reads the file.
 * Hooks that replace what the program does (`WorktreeCreate`, `WorktreeRemove`) are never on it. Pure.
 */
import { compareVersions } from '../../adapters/claude-code/version.ts';

/** The oldest version whose list of names was seen; 2.1.332 has them all too. */
const KNOWN_SINCE = '2.1.197';

/** Names that every version has that was ever seen with hooks. */
const SHORT: readonly string[] = [
  'SessionStart',
  'UserPromptSubmit',
  'PreToolUse',
  'PostToolUse',
  'Notification',
  'Stop',
  'SubagentStop',
  'SessionEnd',
];

const REST: readonly string[] = [
  'PermissionRequest',
  'PermissionDenied',
  'PostToolUseFailure',
  'PostToolBatch',
  'StopFailure',
  'Elicitation',
  'ElicitationResult',
  'SubagentStart',
  'PreCompact',
  'PostCompact',
];

/** Events whose groups say which tools they are for. */
const WITH_MATCHER: ReadonlySet<string> = new Set([
  'PreToolUse',
  'PostToolUse',
  'PermissionRequest',
  'PermissionDenied',
  'PostToolUseFailure',
]);

export interface ClaudeEvents {
  readonly install: readonly string[];
  /** Names of ours that the oldest version does not know; an entry there has to go (R-21: a downgrade counts). */
  readonly unknown: readonly string[];
}

/**
 * The list for the versions that were found; `undefined` is one that does not say. Where one is not known nothing is
 * taken away: it may know more.
 */
export function claudeEvents(said: readonly (string | undefined)[]): ClaudeEvents {
  const versions = said.map((text) => /\d+(?:\.\d+)+/.exec(text ?? '')?.[0]);
  const isOld = (version: string | undefined) =>
    version !== undefined && compareVersions(version, KNOWN_SINCE) < 0;
  if (versions.length > 0 && versions.every((version) => version !== undefined && !isOld(version))) {
    return { install: [...SHORT, ...REST], unknown: [] };
  }
  return { install: SHORT, unknown: versions.some(isOld) ? REST : [] };
}

export const matcherOf = (event: string): string | undefined => (WITH_MATCHER.has(event) ? '*' : undefined);
