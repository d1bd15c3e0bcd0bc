import { join, sep } from 'node:path';
import type { ScanProblem } from '../../runtime/feed.ts';
import { type FileSystemPort, tryNames } from '../../runtime/files/file-system.ts';
import { problemsOf } from '../file-problems.ts';
import { LIVE_FILE_NAME, type LiveFile, parseLiveFile } from './live-file.ts';
import { readSmall } from './small-file.ts';

/** The live registry of one home. */
export interface LiveRegistry {
  readonly files: readonly LiveFile[];
  /**
   * Whether a session without a live file is proven to have no owner: the folder was read, and no file of it
   * stayed torn.
   */
  readonly complete: boolean;
  readonly problems: readonly ScanProblem[];
}

/** The last value that was read of each live file; it stands while the file is rewritten under the reader (R-16). */
export type LiveMemory = Map<string, LiveFile>;

const ATTEMPTS = 4;
const PAUSE_MS = 3;

/** Reads `sessions/*.json` of a home. A torn file is read again a few times, then its last value stands. */
export async function readLiveFiles(
  files: FileSystemPort,
  folder: string,
  memory: LiveMemory,
): Promise<LiveRegistry> {
  const { names, problem } = tryNames(files, folder);
  if (problem) return { files: [], complete: false, problems: problemsOf(folder, problem) };
  const paths = names
    .filter((name) => LIVE_FILE_NAME.test(name))
    .sort()
    .map((name) => join(folder, name));
  const reads = await Promise.all(paths.map((path) => readOne(files, path, memory)));
  for (const path of memory.keys()) {
    if (path.startsWith(folder + sep) && !paths.includes(path)) memory.delete(path);
  }
  return {
    files: reads.flatMap((read) => read.file ?? []),
    complete: reads.every((read) => !read.torn),
    problems: reads.flatMap((read) => read.problems),
  };
}

interface OneRead {
  readonly file?: LiveFile;
  readonly torn: boolean;
  readonly problems: readonly ScanProblem[];
}

async function readOne(files: FileSystemPort, path: string, memory: LiveMemory): Promise<OneRead> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    if (attempt > 0) await Bun.sleep(PAUSE_MS);
    const text = readSmall(files, path);
    if (typeof text !== 'string') {
      const gone = text.kind === 'missing';
      if (gone) memory.delete(path);
      return { torn: !gone, problems: problemsOf(path, text) };
    }
    const content = parseLiveFile(text);
    if (content.kind === 'ignored') return { torn: false, problems: [] };
    if (content.kind === 'live') {
      memory.set(path, content.file);
      return { file: content.file, torn: false, problems: [] };
    }
  }
  const last = memory.get(path);
  return last
    ? { file: last, torn: false, problems: [] }
    : { torn: true, problems: [{ subject: path, reason: 'is half written', skipped: 1 }] };
}
