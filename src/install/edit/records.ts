/**
 * Backups and records of our edits, in the connector home: `edits/<file name>-<hash of its path>/`.
 *
 * `steps.json` says what was done; the texts that it names lie beside it, each once, by their hash. Files are
 * 0600 in 0700 folders, since the settings may hold tokens (C1). At most {@link STEPS_KEPT} steps are kept,
 * and only the texts that these need.
 */
import { createHash } from 'node:crypto';
import { readdirSync, unlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import { z } from 'zod';
import {
  readBounded,
  type WriteResult,
  type WriterPort,
  writePrivate,
} from '../../runtime/files/private-file.ts';
import { type Origin, STEPS_KEPT, type Step } from './history.ts';
import { applyEdits, type TextEdit } from './text-edit.ts';

/** A file larger than this is no settings file; it is not read. Bytes. */
export const SETTINGS_BYTES = 4 * 1024 * 1024;
const RECORD_BYTES = 64 * 1024 * 1024;
const RECORD_FILE = 'steps.json';
const BROKEN_FILE = 'steps.broken.json';

const pathSchema = z.array(z.union([z.string(), z.number()]));
const editsSchema = z.array(z.tuple([z.int().nonnegative(), z.int().nonnegative(), z.string()]));
const originSchema = z.object({ text: z.string().nullable(), edits: editsSchema });

const stepSchema = z.object({
  kind: z.enum(['install', 'remove']),
  wiring: z.string(),
  format: z.enum(['json', 'jsonc', 'json5', 'toml', 'yaml', 'env']),
  at: z.string(),
  before: originSchema,
  after: z.string().nullable(),
  clean: originSchema.nullable(),
  made: z.array(pathSchema),
  folders: z.array(z.string()),
});

const recordSchema = z.object({ version: z.literal(1), file: z.string(), steps: z.array(stepSchema) });

/** A step with the time at which it was done, as an ISO text. */
export interface RecordedStep extends Step {
  readonly at: string;
}

export interface Records {
  /** The steps of a file, oldest first; none if there is no record, or an unreadable one. */
  load(file: string): readonly RecordedStep[];
  /** Replaces the steps of a file. Returns the system's code where that failed. */
  save(file: string, steps: readonly RecordedStep[]): string | undefined;
  /** Where the text before a step lies; `undefined` for a file that was not there. */
  backupOf(file: string, step: Step): string | undefined;
}

export function createRecords(home: string, port?: WriterPort): Records {
  const folderOf = (file: string) => join(home, 'edits', `${basename(file)}-${hash(file).slice(0, 12)}`);
  const pathOf = (file: string, id: string) => join(folderOf(file), nameOf(file, id));
  const write = (path: string, content: string) =>
    writePrivate(path, content, port === undefined ? {} : { port });

  return {
    load(file) {
      const record = readRecord(folderOf(file));
      return (record?.steps ?? []).flatMap((step): readonly RecordedStep[] => {
        const read = (origin: z.infer<typeof originSchema>) => readOrigin(origin, (id) => pathOf(file, id));
        const before = read(step.before);
        const clean = step.clean === null ? undefined : read(step.clean);
        const after = before === undefined ? undefined : reach(before, step.after);
        // A backup is missing or damaged: what it would give back is not what was there.
        if (before === undefined || after === undefined) return [];
        return [{ ...step, before, clean, after }];
      });
    },

    save(file, steps) {
      const kept = steps.slice(-STEPS_KEPT);
      const texts = new Set(kept.flatMap(({ before, clean }) => [before.text, clean?.text ?? null]));
      for (const text of texts) {
        if (text === null) continue;
        const failed = codeOf(write(pathOf(file, hash(text)), text));
        if (failed !== undefined) return failed;
      }
      const folder = folderOf(file);
      setBrokenAside(folder, write);
      const record = { version: 1, file, steps: kept.map(toRecord) };
      const failed = codeOf(write(join(folder, RECORD_FILE), `${JSON.stringify(record, null, 1)}\n`));
      if (failed === undefined)
        dropOthers(folder, new Set([...texts].map((text) => nameOf(file, hash(text ?? '')))));
      return failed;
    },

    backupOf: (file, step) => (step.before.text === null ? undefined : pathOf(file, hash(step.before.text))),
  };
}

const hash = (text: string): string => createHash('sha256').update(text).digest('hex');

const nameOf = (file: string, id: string): string => `${id.slice(0, 16)}.${basename(file)}`;

const codeOf = (result: WriteResult): string | undefined =>
  result.kind === 'failed' ? result.code : result.kind === 'conflict' ? 'CHANGED' : undefined;

function toRecord(step: RecordedStep): z.infer<typeof stepSchema> {
  return {
    kind: step.kind,
    wiring: step.wiring,
    format: step.format,
    at: step.at,
    before: toOrigin(step.before),
    after: step.after === null ? null : hash(step.after),
    clean: step.clean === undefined ? null : toOrigin(step.clean),
    made: step.made.map((path) => [...path]),
    folders: [...step.folders],
  };
}

function toOrigin(origin: Origin): z.infer<typeof originSchema> {
  return {
    text: origin.text === null ? null : hash(origin.text),
    edits: origin.edits.map((edit): [number, number, string] => [edit.offset, edit.length, edit.text]),
  };
}

function readOrigin(
  origin: z.infer<typeof originSchema>,
  pathOf: (id: string) => string,
): Origin | undefined {
  const edits = origin.edits.map(([offset, length, text]): TextEdit => ({ offset, length, text }));
  if (origin.text === null) return { text: null, edits };
  const read = readBounded(pathOf(origin.text), SETTINGS_BYTES);
  const text = read.kind === 'read' ? decode(read.bytes) : undefined;
  return text === undefined || hash(text) !== origin.text ? undefined : { text, edits };
}

/** The text that the edits lead to, if it is the one that was recorded. */
function reach(before: Origin, id: string | null): string | null | undefined {
  if (id === null) return null;
  const after = applyEdits(before.text ?? '', before.edits);
  return hash(after) === id ? after : undefined;
}

function readRecord(folder: string): z.infer<typeof recordSchema> | undefined {
  const read = readBounded(join(folder, RECORD_FILE), RECORD_BYTES);
  return read.kind === 'read' ? parseRecord(read.bytes) : undefined;
}

function parseRecord(bytes: Uint8Array): z.infer<typeof recordSchema> | undefined {
  try {
    return recordSchema.safeParse(JSON.parse(new TextDecoder().decode(bytes))).data;
  } catch {
    // Torn or edited by hand: without a record, removal goes entry by entry and nothing can be undone.
    return undefined;
  }
}

/** A record that cannot be read is kept beside the new one, for whoever wants to look. */
function setBrokenAside(folder: string, write: (path: string, content: string) => WriteResult): void {
  const read = readBounded(join(folder, RECORD_FILE), RECORD_BYTES);
  if (read.kind !== 'read' || parseRecord(read.bytes) !== undefined) return;
  write(join(folder, BROKEN_FILE), new TextDecoder().decode(read.bytes));
}

function dropOthers(folder: string, needed: ReadonlySet<string>): void {
  for (const name of readdirSync(folder)) {
    if (needed.has(name) || name === RECORD_FILE || name === BROKEN_FILE) continue;
    try {
      unlinkSync(join(folder, name));
    } catch {
      // An old backup that cannot be removed now is removed by a later step; nothing depends on it.
    }
  }
}

/** UTF-8 text, its byte order mark kept; `undefined` for other bytes. */
export function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    // Not UTF-8: that is the answer.
    return undefined;
  }
}
