import { join } from 'node:path';
import { type FileSystemPort, tryNames } from '../../runtime/files/file-system.ts';
import type { LiveFile } from './live-file.ts';
import { readSmall } from './small-file.ts';
import { listOf, numberOf, objectOf, textOf, timeOf } from './values.ts';

/** A background job (`claude --bg`), as `jobs/<short>/state.json` says (2.1.332). */
export interface Job {
  readonly id: string;
  readonly sessionId: string;
  /** `over`: the program says that the job has ended; `open`: everything else. */
  readonly state: 'open' | 'over';
  /** What it waits for ("approve Bash: …" is cut to its first word: commands are content). */
  readonly needs?: string;
  readonly cwd?: string;
  readonly title?: string;
  readonly updatedAt?: number;
}

const OVER: ReadonlySet<unknown> = new Set(['stopped', 'done', 'failed', 'crashed']);

/** Reads all jobs of a home; what does not fit is left out, since a job only adds to what its session says (M3). */
export function readJobs(files: FileSystemPort, folder: string): readonly Job[] {
  return tryNames(files, folder).names.flatMap((name) => {
    if (!/^[0-9a-f]{8}$/i.test(name)) return [];
    const text = readSmall(files, join(folder, name, 'state.json'));
    const job = typeof text === 'string' ? parseJob(name, text) : undefined;
    return job ? [job] : [];
  });
}

/** Reads the text of one `state.json`. */
export function parseJob(id: string, text: string): Job | undefined {
  const fields = objectOf(parse(text));
  const sessionId = textOf(fields?.['sessionId']) ?? textOf(fields?.['resumeSessionId']);
  if (!fields || !sessionId) return undefined;
  const needs = fields['tempo'] === 'blocked' ? textOf(fields['needs'])?.split(/[\s:]/)[0] : undefined;
  const cwd = textOf(fields['cwd']);
  const title = fields['nameSource'] === 'derived' ? undefined : textOf(fields['name']);
  const updatedAt = timeOf(fields['updatedAt']);
  return {
    id,
    sessionId,
    state: OVER.has(fields['state']) ? 'over' : 'open',
    ...(needs ? { needs } : {}),
    ...(cwd ? { cwd } : {}),
    ...(title ? { title } : {}),
    ...(updatedAt !== undefined ? { updatedAt } : {}),
  };
}

/**
 * The processes that Claude's own daemon runs jobs in, from `daemon/roster.json`: known before they have written
 * a live file. In the shape of live files without a status, which prove life and nothing more.
 */
export function readRoster(files: FileSystemPort, path: string): readonly LiveFile[] {
  const text = readSmall(files, path);
  const workers = typeof text === 'string' ? objectOf(objectOf(parse(text))?.['workers']) : undefined;
  return listOf(Object.entries(workers ?? {})).flatMap((entry) => {
    const [jobId, value] = entry as [string, unknown];
    const worker = objectOf(value);
    const pid = numberOf(worker?.['pid']);
    const sessionId = textOf(worker?.['sessionId']);
    const procStart = textOf(worker?.['procStart']);
    if (!worker || !pid || pid <= 1 || !sessionId || !procStart) return [];
    const cwd = textOf(worker['cwd']);
    const startedAt = numberOf(worker['startedAt']);
    const version = textOf(worker['cliVersion']);
    return [
      {
        pid,
        sessionId,
        procStart,
        jobId,
        kind: 'bg',
        entrypoint: 'cli',
        ...(cwd ? { cwd } : {}),
        ...(startedAt !== undefined ? { startedAt, statusAt: startedAt } : {}),
        ...(version ? { version } : {}),
      },
    ];
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Half written, or not ours to understand: the session's own files say what is.
    return undefined;
  }
}
