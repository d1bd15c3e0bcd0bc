import { join } from 'node:path';
import { type FileSystemPort, tryNames } from '../../runtime/files/file-system.ts';

/**
 * How many sub-agents a session has had, from its own folder (`<id>/subagents/agent-*.jsonl`). They are never rows
 * of their own and never read for a state: their rows carry the parent's id (G4), and what they wait for shows in
 * the parent's live file.
 */
export function countSubAgents(files: FileSystemPort, companion: string): number {
  const { names } = tryNames(files, join(companion, 'subagents'));
  return names.filter((name) => /^agent-.+\.jsonl$/.test(name)).length;
}
