/** How text may look: colour only on a terminal, never under NO_COLOR, never for TERM=dumb. */
export interface Style {
  readonly colour: boolean;
  /** Columns to fill; undefined where nobody looks (a pipe). */
  readonly columns: number | undefined;
  readonly rows: number | undefined;
  /** Whether the cursor may be moved (a panel that redraws in place). */
  readonly canRedraw: boolean;
  readonly unicode: boolean;
}

interface Terminal {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
}

/**
 * Reads the terminal and the environment. `NO_COLOR` with any value wins over `FORCE_COLOR`
 * (no-color.org); `CLICOLOR_FORCE` is not read.
 */
export function detectStyle(
  terminal: Terminal,
  env: Readonly<Record<string, string | undefined>>,
  platform: NodeJS.Platform,
): Style {
  const isTerminal = terminal.isTTY === true;
  const dumb = env['TERM'] === 'dumb' || (env['TERM'] === undefined && platform !== 'win32' && isTerminal);
  const forbidden = (env['NO_COLOR'] ?? '') !== '';
  const forced = (env['FORCE_COLOR'] ?? '') !== '' && env['FORCE_COLOR'] !== '0';
  return {
    colour: !forbidden && (forced || (isTerminal && !dumb)),
    columns: isTerminal ? (terminal.columns ?? 80) : undefined,
    rows: isTerminal ? (terminal.rows ?? 24) : undefined,
    canRedraw: isTerminal && !dumb,
    unicode: speaksUnicode(env, platform),
  };
}

function speaksUnicode(
  env: Readonly<Record<string, string | undefined>>,
  platform: NodeJS.Platform,
): boolean {
  if (platform === 'win32') return env['WT_SESSION'] !== undefined || env['TERM_PROGRAM'] === 'vscode';
  const locale = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'] || '';
  return locale === '' || /utf-?8/i.test(locale);
}

export type Paint = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'blue' | 'cyan';

const CODES: Record<Paint, readonly [number, number]> = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  blue: [34, 39],
  cyan: [36, 39],
};

/** Wraps text in one look; plain where colour is off. */
export function paint(style: Style, look: Paint, text: string): string {
  if (!style.colour || text === '') return text;
  const [on, off] = CODES[look];
  return `\u001b[${on}m${text}\u001b[${off}m`;
}
