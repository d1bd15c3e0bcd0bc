import {
  type FileProblem,
  type FileStat,
  type FileSystemPort,
  toProblem,
} from '../../runtime/files/file-system.ts';
import type { ReadResult } from '../../runtime/files/head-tail.ts';
import { type Line, type LineCounts, splitLines } from '../../runtime/files/jsonl.ts';
import { type RolloutRead, rolloutOf } from './rollout.ts';

/** The largest packed file that is unpacked; rollouts shrink to about a tenth. */
export const PACKED_CAP = 32 * 1024 * 1024;
/** The most that is unpacked, whatever the file claims about itself. */
export const UNPACKED_CAP = 128 * 1024 * 1024;

/** Why a packed rollout was left out although it is readable. */
export interface NotUnpacked {
  readonly kind: 'not-unpacked';
  readonly reason: string;
}

/**
 * Reads a `.jsonl.zst` whole: it is never appended to, since Codex unpacks it in place when the thread goes on
 * (scenario `compressed-rollout`). Both sizes are bounded, and a damaged one is a problem of its own.
 */
export function readCompressed(
  files: FileSystemPort,
  path: string,
  stat: FileStat,
  counts: LineCounts,
): ReadResult<RolloutRead> | NotUnpacked {
  const unpacked = unpackLines(files, path, stat.size, counts);
  if (!('lines' in unpacked)) return unpacked;
  return { kind: 'read', value: { rollout: rolloutOf(unpacked.lines), committed: undefined }, stat };
}

/** All lines of a packed rollout. */
export function unpackLines(
  files: FileSystemPort,
  path: string,
  size: number,
  counts: LineCounts,
): { readonly lines: readonly Line[] } | FileProblem | NotUnpacked {
  if (size > PACKED_CAP) return { kind: 'not-unpacked', reason: 'the packed file is too large' };
  const packed = readAll(files, path, size);
  if (!Buffer.isBuffer(packed)) return packed;
  try {
    // Loaded here, since it takes 8 to 16 ms and hardly any rollout is packed.
    const { zstdDecompressSync } = process.getBuiltinModule('node:zlib');
    const bytes = zstdDecompressSync(packed, { maxOutputLength: UNPACKED_CAP });
    return { lines: splitLines(bytes, { counts }).lines };
  } catch {
    // Damaged, cut off, or larger than the cap: zlib says which only in words of its own.
    return { kind: 'not-unpacked', reason: 'it cannot be unpacked' };
  }
}

function readAll(files: FileSystemPort, path: string, size: number): Buffer | FileProblem {
  try {
    const fd = files.open(path);
    try {
      const buffer = Buffer.alloc(size);
      let filled = 0;
      while (filled < size) {
        const count = files.read(fd, buffer, filled, size - filled, filled);
        if (count === 0) return { kind: 'changed' };
        filled += count;
      }
      return buffer;
    } finally {
      files.close(fd);
    }
  } catch (error) {
    return toProblem(error);
  }
}
