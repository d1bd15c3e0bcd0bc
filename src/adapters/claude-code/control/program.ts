import type { Refusal } from '../../../runtime/control.ts';
import type { ControlContext } from '../../adapter.ts';
import { findProgram, type Program } from '../../installation/program.ts';
import { RUNTIME_ID } from '../session.ts';

/** The program to start, and the PATH with which it finds what it needs (R2). */
export type ClaudeProgram = Program;

/** Finds `claude` as a login would; a refusal names how to install it. */
export function findClaude(context: ControlContext): Promise<ClaudeProgram | Refusal> {
  return findProgram(context, RUNTIME_ID, 'claude');
}
