/**
 * Signatures of macOS executables. What the compiler leaves there is not ours: measured with Bun 1.4.5, the
 * x64 output still carries the vendor's own signature over changed pages (invalid, so macOS may kill it,
 * B3), and both name an identity that is not ours in the login-items dialog (B4).
 */

/** The identifier in the signature; macOS keys permissions and login items by it. Never change it. */
export const SIGNING_IDENTIFIER = 'com.shadowob.connector';

/** Strip, sign ad hoc under our own identifier, and check, in this order. */
export function signingCommands(file: string): readonly (readonly string[])[] {
  return [
    ['codesign', '--remove-signature', file],
    ['codesign', '--force', '--sign', '-', '--identifier', SIGNING_IDENTIFIER, file],
    ['codesign', '--verify', '--strict', '--verbose=2', file],
  ];
}

/** Runs one command to its end: its exit code and what it wrote to stderr. */
export type RunCommand = (command: readonly string[]) => { readonly code: number; readonly stderr: string };

const runHere: RunCommand = (command) => {
  const result = Bun.spawnSync([...command], { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' });
  return { code: result.exitCode, stderr: result.stderr.toString() };
};

/**
 * Signs a macOS executable where that is possible, which is on macOS. Elsewhere the answer is `unsigned`,
 * and the file must be signed before anyone runs it. Throws when `codesign` refuses.
 */
export function signExecutable(
  file: string,
  platform: string = process.platform,
  run: RunCommand = runHere,
): 'signed' | 'unsigned' {
  if (platform !== 'darwin') return 'unsigned';
  for (const command of signingCommands(file)) {
    const { code, stderr } = run(command);
    if (code !== 0) throw new Error(`${command.join(' ')} failed (${code}): ${stderr.trim()}`);
  }
  return 'signed';
}
