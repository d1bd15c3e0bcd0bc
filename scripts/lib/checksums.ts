/** `SHA256SUMS`, in the form that `sha256sum -c` and the installers read. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The file's name in a release. */
export const CHECKSUM_FILE = 'SHA256SUMS';

/** Lower-case hexadecimal SHA-256 of a file, read as a stream. */
export async function sha256(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk);
  return hash.digest('hex');
}

/** Two spaces between sum and name (`sha256sum`'s text mode), names sorted, a line feed at the end. */
export function formatChecksums(sums: ReadonlyMap<string, string>): string {
  return [...sums]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, sum]) => `${sum}  ${name}\n`)
    .join('');
}

/** Writes `SHA256SUMS` for these files of `folder`. */
export async function writeChecksums(folder: string, names: readonly string[]): Promise<void> {
  const sums = new Map<string, string>();
  for (const name of names) sums.set(name, await sha256(join(folder, name)));
  await writeFile(join(folder, CHECKSUM_FILE), formatChecksums(sums));
}
