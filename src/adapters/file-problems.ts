import type { ScanProblem } from '../runtime/feed.ts';
import type { FileProblem } from '../runtime/files/file-system.ts';

/** Missing is no problem: a folder or file that went between two looks, a loose file among the folders. */
export function problemsOf(subject: string, problem: FileProblem): readonly ScanProblem[] {
  switch (problem.kind) {
    case 'missing':
      return [];
    case 'not-a-file':
      return [{ subject, reason: 'is no regular file', skipped: 1 }];
    case 'changed':
      return [{ subject, reason: 'was rewritten while it was read', skipped: 1 }];
    case 'unreadable':
      return [{ subject, reason: `can’t be read (${problem.code})`, skipped: 1 }];
  }
}
