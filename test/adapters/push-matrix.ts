import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** One row of the push matrix in `docs/acting.md`: exit codes of `session-send`, and of `session-abort` beside it. */
export interface MatrixRow {
  readonly owner: string;
  readonly send: number;
  readonly abort: number;
}

/** The rows of one runtime, in order. */
export function matrixRows(runtimeId: string): readonly MatrixRow[] {
  const file = join(import.meta.dir, '..', '..', 'docs', 'acting.md');
  return readFileSync(file, 'utf8')
    .split('\n')
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .filter((cells) => cells[1] === runtimeId && cells.length > 9)
    .map((cells) => ({ owner: cells[2] ?? '', send: Number(cells[3]), abort: Number(cells[8]) }));
}
