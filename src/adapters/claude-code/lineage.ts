import type { Transcript } from './session.ts';

/**
 * Which session each fork was copied from (G6, `--fork-session`). 2.1.332 names it on the copied replies; for older
 * copies it is the one session that begins with the same row and is no copy itself.
 */
export function forkParents(transcripts: ReadonlyMap<string, Transcript>): ReadonlyMap<string, string> {
  const originals = new Map<string, string[]>();
  const copies: [string, Transcript][] = [];
  for (const [id, transcript] of transcripts) if (transcript.summary.copied) copies.push([id, transcript]);
  if (copies.length === 0) return NO_PARENTS;
  for (const [id, { summary }] of transcripts) {
    if (!summary.firstUuid || summary.copied) continue;
    const same = originals.get(summary.firstUuid);
    if (same) same.push(id);
    else originals.set(summary.firstUuid, [id]);
  }
  const parents = new Map<string, string>();
  for (const [id, { summary }] of copies) {
    const same = (summary.firstUuid && originals.get(summary.firstUuid)) || [];
    const parent = summary.forkedFromId ?? (same.length === 1 ? same[0] : undefined);
    if (parent && parent !== id) parents.set(id, parent);
  }
  return parents;
}

const NO_PARENTS: ReadonlyMap<string, string> = new Map();
