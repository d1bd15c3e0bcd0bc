import { posix, win32 } from 'node:path';
import type { FeedScan, RuntimeInstance, ScanOptions, ScanProblem } from '../../runtime/feed.ts';
import { type FileSystemPort, sameContent, systemFiles } from '../../runtime/files/file-system.ts';
import { createFileReader } from '../../runtime/files/head-tail.ts';
import type { ProcessHost } from '../../runtime/process/types.ts';
import { hasOpenTurn, withoutLabel } from '../../runtime/session/state.ts';
import { mapInSlices } from '../../runtime/slices.ts';
import { seal, unseal } from '../../runtime/store/sealed.ts';
import type { AdapterContext } from '../adapter.ts';
import { problemsOf } from '../file-problems.ts';
import { discoverSessions, type FoundSession } from './discover.ts';
import { INSTANCE_ID, type PiHome, piHome, RUNTIME_ID } from './homes.ts';
import { findPi, judgePi } from './owners.ts';
import { sightingOf, writtenAt } from './sightings.ts';
import { readTranscript, type Summary } from './transcript.ts';

/** The scope of our entries in the index; the number is the schema of their values. */
export const INDEX_SCOPE = 'pi/2';

/** One look at every session file of pi. Unchanged ones are not opened. */
export async function scanPi(
  context: AdapterContext,
  host: ProcessHost,
  options: ScanOptions = {},
): Promise<FeedScan> {
  const home = piHome(context);
  const files = context.files ?? systemFiles;
  const { only } = options;
  const discovery = discoverSessions(
    files,
    home,
    joinOf(context.platform),
    (id) => only === undefined || id.startsWith(only.toLowerCase()),
  );
  const { read, problems } = await readAll(files, context, discovery.sessions);
  const open = read.some(({ summary }) => hasOpenTurn(summary.turn.state));
  const owners = open ? await findPi(host) : { processes: [], certain: false };
  return {
    instances: [instanceOf(home, discovery.present)],
    sightings: read.map(({ found, summary }) => {
      const directory = summary.cwd === undefined ? {} : { directory: summary.cwd };
      const verdict = hasOpenTurn(summary.turn.state)
        ? judgePi(owners, { lastWriteAt: writtenAt(found, summary), ...directory })
        : ({ life: 'unknown' } as const);
      return sightingOf(found, summary, verdict);
    }),
    problems: [...discovery.problems, ...problems],
  };
}

/** Joins with the separator of the injected platform. */
export function joinOf(platform: NodeJS.Platform): (...parts: readonly string[]) => string {
  return platform === 'win32' ? win32.join : posix.join;
}

interface Read {
  readonly found: FoundSession;
  readonly summary: Summary;
}

async function readAll(
  files: FileSystemPort,
  { index }: AdapterContext,
  sessions: readonly FoundSession[],
): Promise<{ readonly read: readonly Read[]; readonly problems: readonly ScanProblem[] }> {
  const reader = createFileReader(files);
  const entries = index?.load(INDEX_SCOPE);
  const problems: ScanProblem[] = [];
  const read = await mapInSlices(sessions, (found): readonly Read[] => {
    const entry = entries?.get(found.path);
    const known = entry && sameContent(entry.stamp, found.stat) ? decodeSummary(entry.value) : undefined;
    if (known) return known.ours ? [{ found, summary: known }] : [];
    const result = readTranscript(reader, found.path, found.sessionId, found.stat);
    if (result.kind !== 'read') {
      problems.push(...problemsOf(found.path, result));
      return [];
    }
    const { kind: _, ...stamp } = result.stat;
    index?.stage(INDEX_SCOPE, found.path, { stamp, value: encodeSummary(result.value) });
    if (result.value.ours) return [{ found: { ...found, stat: result.stat }, summary: result.value }];
    problems.push({ subject: found.path, reason: 'line 1 is no header of this session', skipped: 1 });
    return [];
  });
  index?.flush();
  return { read: read.flat(), problems };
}

function instanceOf(home: PiHome, present: boolean): RuntimeInstance {
  return {
    runtimeId: RUNTIME_ID,
    instanceId: INSTANCE_ID,
    label: 'pi',
    status: present ? 'available' : 'missing',
    ...(present
      ? {}
      : { error: 'no sessions folder; nothing was ever run here, or PI_CODING_AGENT_DIR is elsewhere' }),
    capabilities: ['sessionList', 'sessionHistory', 'liveWatch'],
    metadata: { transcriptRoot: home.sessions },
  };
}

/** As the index keeps it: cleaned titles and words of closed sets; no message, no command, no error text. */
export function encodeSummary(summary: Summary): string {
  const { turn } = summary;
  const { error: _words, ...facts } = turn.facts;
  return seal({ ...summary, turn: { ...turn, facts, state: withoutLabel(turn.state) } });
}

/** Reads what {@link encodeSummary} wrote; `undefined` if it isn't that, and the file is then read again. */
export function decodeSummary(text: string): Summary | undefined {
  return unseal<Summary>(text);
}
