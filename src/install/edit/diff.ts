/** A change as a unified diff, for `--dry-run` and for refusals. Pure. */
import { createTwoFilesPatch, FILE_HEADERS_ONLY } from 'diff';

/** Shown in place of a name for a file that is not there. */
const NO_FILE = '/dev/null';

/**
 * The unified diff between two texts of a file, three lines around each change; empty if they are equal.
 * `null` is no file. Line ends are shown as they are, so a change of `\r\n` is one.
 */
export function unifiedDiff(name: string, before: string | null, after: string | null): string {
  if (before === after) return '';
  return createTwoFilesPatch(
    before === null ? NO_FILE : name,
    after === null ? NO_FILE : name,
    before ?? '',
    after ?? '',
    undefined,
    undefined,
    { context: 3, headerOptions: FILE_HEADERS_ONLY },
  );
}
