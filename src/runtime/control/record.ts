import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readBounded, type WriteResult, writePrivate } from '../files/private-file.ts';
import type { ProcessIdentity } from '../process/types.ts';
import type { SessionRef } from '../session/session.ts';
import { namesIn, parseJson } from './folder.ts';
import { hostsFolder, placesOf } from './places.ts';

/**
 * What a host writes down about itself, so that its child is found again after it was killed. Ids and times only
 * a pid counts with its start alone.
 */
export interface HostRecord {
  readonly session: SessionRef;
  readonly host: ProcessIdentity;
  /** The runtime's process, where one runs. */
  readonly child?: ProcessIdentity;
  /** Epoch milliseconds. */
  readonly startedAt: number;
}

const identity = z.object({ pid: z.number().int().min(2), startToken: z.string().nullable() });
const session = z.object({
  runtimeId: z.string().min(1),
  instanceId: z.string().min(1),
  sessionId: z.string().min(1),
});
const schema = z.object({
  version: z.literal(1),
  session,
  host: identity,
  child: identity.optional(),
  startedAt: z.number(),
});

const RECORD_BYTES = 16 * 1024;

/** Writes a host's record; private, whole, and not flushed: after a power cut no process is left either. */
export function writeRecord(home: string, record: HostRecord): WriteResult {
  const text = `${JSON.stringify({ version: 1, ...record })}\n`;
  return writePrivate(placesOf(home, record.session).record, text, { durable: false });
}

/** All records; what isn't one is skipped. */
export function listRecords(home: string): readonly HostRecord[] {
  return namesIn(hostsFolder(home))
    .filter((name) => name.endsWith('.json'))
    .flatMap((name) => readRecord(join(hostsFolder(home), name)) ?? []);
}

/** The record of one session's host. */
export function recordOf(home: string, ref: SessionRef): HostRecord | undefined {
  return readRecord(placesOf(home, ref).record);
}

/** Removes a record and the socket file beside it. Only for the holder of the session's lock. */
export function removeRecord(home: string, ref: SessionRef): void {
  const { record, socket } = placesOf(home, ref);
  for (const path of [record, socket]) rmSync(path, { force: true });
}

function readRecord(path: string): HostRecord | undefined {
  const read = readBounded(path, RECORD_BYTES);
  if (read.kind !== 'read') return undefined;
  const parsed = schema.safeParse(parseJson(read.bytes.toString('utf8')));
  if (!parsed.success) return undefined;
  const { version: _, child, ...rest } = parsed.data;
  return child ? { ...rest, child } : rest;
}
