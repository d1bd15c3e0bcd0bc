import { cleanTitle } from '../../runtime/session/text.ts';
import type { Row } from './rows.ts';

/** Titles that the rows offer, all cleaned. */
export interface Titles {
  /** Given by the user (`--name`, `/rename`). */
  readonly custom?: string;
  /** Made by the program. */
  readonly program?: string;
  /** The first prompt that a person typed. */
  readonly prompt?: string;
}

/** The one to show: the user's own, else the program's, else the first real prompt (C11). */
export function chooseTitle(titles: Titles): string | undefined {
  return titles.custom ?? titles.program ?? titles.prompt;
}

/** Takes what one row offers: the newest custom and program title, the first prompt. */
export function addTitle(titles: Titles, row: Row): Titles {
  if (row.kind === 'title') {
    const title = cleanTitle(row.title);
    if (!title) return titles;
    return row.by === 'user' ? { ...titles, custom: title } : { ...titles, program: title };
  }
  if (row.kind !== 'prompt' || row.by !== 'user' || titles.prompt) return titles;
  const prompt = cleanTitle(withoutWrappers(row.text));
  return prompt ? { ...titles, prompt } : titles;
}

/** Whether a prompt says anything that a title can be made of: not so a pasted picture, or what an editor adds alone. */
export function hasWords(prompt: string): boolean {
  return withoutWrappers(prompt).trim() !== '';
}

/**
 * A prompt without the blocks that the program or an editor puts around it: reminders, what is selected in an
 * editor, attached images. What is left is what the person wrote.
 */
function withoutWrappers(text: string): string {
  return text
    .slice(0, WRAPPER_SCAN_LIMIT)
    .replace(/<(system-reminder|ide_[a-z_]+|local-command-[a-z]+|command-[a-z]+)>[\s\S]*?(<\/\1>|$)/g, ' ')
    .replace(/^\s*(\[Image #?\d*\]\s*)+/, ' ');
}

const WRAPPER_SCAN_LIMIT = 16_384;
