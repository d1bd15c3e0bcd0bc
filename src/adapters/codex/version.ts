/**
 * Whether a `cli_version` is 0.<minor> or newer; false where it is missing or has another form.
 */
export function isAtLeast(version: string | undefined, minor: number): boolean {
  const match = /^(\d+)\.(\d+)\./.exec(version ?? '');
  return match !== null && (Number(match[1]) > 0 || Number(match[2]) >= minor);
}
