import type { CommandRunner } from '../process/types.ts';

/** What acting on sessions needs of its surroundings; an adapter's control context has all of it. */
export interface ActingContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The user's home folder. */
  readonly home: string;
  readonly platform: NodeJS.Platform;
  /** Epoch milliseconds. */
  now(): number;
  readonly connectorHome: string;
  /** Program and first arguments with which this program starts itself again. */
  readonly self: readonly string[];
  readonly version: string;
  /** Runs helper programs. */
  readonly run: CommandRunner;
  readonly log: { debug(message: string): void; warn(message: string): void };
}

/**
 * How this program starts itself again: the executable alone, or Bun with the entry file when it runs from its
 * sources. Files inside a compiled executable lie below `/$bunfs/` (`B:\~BUN\` on Windows).
 */
export function selfCommand(executable: string, entry: string): readonly string[] {
  const compiled = entry.startsWith('/$bunfs/') || /^[A-Z]:[\\/]~BUN[\\/]/i.test(entry);
  return compiled ? [executable] : [executable, entry];
}
