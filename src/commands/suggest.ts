/** Edits (insert, delete, replace, swap) between two short words. */
function distance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const above = rows[i - 1] ?? [];
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      const swap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const best = Math.min((above[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (above[j - 1] ?? 0) + cost);
      row.push(swap ? Math.min(best, (rows[i - 2]?.[j - 2] ?? 0) + 1) : best);
    }
    rows.push(row);
  }
  return rows[a.length]?.[b.length] ?? 0;
}

/** The known word that was most likely meant, or undefined if none is near (a third of its letters, at least 2). */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const lower = word.toLowerCase().slice(0, 64);
  const scored = known
    .map((candidate) => ({ candidate, edits: distance(lower, candidate.toLowerCase()) }))
    .filter(({ candidate, edits }) => edits <= Math.max(2, Math.floor(candidate.length / 3)))
    .sort((a, b) => a.edits - b.edits);
  const start = known.find((candidate) => lower.length >= 3 && candidate.startsWith(lower));
  return scored[0]?.candidate ?? start;
}
