/**
 * Proves that the sink works: fires a marked event through an installed command, as the runtime would, and looks
 * where it arrived (H15, R-48). It proves the command, the program and the way to the daemon; whether the runtime
 * loads the hook only an event of its own proves.
 */
import { randomUUID } from 'node:crypto';
import { existsSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { JOURNAL_AGENTS, journalFolder, journalName } from '../../runtime/daemon/journal/record.ts';
import { scrubbedEnv } from '../../runtime/process/scrubbed-env.ts';
import type { HooksContext, InstalledCommand } from './integration.ts';

export type Delivery =
  /** The daemon took it. */
  | { readonly kind: 'daemon' }
  /** No daemon answered; a journal keeps such events until one runs. */
  | { readonly kind: 'journal' }
  /** The sink ran, and there was neither a daemon nor a place for a journal. */
  | { readonly kind: 'nobody' }
  /** One sentence: what the shell or the sink did instead. */
  | { readonly kind: 'broken'; readonly message: string };

/** A hook may take this long before the runtime ends it, milliseconds. */
const PATIENCE_MS = 5_000;

/**
 * The marked event is the end of a session that nobody ever saw, so it changes nothing where it arrives (S-119). Its
 * journal, if there is one, is taken away again.
 */
export async function fireMarked(
  context: HooksContext,
  { argv, agent }: InstalledCommand,
  socketPath: string,
): Promise<Delivery> {
  const id = randomUUID();
  const payload = { session_id: id, hook_event_name: 'SessionEnd', reason: 'hooks-status' };
  const result = await context.run({
    argv,
    env: { ...scrubbedEnv(context.env), SHADOWOB_CONNECTOR_LOG: 'debug' },
    cwd: context.home,
    stdin: JSON.stringify(payload),
    timeoutMs: PATIENCE_MS,
    ...(context.signal ? { signal: context.signal } : {}),
  });
  if (result.kind === 'failedToStart')
    return { kind: 'broken', message: `${argv[0]} could not be started (${result.reason})` };
  const isKept = takeJournal(socketPath, agent, id);
  if (result.kind !== 'exited') return { kind: 'broken', message: 'it did not end within 5 s' };
  if (result.code !== 0)
    return { kind: 'broken', message: `it left with ${result.code}: ${lastLine(result.stderr)}` };
  if (result.stdout.trim() !== '')
    return {
      kind: 'broken',
      message: 'something prints to stdout, which the runtime may take for a decision',
    };
  if (/^session_hook_report outcome=delivered$/m.test(result.stderr)) return { kind: 'daemon' };
  if (isKept) return { kind: 'journal' };
  if (/^session_hook_report /m.test(result.stderr)) return { kind: 'nobody' };
  return { kind: 'broken', message: `it did not report: ${lastLine(result.stderr)}` };
}

/** Whether the event lies in a journal; gone afterwards. */
function takeJournal(socketPath: string, agent: string, id: string): boolean {
  const known = JOURNAL_AGENTS.find((one) => one === agent);
  const name = journalName(id);
  if (known === undefined || name === undefined) return false;
  const path = join(journalFolder(socketPath, known), name);
  if (!existsSync(path)) return false;
  try {
    unlinkSync(path);
  } catch {
    // The daemon was faster: it has read it and taken it away.
  }
  return true;
}

const lastLine = (text: string): string => text.trim().split('\n').at(-1)?.slice(0, 200) || 'it said nothing';
