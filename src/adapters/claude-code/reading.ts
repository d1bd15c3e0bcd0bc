import type { ScanProblem } from '../../runtime/feed.ts';
import { type FileStat, type FileSystemPort, sameContent } from '../../runtime/files/file-system.ts';
import { createFileReader } from '../../runtime/files/head-tail.ts';
import type { FileStamp, SessionIndex } from '../../runtime/store/session-index.ts';
import { problemsOf } from '../file-problems.ts';
import type { FoundTranscript } from './discover.ts';
import { decodeSummary, encodeSummary, type TranscriptSummary } from './summary.ts';
import { readTranscript } from './transcript.ts';

/** The scope of our entries; the number is the schema of their values. */
export const INDEX_SCOPE = 'claude-code/2';

/** A summary and the version of the file that it was made of. */
interface Remembered {
  readonly stat: FileStamp;
  readonly summary: TranscriptSummary;
  /** From the index, which holds neither the labels of tools nor the words of errors. */
  readonly bare: boolean;
}

/** What a process that watches remembers of files, with all that the index may not hold. */
export type TranscriptMemory = Map<string, Remembered>;

/** Gives the summaries of transcripts, opening only files that have changed (0 opens for an unchanged one). */
export interface TranscriptReading {
  /** `undefined` if the file can't be read, which is then among the problems. */
  summary(found: FoundTranscript): TranscriptSummary | undefined;
  /** The same with labels and error words: opens the file if only the index knows it. */
  full(found: FoundTranscript): TranscriptSummary | undefined;
  /** Whether the file is known without opening it. */
  isKnown(found: FoundTranscript): boolean;
  readonly problems: readonly ScanProblem[];
}

/** Reads for one scan. `memory` outlives it. */
export function createReading(
  files: FileSystemPort,
  index: SessionIndex | undefined,
  memory: TranscriptMemory,
): TranscriptReading {
  const reader = createFileReader(files);
  const entries = index?.load(INDEX_SCOPE);
  const problems: ScanProblem[] = [];

  const known = (path: string, stat: FileStat): Remembered | undefined => {
    const remembered = memory.get(path);
    if (remembered && sameContent(remembered.stat, stat)) return remembered;
    const entry = entries?.get(path);
    if (!entry || !sameContent(entry.stamp, stat)) return undefined;
    const summary = decodeSummary(entry.value);
    if (!summary) return undefined;
    const found = { stat, summary, bare: true };
    memory.set(path, found);
    return found;
  };

  const read = (found: FoundTranscript): TranscriptSummary | undefined => {
    const result = readTranscript(reader, found.path, found.sessionId, found.stat);
    if (result.kind !== 'read') {
      problems.push(...problemsOf(found.path, result));
      return undefined;
    }
    const { stat, value } = result;
    memory.set(found.path, { stat, summary: value, bare: false });
    index?.stage(INDEX_SCOPE, found.path, { stamp: stampOf(stat), value: encodeSummary(value) });
    return value;
  };

  return {
    problems,
    isKnown: (found) => known(found.path, found.stat) !== undefined,
    summary: (found) => known(found.path, found.stat)?.summary ?? read(found),
    full(found) {
      const remembered = known(found.path, found.stat);
      return remembered && !remembered.bare ? remembered.summary : (read(found) ?? remembered?.summary);
    },
  };
}

function stampOf(stat: FileStat): FileStamp {
  const { kind: _, ...stamp } = stat;
  return stamp;
}
