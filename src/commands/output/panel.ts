import { printOut } from './print.ts';
import type { Style } from './style.ts';
import { fit } from './table.ts';

const HIDE_CURSOR = '\u001b[?25l';
const SHOW_CURSOR = '\u001b[?25h';
const CLEAR_TO_LINE_END = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';
const HOME = '\u001b[H';
const ENTER_SCREEN = '\u001b[?1049h';
const LEAVE_SCREEN = '\u001b[?1049l';

/** A screen that pictures are painted on. */
export interface Panel {
  paint(picture: string): void;
  close(): void;
}

/**
 * A panel that redraws in place where the terminal can (the alternate screen, so that the user's scroll-back
 * stays), and elsewhere prints a picture only when it differs. Lines are cut to the screen, so that a resize
 * never leaves a broken one.
 */
export function openPanel(style: Style, size: () => { columns: number; rows: number }): Panel {
  if (!style.canRedraw) return plainPanel();
  printOut(ENTER_SCREEN + HIDE_CURSOR);
  return {
    paint(picture) {
      const { columns, rows } = size();
      const lines = picture.split('\n').slice(0, Math.max(1, rows));
      const body = lines.map((line) => cutLine(line, columns) + CLEAR_TO_LINE_END).join('\r\n');
      printOut(HOME + body + CLEAR_BELOW);
    },
    close() {
      printOut(SHOW_CURSOR + LEAVE_SCREEN);
    },
  };
}

function plainPanel(): Panel {
  const seen = { last: '' };
  return {
    paint(picture) {
      if (picture === seen.last) return;
      seen.last = picture;
      printOut(`${picture}\n\n`);
    },
    close() {},
  };
}

/** Cuts a line that may hold colour codes: one that is too long loses its colours rather than its end code. */
function cutLine(line: string, columns: number): string {
  if (Bun.stringWidth(line) <= columns) return line;
  return fit(Bun.stripANSI(line), columns);
}
