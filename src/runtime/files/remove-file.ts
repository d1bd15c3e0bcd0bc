/** Removes a file that we made, if it still is what we made. */
import { readFileSync, rmdirSync, unlinkSync } from 'node:fs';
import { errorCode } from './file-system.ts';
import { followLinks } from './private-file.ts';

export type RemoveResult =
  /** `path` is the file itself, at the end of any links; the links stay. */
  | { readonly kind: 'removed'; readonly path: string }
  /** It is gone already, or holds something else. */
  | { readonly kind: 'conflict'; readonly path: string }
  | { readonly kind: 'failed'; readonly path: string; readonly code: string };

/** Removes the file at the end of any links if it holds exactly `expected` (H12). Never throws. */
export function removeFile(path: string, expected: Uint8Array): RemoveResult {
  try {
    const target = followLinks(path);
    if (!readFileSync(target).equals(expected)) return { kind: 'conflict', path: target };
    unlinkSync(target);
    return { kind: 'removed', path: target };
  } catch (error) {
    const code = errorCode(error);
    return code === 'ENOENT' ? { kind: 'conflict', path } : { kind: 'failed', path, code };
  }
}

/** Removes folders, the last one first, as far as they are empty. */
export function removeEmptyFolders(folders: readonly string[]): void {
  for (const folder of folders.toReversed()) {
    try {
      rmdirSync(folder);
    } catch {
      // Someone has put something into it, or it is gone: either way it is no longer ours to remove.
      return;
    }
  }
}
