import { posix, win32 } from 'node:path';
import { clip } from '../session/text.ts';
import type { TitlePrivacy } from './schema.ts';

/** Longest title under `short`, in graphemes. */
export const SHORT_TITLE = 24;

interface Shown {
  readonly title: string | undefined;
  readonly workDir: string | undefined;
}

/** A title and a folder as `privacy.titles` lets them be shown: as they are, cut to a few words, or not at all. */
export function showTitle(shown: Shown, titles: TitlePrivacy): Shown {
  if (titles === 'full') return shown;
  if (titles === 'hidden') return { title: undefined, workDir: undefined };
  const { title, workDir } = shown;
  return {
    title: title === undefined ? undefined : clip(title, SHORT_TITLE),
    workDir: workDir === undefined ? undefined : baseName(workDir),
  };
}

function baseName(path: string): string {
  return (/^[a-z]:[\\/]|^\\\\/i.test(path) ? win32.basename(path) : posix.basename(path)) || path;
}
