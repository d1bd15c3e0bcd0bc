/**
 * Turns a terminal's picture into an SVG, for the README:
 *
 *   tmux capture-pane -e -p | bun scripts/terminal-svg.ts > docs/overview.svg
 *
 * Reads text with SGR sequences on stdin. Knows the looks that our own output uses, and nothing else.
 */
export {};

const CELL = { width: 8.4, height: 18, size: 14 } as const;
const PADDING = 16;

const COLOURS: Readonly<Record<number, string>> = {
  31: '#ff7b72',
  32: '#7ee787',
  33: '#f2cc60',
  34: '#79c0ff',
  36: '#76e3ea',
};
const PLAIN = '#e6edf3';
const DIM = '#8b949e';

interface Look {
  readonly bold: boolean;
  readonly dim: boolean;
  readonly colour: string | undefined;
}
const NO_LOOK: Look = { bold: false, dim: false, colour: undefined };

function nextLook(look: Look, code: number): Look {
  if (code === 0) return NO_LOOK;
  if (code === 1) return { ...look, bold: true };
  if (code === 2) return { ...look, dim: true };
  if (code === 22) return { ...look, bold: false, dim: false };
  if (code === 39) return { ...look, colour: undefined };
  return COLOURS[code] ? { ...look, colour: COLOURS[code] } : look;
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function spansOf(line: string, start: Look): { readonly spans: string; readonly look: Look } {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: SGR sequences are what is read here.
  const parts = line.split(/\u001b\[([0-9;]*)m/);
  let look = start;
  let column = 0;
  const spans = parts.map((part, i) => {
    if (i % 2 === 1) {
      for (const code of part.split(';')) look = nextLook(look, Number(code));
      return '';
    }
    const x = PADDING + column * CELL.width;
    column += Bun.stringWidth(part);
    if (part.trim() === '') return '';
    const fill = look.colour ?? (look.dim ? DIM : PLAIN);
    const weight = look.bold ? ' font-weight="bold"' : '';
    return `<tspan x="${x.toFixed(1)}" fill="${fill}"${weight}>${escapeXml(part)}</tspan>`;
  });
  return { spans: spans.join(''), look };
}

function toSvg(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: trailing lines hold nothing but resets.
  const lines = text.replace(/(\s|\u001b\[[0-9;]*m)+$/, '').split('\n');
  const columns = Math.max(...lines.map((line) => Bun.stringWidth(line)));
  const width = Math.ceil(columns * CELL.width + 2 * PADDING);
  const height = lines.length * CELL.height + 2 * PADDING;
  let look = NO_LOOK;
  const rows = lines.map((line, i) => {
    const drawn = spansOf(line, look);
    look = drawn.look;
    const y = PADDING + (i + 1) * CELL.height - 5;
    return `  <text y="${y}" xml:space="preserve">${drawn.spans}</text>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    '  <title>The overview of shadowob-connector in a terminal</title>',
    `  <rect width="100%" height="100%" rx="8" fill="#0d1117"/>`,
    `  <g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="${CELL.size}">`,
    ...rows,
    '  </g>',
    '</svg>',
    '',
  ].join('\n');
}

process.stdout.write(toSvg(await Bun.stdin.text()));
