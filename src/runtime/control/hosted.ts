import { join } from 'node:path';
import { readBounded } from '../files/private-file.ts';
import { sessionKey } from '../session/session.ts';
import { namesIn, parseJson } from './folder.ts';
import { hostsFolder } from './places.ts';

const RECORD_BYTES = 16 * 1024;

/**
 * Keys of the sessions that a process of ours runs, or has left behind. Read by hand, and apart from
 * `record.ts`: every list asks, and the schema library would take longer than the list.
 */
export function hostedKeys(home: string): ReadonlySet<string> {
  const folder = hostsFolder(home);
  return new Set(
    namesIn(folder)
      .filter((name) => name.endsWith('.json'))
      .flatMap((name) => keyIn(join(folder, name)) ?? []),
  );
}

function keyIn(path: string): string | undefined {
  const read = readBounded(path, RECORD_BYTES);
  if (read.kind !== 'read') return undefined;
  const record = parseJson(read.bytes.toString('utf8'));
  const session = isObject(record) ? record['session'] : undefined;
  if (!isObject(session)) return undefined;
  const { runtimeId, instanceId, sessionId } = session;
  if (typeof runtimeId !== 'string' || typeof instanceId !== 'string' || typeof sessionId !== 'string')
    return undefined;
  return sessionKey({ runtimeId, instanceId, sessionId });
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
