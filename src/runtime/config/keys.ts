import { sayIssues } from './read.ts';
import { type Config, configSchema, DEFAULT_CONFIG } from './schema.ts';

/** One setting: its dotted name and what it is without a file. */
export interface Setting {
  readonly key: string;
  readonly path: readonly string[];
  readonly fallback: unknown;
}

/** Every setting, in the order of the schema. Lists are one setting. */
export const SETTINGS: readonly Setting[] = settingsIn(DEFAULT_CONFIG, []);

function settingsIn(value: unknown, path: readonly string[]): readonly Setting[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return [{ key: path.join('.'), path, fallback: value }];
  }
  return Object.entries(value).flatMap(([name, one]) => settingsIn(one, [...path, name]));
}

/** The setting of a dotted name. */
export function settingOf(key: string): Setting | undefined {
  return SETTINGS.find((setting) => setting.key === key);
}

/** What the settings say at a path. */
export function valueAt(config: Config, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (at, name) => (typeof at === 'object' && at !== null ? Reflect.get(at, name) : undefined),
    config,
  );
}

export type ReadValue =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'bad'; readonly reason: string };

/**
 * A value as it is typed: a word stays a word, everything else is JSON, and quiet hours may be written as
 * `22:00-07:00`, several with commas between them.
 */
export function readValue(setting: Setting, text: string): ReadValue {
  const value = typeof setting.fallback === 'string' ? text : (rangesOf(setting, text) ?? parse(text));
  const checked = configSchema.safeParse(nest(setting.path, value));
  if (checked.success) return { kind: 'value', value };
  return { kind: 'bad', reason: sayIssues(checked.error.issues) };
}

function rangesOf({ key }: Setting, text: string): unknown {
  if (key !== 'notifications.quietHours' || !/^[\d:,\s-]+$/.test(text)) return undefined;
  return text.split(',').map((part) => {
    const [from = '', to = ''] = part.split('-').map((time) => time.trim());
    return { from, to };
  });
}

function nest(path: readonly string[], value: unknown): unknown {
  return path.reduceRight((inner, name) => ({ [name]: inner }), value);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not JSON: the schema says what it should be.
    return text;
  }
}
