import { join, sep } from 'node:path';
import type { ScanProblem } from '../../runtime/feed.ts';
import {
  type FileStat,
  type FileSystemPort,
  notAFile,
  tryNames,
  tryStat,
} from '../../runtime/files/file-system.ts';
import { problemsOf } from '../file-problems.ts';
import type { ClaudeHome } from './homes.ts';

/** A transcript file that was found; nothing of it has been read. */
export interface FoundTranscript {
  /** The stem of the file's name: the only identity that counts (G4, G5); folder names are never decoded (P1, P3). */
  readonly sessionId: string;
  readonly path: string;
  readonly stat: FileStat;
  /** The session's own folder beside its file (sub-agents, tool results), where it has one. */
  readonly companion?: string;
}

export interface Discovery {
  readonly transcripts: readonly FoundTranscript[];
  readonly problems: readonly ScanProblem[];
}

const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}';
const TRANSCRIPT_NAME = new RegExp(`^${UUID}\\.jsonl$`, 'i');
const UUID_NAME = new RegExp(`^${UUID}$`, 'i');

/**
 * Finds the transcripts of one home, exactly two levels down (S-601). What is not named by a UUID is neither
 * stat'ed nor opened: `agent-<id>.jsonl` of sub-agents stand by the hundred thousand in some folders (G1, G2, C26,
 * S-604). A folder that can't be read is a problem of its own; the others are there.
 *
 * @param wanted chooses by session id before anything is stat'ed
 */
export function discoverTranscripts(
  files: FileSystemPort,
  home: ClaudeHome,
  wanted: (sessionId: string) => boolean,
): Discovery {
  const projects = tryNames(files, home.projects);
  const found = projects.names.map((name) => inFolder(files, join(home.projects, name), wanted));
  const problems = projects.problem ? problemsOf(home.projects, projects.problem) : [];
  return {
    transcripts: found.flatMap((folder) => folder.transcripts),
    problems: [...problems, ...found.flatMap((folder) => folder.problems)],
  };
}

function inFolder(files: FileSystemPort, folder: string, wanted: (sessionId: string) => boolean): Discovery {
  const { names, problem } = tryNames(files, folder);
  if (problem) return { transcripts: [], problems: problemsOf(folder, problem) };
  const companions = new Set(names.filter((name) => name.length === UUID_LENGTH && UUID_NAME.test(name)));
  const problems: ScanProblem[] = [];
  const transcripts: FoundTranscript[] = [];
  for (const name of names) {
    if (name.length !== UUID_LENGTH + '.jsonl'.length || !TRANSCRIPT_NAME.test(name)) continue;
    const stem = name.slice(0, UUID_LENGTH);
    if (!wanted(stem)) continue;
    // The folder's path is joined already, and there are thousands of names.
    const path = folder + sep + name;
    const stat = tryStat(files, path);
    const refused = notAFile(stat);
    if (refused) problems.push(...problemsOf(path, refused));
    if (refused || !('size' in stat)) continue;
    if (companions.has(stem)) {
      transcripts.push({ sessionId: stem, path, stat, companion: join(folder, stem) });
    } else {
      transcripts.push({ sessionId: stem, path, stat });
    }
  }
  return { transcripts, problems };
}

const UUID_LENGTH = 36;
