import { writeSync } from 'node:fs';
import { isTerminal } from './terminal.ts';

/** Sends a bell or a banner sequence to the terminal that we write to; false where it is none. */
export function signalTerminal(sequence: string): boolean {
  if (!isTerminal(1)) return false;
  try {
    writeSync(1, sequence);
    return true;
  } catch {
    // The terminal has gone, and with it whoever was to be told.
    return false;
  }
}
