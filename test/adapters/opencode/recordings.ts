import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dir, '../../recordings/opencode');

export type Json = Record<string, unknown>;

/** A row of an answer key. `state` is the truth; `this_server` what the listening process could know. */
export interface KeyRow {
  readonly file: string;
  readonly line: number;
  readonly t: number | null;
  readonly session: string | null;
  readonly record: string;
  readonly state: string;
  readonly this_server?: string;
  readonly disk_only?: string;
}

/** A line of `sse.jsonl`: an event, or the end of the stream. */
export interface StreamLine {
  readonly t: number;
  readonly stream: string;
  readonly data?: Json;
  readonly closed?: boolean;
}

export interface Exchange {
  readonly t: number;
  readonly ms: number;
  readonly note?: string;
  readonly req: { readonly method: string; readonly path: string; readonly body?: unknown };
  readonly res: { readonly status: number; readonly headers: Record<string, string>; readonly body: unknown };
}

/** One look at the database: the rows of one session. */
export interface Look {
  readonly t: number;
  readonly note: string;
  readonly session?: Json;
  readonly messages: readonly Json[];
  readonly parts: readonly Json[];
  readonly event_seq: number | null;
}

export function scenarios(): readonly string[] {
  return readdirSync(ROOT, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();
}

export function lines<T>(scenario: string, file: string): readonly T[] {
  const path = join(ROOT, scenario, file);
  if (!existsSync(path)) return [];
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);
}

export function text(scenario: string, file: string): string {
  return readFileSync(join(ROOT, scenario, file), 'utf8');
}

export function keyOf(scenario: string, file: string): readonly KeyRow[] {
  return lines<KeyRow>(scenario, 'answer-key.jsonl').filter((row) => row.file === file);
}

export function schema(): string {
  return readFileSync(join(ROOT, 'schema.sql'), 'utf8');
}

/** Lines of the stream that lists all directories; its name is cut in some recordings. */
export function isGlobal(line: StreamLine): boolean {
  return line.stream.includes('global');
}

/**
 * Epoch milliseconds of a recording's t = 0. The bus dates a new session itself, and the event arrives within
 * milliseconds; recordings without one are dated by their first message.
 */
export function startOf(scenario: string): number {
  for (const line of lines<StreamLine>(scenario, 'sse.jsonl')) {
    const payload = (line.data?.['payload'] ?? line.data) as Json | undefined;
    const properties = payload?.['properties'] as Json | undefined;
    const time = (properties?.['info'] as Json | undefined)?.['time'] as Json | undefined;
    const created = time?.['created'];
    if (typeof created === 'number') return created - line.t;
  }
  return 1_796_069_000_000;
}
