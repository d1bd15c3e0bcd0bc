import type { z } from 'zod';
import { readBounded } from '../files/read-bounded.ts';
import { CONFIG } from '../limits.ts';
import { configPathIn } from './path.ts';
import { type Config, configSchema, DEFAULT_CONFIG } from './schema.ts';

export interface ReadConfig {
  readonly path: string;
  /** What holds: the file's, or every default where the file is no use. */
  readonly config: Config;
  /** Why the file is not followed, or what of it isn't known; one line that names the file. */
  readonly problem?: string;
  /** True where nothing of the file is followed. */
  readonly invalid: boolean;
}

/**
 * Reads the settings. A file that is no use is left as it is and named, and the defaults hold; a key that we
 * don't know (a newer version's, or a slip) is named, and the rest holds. Comments and trailing commas are allowed.
 * Never throws.
 */
export function readConfig(home: string): ReadConfig {
  const path = configPathIn(home);
  const read = readBounded(path, CONFIG.fileBytes);
  if (read.kind === 'missing') return { path, config: DEFAULT_CONFIG, invalid: false };
  if (read.kind !== 'read')
    return refused(path, read.kind === 'too-large' ? 'is too large' : 'cannot be read');
  return checkConfig(path, read.bytes);
}

function checkConfig(path: string, bytes: Uint8Array): ReadConfig {
  const parsed = parseConfig(bytes);
  if (parsed === undefined) return refused(path, 'is no JSON');
  const first = configSchema.safeParse(parsed);
  if (first.success) return { path, config: first.data, invalid: false };
  const unknown = first.error.issues.flatMap(unknownKeys);
  const rest = configSchema.safeParse(without(parsed, unknown));
  if (!rest.success) return refused(path, sayIssues(rest.error.issues));
  const names = unknown.map((keys) => keys.join('.')).join(', ');
  return { path, config: rest.data, invalid: false, problem: `${path}: unknown setting ${names} is ignored` };
}

/** JSON with comments and trailing commas; a blank file says nothing. `undefined` for what is none. */
export function parseConfig(bytes: Uint8Array): unknown {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return text.trim() === '' ? {} : Bun.JSONC.parse(text);
  } catch {
    // Not UTF-8 or not JSON: the caller says so.
    return undefined;
  }
}

function refused(path: string, why: string): ReadConfig {
  return { path, config: DEFAULT_CONFIG, invalid: true, problem: `${path} ${why}; the defaults hold` };
}

/** At most three issues, with keys and reasons; never with the value that was found. */
export function sayIssues(issues: readonly z.core.$ZodIssue[]): string {
  return issues
    .slice(0, 3)
    .map((issue) => `${issue.path.join('.') || 'the file'}: ${issue.message}`)
    .join('; ');
}

function unknownKeys(issue: z.core.$ZodIssue): readonly (readonly PropertyKey[])[] {
  if (issue.code !== 'unrecognized_keys') return [];
  return issue.keys.map((key) => [...issue.path, key]);
}

function without(value: unknown, paths: readonly (readonly PropertyKey[])[]): unknown {
  const copy: unknown = structuredClone(value);
  for (const path of paths) {
    const holder = path
      .slice(0, -1)
      .reduce<unknown>((at, key) => (isObject(at) ? Reflect.get(at, key) : undefined), copy);
    const last = path.at(-1);
    if (isObject(holder) && last !== undefined) Reflect.deleteProperty(holder, last);
  }
  return copy;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
