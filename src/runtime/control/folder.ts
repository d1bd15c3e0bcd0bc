/** Reading the small files that hosts leave in the connector home. */
import { readdirSync } from 'node:fs';

/** The names in a folder; none where it is missing. */
export function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    // No host has run yet.
    return [];
  }
}

/** Parsed JSON of unknown shape; `undefined` for half of a file, or none of ours, which its reader then refuses. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Damaged: it is left for its owner to see.
    return undefined;
  }
}
