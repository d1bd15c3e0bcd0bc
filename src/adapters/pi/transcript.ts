import type { FileStat } from '../../runtime/files/file-system.ts';
import type { FileReader, OpenFile, ReadResult } from '../../runtime/files/head-tail.ts';
import type { Line } from '../../runtime/files/jsonl.ts';
import { cleanTitle } from '../../runtime/session/text.ts';
import { type Entry, readEntry } from './entries.ts';
import { reachesPrompt, readTurn, type Turn } from './turn.ts';

/** What one session file says, as it was read. */
export interface Summary {
  readonly turn: Turn;
  readonly title?: string;
  /** From line 1; the folder's name can't be decoded. */
  readonly cwd?: string;
  readonly startedAt?: number;
  /** The session that this one was forked from. */
  readonly forkedFromId?: string;
  /** Line 1 is a header whose id is the name's. */
  readonly ours: boolean;
  readonly skipped: number;
}

/** The system prompt alone takes several kilobytes of a head. */
const HEAD_LIMIT = 256 * 1024;

/** Reads a session file: its head for title and folder, as much of its tail as tells the newest turn. */
export function readTranscript(
  reader: FileReader,
  path: string,
  sessionId: string,
  known?: FileStat,
): ReadResult<Summary> {
  const before = skippedIn(reader);
  const result = reader.read(path, (file) => summarise(file, sessionId), known);
  if (result.kind !== 'read') return result;
  return { ...result, value: { ...result.value, skipped: skippedIn(reader) - before } };
}

function skippedIn({ counts }: FileReader): number {
  return counts.malformed + counts.oversized + counts.nulBlocks;
}

function summarise(file: OpenFile, sessionId: string): Summary {
  const tail = file.tail({ enough: (lines) => reachesPrompt(entriesOf(lines)) });
  const head = tail.whole
    ? tail
    : file.head({ cap: HEAD_LIMIT, enough: (lines) => entriesOf(lines).some((one) => one.kind === 'user') });
  return summaryOf(entriesOf(head.lines), entriesOf(tail.lines), sessionId);
}

/** The entries of lines; each line is read once, whatever number of steps looks at it. */
export function entriesOf(lines: readonly Line[]): readonly Entry[] {
  return lines.flatMap((line) => {
    line.memo ??= { entry: readEntry(line.record) };
    return (line.memo as { readonly entry: Entry | undefined }).entry ?? [];
  });
}

/** The summary of the entries at both ends; the same ones twice where a file was read whole. */
export function summaryOf(head: readonly Entry[], tail: readonly Entry[], sessionId: string): Summary {
  const first = head[0];
  const session = first?.kind === 'session' ? first : undefined;
  const title = titleOf(head, tail);
  const forkedFromId = session?.parentSession && idInPath(session.parentSession);
  return {
    turn: readTurn(tail),
    ours: session?.id.toLowerCase() === sessionId,
    skipped: 0,
    ...(title ? { title } : {}),
    ...(session?.cwd ? { cwd: session.cwd } : {}),
    ...(session?.at === undefined ? {} : { startedAt: session.at }),
    ...(forkedFromId ? { forkedFromId } : {}),
  };
}

/** The name that its owner gave it last, else what it began with. */
function titleOf(head: readonly Entry[], tail: readonly Entry[]): string | undefined {
  const named = [...head, ...tail].findLast((entry) => entry.kind === 'name');
  const given = named?.kind === 'name' && named.name ? cleanTitle(named.name) : undefined;
  if (given) return given;
  const prompt = [...head, ...tail].find((entry) => entry.kind === 'user');
  return prompt?.kind === 'user' ? cleanTitle(prompt.text) : undefined;
}

function idInPath(text: string): string | undefined {
  return /([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:\.jsonl)?$/i.exec(text)?.[1]?.toLowerCase();
}
