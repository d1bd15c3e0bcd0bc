import { redact } from './redact.ts';

const ESCAPE_SEQUENCES =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is removed here (O4).
  /\u001b(?:\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[PX^_][^\u001b]*(?:\u001b\\)?|\[[0-?]*[ -/]*[@-~]|[ -/]*[0-~])/g;
const BIDI_AND_INVISIBLE =
  /[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\ufff9-\ufffb]/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the same.
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g;
const LONE_SURROGATES = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Longest title that is kept, in graphemes (`cli-surface.md` §5). */
export const TITLE_LIMIT = 100;

/**
 * One line without escape sequences, control, bidi or invisible characters; runs of white space become one
 * space (O4). Safe to print on any terminal.
 */
export function oneLine(text: string): string {
  return text
    .replace(ESCAPE_SEQUENCES, ' ')
    .replace(BIDI_AND_INVISIBLE, '')
    .replace(CONTROLS, ' ')
    .replace(LONE_SURROGATES, '\ufffd')
    .replace(/\s+/g, ' ')
    .trim();
}

const segmenter: { graphemes?: Intl.Segmenter } = {};

/** Made when first needed: it costs 6 ms, and most texts are short enough without it. */
function graphemesOf(text: string): Iterable<Intl.SegmentData> {
  segmenter.graphemes ??= new Intl.Segmenter(undefined, { granularity: 'grapheme' });
  return segmenter.graphemes.segment(text);
}

/** Cuts to at most `limit` graphemes, never inside one; a cut text ends in `…`, or in what `mark` says. */
export function clip(text: string, limit: number, mark = '…'): string {
  if (text.length <= limit) return text;
  const parts: string[] = [];
  for (const { segment } of graphemesOf(text)) {
    parts.push(segment);
    if (parts.length > limit)
      return (
        parts
          .slice(0, Math.max(0, limit - mark.length))
          .join('')
          .trimEnd() + mark
      );
  }
  return text;
}

/** Bytes of a prompt that are looked at for a title: enough for any title, and bounded for a 5 MB prompt. */
const TITLE_SCAN_LIMIT = 4_096;

/**
 * A session's title from a prompt or from the program's own title: first line that says something, cleaned,
 * secrets masked, at most 100 graphemes. `undefined` if nothing is left.
 */
export function cleanTitle(raw: string): string | undefined {
  const title = clip(redact(oneLine(raw.slice(0, TITLE_SCAN_LIMIT))), TITLE_LIMIT);
  return title === '' ? undefined : title;
}
