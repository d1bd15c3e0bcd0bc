import { type FileProblem, type FileSystemPort, toProblem } from '../../runtime/files/file-system.ts';

/** The most that is read of a status file; the recorded ones have one or two kilobytes. */
const LIMIT = 256 * 1024;

/** The text of a small file of the program's own, or why there is none. Longer files are cut, and then don't parse. */
export function readSmall(files: FileSystemPort, path: string): string | FileProblem {
  try {
    const stat = files.stat(path);
    if (stat.kind !== 'file') return { kind: 'not-a-file' };
    const fd = files.open(path);
    try {
      const buffer = Buffer.alloc(Math.min(Math.max(stat.size, 4_096), LIMIT));
      const length = files.read(fd, buffer, 0, buffer.length, 0);
      return buffer.toString('utf8', 0, length);
    } finally {
      files.close(fd);
    }
  } catch (error) {
    return toProblem(error);
  }
}
