/**
 * Windows hands a program one line, not a list of arguments. These functions go both ways by the rules of
 * Microsoft's C runtime, and add the second layer that `cmd.exe` needs for `.cmd` and `.bat` files.
 */

/**
 * Splits a command line as the C runtime does: `2n` backslashes before a quote are `n` backslashes and the
 * quote switches quoting, `2n+1` are `n` and a literal quote, `""` inside quotes is a literal quote, and all
 * other backslashes stand for themselves. The program's own name knows no escapes.
 */
export function splitWindowsCommandLine(line: string): string[] {
  const text = line.trim();
  const program = /^"([^"]*)"?|^\S+/.exec(text);
  if (program === null) return [];
  return [program[1] ?? program[0], ...splitArguments(text.slice(program[0].length))];
}

function splitArguments(text: string): string[] {
  const found: string[] = [];
  let current: string | null = null;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const slashes = /^\\*/.exec(text.slice(at))?.[0].length ?? 0;
    const next = text[at + slashes];
    if (slashes > 0 && next !== '"') {
      current = (current ?? '') + '\\'.repeat(slashes);
      at += slashes - 1;
      continue;
    }
    if (next === '"') {
      const doubled: boolean = quoted && slashes % 2 === 0 && text[at + slashes + 1] === '"';
      const literal = slashes % 2 === 1 || doubled;
      current = (current ?? '') + '\\'.repeat(Math.floor(slashes / 2)) + (literal ? '"' : '');
      if (!literal) quoted = !quoted;
      at += slashes + (doubled ? 1 : 0);
      continue;
    }
    if (!quoted && /\s/.test(next ?? '')) {
      if (current !== null) found.push(current);
      current = null;
      continue;
    }
    current = (current ?? '') + (next ?? '');
  }
  return current === null ? found : [...found, current];
}

/** One argument, quoted so that `splitWindowsCommandLine` gives it back. */
export function quoteWindowsArgument(argument: string): string {
  if (argument !== '' && !/[\s"]/.test(argument)) return argument;
  return inQuotes(argument);
}

/** Backslashes count double only in front of a quote, the closing one included. */
function inQuotes(argument: string): string {
  return `"${argument.replace(/(\\*)"/g, '$1$1\\"').replace(/(\\+)$/, '$1$1')}"`;
}

/** True for the script files that Windows can start only through `cmd.exe`, as npm's shims are. */
export function needsCmd(program: string): boolean {
  return /\.(cmd|bat)$/i.test(program);
}

/**
 * The line for `cmd.exe /d /s /c "<line>"` that starts a `.cmd` file with these arguments. Everything that is
 * syntax for cmd gets a caret, and the arguments get a second one, because the script's own `%*` is parsed
 * again. Null when an argument can't be carried safely: a line break ends the command, whatever is written
 * before it, so such text has to go through stdin.
 */
export function cmdLine(argv: readonly string[]): string | null {
  const [program, ...rest] = argv;
  if (program === undefined || argv.some((argument) => /[\r\n\0]/.test(argument))) return null;
  const caret = (text: string): string => text.replace(/[()[\]%!^"`<>&|;, *?]/g, '^$&');
  const quote = (text: string): string => (/^[\w.:\\/-]+$/.test(text) ? text : inQuotes(text));
  return [caret(program), ...rest.map((argument) => caret(caret(quote(argument))))].join(' ');
}
