import { printErr } from './print.ts';
import { isTerminal } from './terminal.ts';

/** Longest answer that is read, bytes. */
const ANSWER_BYTES = 256;

/**
 * Asks a person for a yes on the terminal; false where nobody sits there, or for anything but a yes. The question goes
 * to stderr: stdout is the answer of the command.
 */
export async function askYesNo(question: string): Promise<boolean> {
  if (!isTerminal(0) || !isTerminal(2)) return false;
  printErr(`\r\u001b[K${question} [y/N] `);
  const reader = Bun.stdin.stream().getReader();
  try {
    const { value } = await reader.read();
    return /^\s*y(?:es)?\s*$/i.test(Buffer.from(value ?? []).toString('utf8', 0, ANSWER_BYTES));
  } finally {
    reader.releaseLock();
  }
}
