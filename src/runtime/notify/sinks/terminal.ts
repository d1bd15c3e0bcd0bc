import { oneLine } from '../../session/text.ts';
import { bannerOf, lineOf, type Notice } from '../notice.ts';

/** How a terminal is told: the bell, or the two escape sequences that terminals show as a banner. */
export type TerminalStyle = 'bell' | 'osc9' | 'osc777';

const [ESC, BEL] = ['\u001b', '\u0007'];

/**
 * The bytes that tell a terminal of a notice: the bell, OSC 9 (iTerm2, Windows Terminal, WezTerm, kitty) or OSC 777
 * (urxvt, foot, Ghostty). The text is one line without control characters, so nothing in it can end the sequence. Inside
 * tmux it is wrapped so that tmux passes it on (it does with `allow-passthrough`), with a bell for where it does not.
 */
export function terminalSignal(
  notice: Notice,
  style: TerminalStyle,
  details: boolean,
  insideTmux: boolean,
): string {
  if (style === 'bell') return BEL;
  const sequence = style === 'osc9' ? osc9(notice, details) : osc777(notice, details);
  if (!insideTmux) return sequence;
  return `${ESC}Ptmux;${sequence.replaceAll(ESC, ESC + ESC)}${ESC}\\${BEL}`;
}

function osc9(notice: Notice, details: boolean): string {
  const text = details
    ? oneLine(`${bannerOf(notice, true).title}: ${bannerOf(notice, true).text}`)
    : oneLine(lineOf(notice));
  // ConEmu and Windows Terminal read "9;4;…" and the like as commands of another kind.
  return `${ESC}]9;${/^\d/.test(text) ? `· ${text}` : text}${BEL}`;
}

/** `;` parts its fields, so the title may hold none. */
function osc777(notice: Notice, details: boolean): string {
  const { title, text } = bannerOf(notice, details);
  return `${ESC}]777;notify;${oneLine(title).replaceAll(';', ',')};${oneLine(text)}${BEL}`;
}
