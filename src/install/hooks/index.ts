import { claudeCode } from './claude.ts';
import { codex } from './codex.ts';
import type { Integration } from './integration.ts';
import { opencode } from './opencode.ts';
import { pi } from './pi.ts';

/** Every runtime whose hooks can be installed, in the order of the catalog. A new one is one more member. */
export const INTEGRATIONS: readonly Integration[] = [claudeCode, codex, opencode, pi];

/** The integration that a word on the command line names: a runtime's id, or one of its aliases. */
export function findIntegration(word: string): Integration | undefined {
  return INTEGRATIONS.find((one) => one.id === word || one.aliases.includes(word));
}
