/** Finds the comments of YAML, which its parser ties to values instead of giving their places. Pure. */
import { Lexer } from 'yaml';
import type { Span } from '../tree.ts';

/** The lexer's pieces make up the whole text, but for its own marks, which have no length there. */
export function commentsOf(text: string): readonly Span[] {
  const comments: Span[] = [];
  const MARKS = new Set(['\u0002', '\u0018', '\u001f']);
  [...new Lexer().lex(text)].reduce((at, piece, index, pieces) => {
    if (MARKS.has(piece)) return at;
    const end = at + piece.length;
    if (piece.startsWith('#') && pieces[index - 1] !== '\u001f') comments.push({ start: at, end });
    return end;
  }, 0);
  return comments;
}
