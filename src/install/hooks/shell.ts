/**
 * Writes our command for the shell that will run it. Pure.
 *
 * A path that every shell takes as it is stays as it is; any other is quoted for one shell alone, since no quoting
 * means the same to all of them (W2): `cmd` strips quotes, and PowerShell takes a quoted path for a text.
 */

/** `bash` on Windows is Git Bash. */
export type HookShell = 'bash' | 'cmd' | 'powershell';

/**
 * The line that starts `program` with plain words behind it (letters, digits, dashes).
 *
 * `bash`: forward slashes on Windows (W1: a backslash would be lost), single quotes where needed (S-804). `cmd`:
 * carets, not quotes, since a runtime that hands the line to `cmd /c` adds quotes of its own around it. `powershell`:
 * the call operator and single quotes.
 */
export function commandLine(
  shell: HookShell,
  platform: NodeJS.Platform,
  program: string,
  words: readonly string[],
): string {
  return [quote(shell, platform, program), ...words].join(' ');
}

function quote(shell: HookShell, platform: NodeJS.Platform, program: string): string {
  if (shell === 'cmd') return program.replaceAll('/', '\\').replace(/[^\p{L}\p{N}\\:._+-]/gu, '^$&');
  if (shell === 'powershell') {
    return /^[\w:./\\-]+$/.test(program) ? program : `& '${program.replace(/['‘’‚‛]/g, '$&$&')}'`;
  }
  const path = platform === 'win32' ? program.replaceAll('\\', '/') : program;
  return /^[\w@%+:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
