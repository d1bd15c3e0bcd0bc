/** One line of the result. */
export interface Result {
  readonly what: string;
  /** In words; empty where nothing is bound. */
  readonly bound: string;
  readonly measured: string;
  /** Against the reference that the bound names; empty where there is none. */
  readonly ratio: string;
  readonly verdict: 'ok' | 'TOO MUCH' | 'for the record' | 'not there';
}

const HEAD: Result = {
  what: 'what',
  bound: 'bound',
  measured: 'measured',
  ratio: 'ratio',
  verdict: 'verdict' as Result['verdict'],
};
const COLUMNS = ['what', 'bound', 'measured', 'ratio', 'verdict'] as const;

/** The results as a table for a terminal. */
export function toTable(results: readonly Result[]): string {
  const rows = [HEAD, ...results];
  const widths = COLUMNS.map((column) => Math.max(...rows.map((row) => Bun.stringWidth(row[column]))));
  const line = (row: Result): string =>
    COLUMNS.map((column, index) => row[column].padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd();
  return [line(HEAD), widths.map((width) => '-'.repeat(width)).join('  '), ...results.map(line)].join('\n');
}
