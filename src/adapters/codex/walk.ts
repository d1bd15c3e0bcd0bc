import type { ScanProblem } from '../../runtime/feed.ts';
import {
  type FileProblem,
  type FileStat,
  type FileSystemPort,
  toProblem,
  tryStat,
} from '../../runtime/files/file-system.ts';
import { type CodexHome, joinPath } from './homes.ts';
import { parseRolloutName, type RolloutFile } from './segments.ts';

/** A rollout with what a `stat` said about it. */
export interface FoundRollout extends RolloutFile {
  readonly stat: FileStat;
}

export interface Walked {
  readonly rollouts: readonly FoundRollout[];
  /** Day folders that hold rollouts, for watching. */
  readonly folders: readonly string[];
  readonly problems: readonly ScanProblem[];
  /** `sessions` exists. */
  readonly present: boolean;
}

/**
 * Lists every rollout by its name: all `YYYY/MM/DD` folders, since an old thread goes on in its old folder, and
 * the flat `archived_sessions`. Opens nothing. Links are not followed below the home (S-906); a folder that can't
 * be read costs its own files only.
 */
export function walkRollouts(home: CodexHome, files: FileSystemPort, platform: NodeJS.Platform): Walked {
  const walker = new Walker(files, platform);
  const present = walker.walk(home.sessions, DATE_PARTS, false);
  walker.walk(home.archived, [], true);
  return { rollouts: walker.rollouts, folders: walker.folders, problems: walker.problems, present };
}

const DATE_PARTS: readonly RegExp[] = [/^\d{4}$/, /^\d{2}$/, /^\d{2}$/];

class Walker {
  readonly rollouts: FoundRollout[] = [];
  readonly folders: string[] = [];
  readonly problems: ScanProblem[] = [];
  readonly #files: FileSystemPort;
  readonly #platform: NodeJS.Platform;

  constructor(files: FileSystemPort, platform: NodeJS.Platform) {
    this.#files = files;
    this.#platform = platform;
  }

  /** Returns whether the folder exists. `below` are the shapes of the folder names that are entered. */
  walk(folder: string, below: readonly RegExp[], archived: boolean): boolean {
    const entries = this.#entries(folder);
    if (!entries) return false;
    const before = this.rollouts.length;
    for (const entry of entries) {
      const path = joinPath(this.#platform, folder, entry.name);
      if (entry.kind === 'file') this.#take(path, entry.name, archived);
      if (entry.kind === 'folder' && below[0]?.test(entry.name)) this.walk(path, below.slice(1), archived);
    }
    if (this.rollouts.length > before && below.length === 0) this.folders.push(folder);
    return true;
  }

  #entries(folder: string) {
    try {
      return this.#files.entries(folder);
    } catch (error) {
      const problem = toProblem(error);
      if (problem.kind !== 'missing')
        this.problems.push({ subject: folder, reason: reasonText(problem), skipped: 1 });
      return undefined;
    }
  }

  #take(path: string, name: string, archived: boolean): void {
    const parsed = parseRolloutName(name);
    if (!parsed) return;
    const stat = tryStat(this.#files, path);
    if ('size' in stat) {
      this.rollouts.push({ ...parsed, path, archived, stat });
      return;
    }
    // Archived, deleted or unpacked between the listing and this look: it is in its new place by the next scan.
    if (stat.kind !== 'missing') this.problems.push({ subject: path, reason: reasonText(stat), skipped: 1 });
  }
}

/** A file problem in words. */
export function reasonText(problem: FileProblem): string {
  switch (problem.kind) {
    case 'missing':
      return 'it is gone';
    case 'not-a-file':
      return 'it is not a regular file';
    case 'changed':
      return 'it changed while it was read';
    case 'unreadable':
      return `it cannot be read (${problem.code})`;
  }
}
