import type { ScanProblem } from '../../runtime/feed.ts';
import {
  type FileStat,
  type FileSystemPort,
  notAFile,
  toProblem,
  tryStat,
} from '../../runtime/files/file-system.ts';
import { problemsOf } from '../file-problems.ts';
import type { PiHome } from './homes.ts';

/** A session file that was found; nothing of it has been read. */
export interface FoundSession {
  /** Of the file's name; line 1 must say the same. */
  readonly sessionId: string;
  readonly path: string;
  readonly stat: FileStat;
}

export interface Discovery {
  readonly sessions: readonly FoundSession[];
  readonly problems: readonly ScanProblem[];
  /** The sessions folder exists. */
  readonly present: boolean;
}

const NAME = /^[0-9TZ-]+_([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.jsonl$/i;

/** The session id in the name of a session file; `undefined` for any other file. */
export function sessionIdOf(name: string): string | undefined {
  return NAME.exec(name)?.[1]?.toLowerCase();
}

/**
 * Finds the session files: one level below `sessions`, and flat where they were put flat (tricky case 14). Folder
 * names are never decoded: `/`, `\` and `:` all became `-`. Links are not followed (S-906); what can't be read costs
 * its own files only.
 */
export function discoverSessions(
  files: FileSystemPort,
  home: PiHome,
  join: (...parts: readonly string[]) => string,
  wanted: (sessionId: string) => boolean = () => true,
): Discovery {
  const sessions = new Map<string, FoundSession>();
  const problems: ScanProblem[] = [];

  const look = (folder: string, depth: number): boolean => {
    const entries = entriesOf(files, folder);
    if ('kind' in entries) {
      problems.push(...problemsOf(folder, entries));
      return false;
    }
    for (const entry of entries) {
      const path = join(folder, entry.name);
      if (entry.kind === 'folder' && depth > 0) look(path, depth - 1);
      const sessionId = entry.kind === 'file' ? sessionIdOf(entry.name) : undefined;
      if (sessionId === undefined || !wanted(sessionId)) continue;
      const stat = tryStat(files, path);
      const refused = notAFile(stat);
      if (refused) problems.push(...problemsOf(path, refused));
      if (refused || !('size' in stat)) continue;
      const other = sessions.get(sessionId);
      if (!other || other.stat.mtimeMs < stat.mtimeMs) sessions.set(sessionId, { sessionId, path, stat });
    }
    return true;
  };

  const present = look(home.sessions, 1);
  const flat = home.flat !== undefined && look(home.flat, 0);
  return { sessions: [...sessions.values()], problems, present: present || flat };
}

function entriesOf(files: FileSystemPort, folder: string) {
  try {
    return files.entries(folder);
  } catch (error) {
    return toProblem(error);
  }
}
