import { chmodSync, readFileSync, rmSync, statSync } from 'node:fs';
import { errorCode } from '../../runtime/files/file-system.ts';
import { writePrivate } from '../../runtime/files/private-file.ts';

/**
 * The small script that an editor starts in our place (S-840, S-843). It is what makes the wrapper safe to leave
 * installed: if our program is gone, damaged, or an older one without the wrapper, Claude Code starts alone.
 */

export const SHIM_NAME = 'claude-wrap';

/** By this line a shim is known as ours wherever it lies (H6). */
const MARKER = '# shadowob-connector claude-wrap shim';
const SHIM_MODE = 0o700;
/** A larger file is no shim of ours. */
const SHIM_BYTES = 16 * 1024;

export interface ShimOptions {
  /** Program and first arguments with which our program starts itself. */
  readonly self: readonly string[];
  /** The daemon's socket, where it is not the one that the editor's own environment leads to. */
  readonly socket?: string;
}

/** The text of the shim, for `sh`. */
export function shimText({ self, socket }: ShimOptions): string {
  const [program = '', ...more] = self.map(quote);
  const words = ['"$program"', ...more, 'claude-wrap'].join(' ');
  const options = socket === undefined ? '' : ` --socket ${quote(socket)}`;
  return `#!/bin/sh
${MARKER}
# Starts Claude Code with its state reported to the connector, or alone where the connector can't be started.
program=${program}
if [ -f "$program" ] && [ -x "$program" ]; then
  case "$(${words} --help </dev/null 2>/dev/null)" in
    *claude-wrap*) exec ${words}${options} -- "$@" ;;
  esac
fi
exec "$@"
`;
}

function quote(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

/** Whose a file is. */
export type ShimAt = 'ours' | 'foreign' | 'absent';

/** Looks at the file that a setting names. */
export function shimAt(path: string): ShimAt {
  try {
    const stats = statSync(path);
    if (!stats.isFile() || stats.size > SHIM_BYTES) return 'foreign';
    return readFileSync(path, 'utf8').split('\n').includes(MARKER) ? 'ours' : 'foreign';
  } catch (error) {
    return errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR' ? 'absent' : 'foreign';
  }
}

export type ShimOutcome =
  | { readonly kind: 'written' | 'unchanged' }
  /** Nothing was changed; `code` is the system's, or `EEXIST` for a file that is not ours. */
  | { readonly kind: 'failed'; readonly code: string };

/** Writes the shim, 0700 (S-840). Never over somebody else's file. */
export function writeShim(path: string, text: string): ShimOutcome {
  const there = shimAt(path);
  if (there === 'foreign') return { kind: 'failed', code: 'EEXIST' };
  const result = writePrivate(path, text, { keep: there === 'ours' });
  if (result.kind === 'failed') return { kind: 'failed', code: result.code };
  if (result.kind === 'conflict') return { kind: 'failed', code: 'EBUSY' };
  try {
    const isRight = (statSync(path).mode & 0o777) === SHIM_MODE;
    if (!isRight) chmodSync(path, SHIM_MODE);
    return { kind: isRight ? result.kind : 'written' };
  } catch (error) {
    return { kind: 'failed', code: errorCode(error) };
  }
}

/** Whether {@link writeShim} would find nothing to do. */
export function shimStands(path: string, text: string): boolean {
  try {
    return (statSync(path).mode & 0o777) === SHIM_MODE && readFileSync(path, 'utf8') === text;
  } catch {
    // Not there, or not ours to read.
    return false;
  }
}

/** Removes a shim of ours. Returns the system's code where that failed. */
export function removeShim(path: string): string | undefined {
  try {
    rmSync(path, { force: true });
    return undefined;
  } catch (error) {
    return errorCode(error);
  }
}
