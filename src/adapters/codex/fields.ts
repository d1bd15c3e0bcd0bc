/** Hand-checked access to JSON that another program wrote: a field that does not fit is simply not there. */
export type Fields = Readonly<Record<string, unknown>>;

/** The value as an object, or `undefined` for anything else, arrays included. */
export function asFields(value: unknown): Fields | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return value as Fields;
}

export function objectOf(fields: Fields | undefined, key: string): Fields | undefined {
  return asFields(fields?.[key]);
}

/** A non-empty string. */
export function textOf(fields: Fields | undefined, key: string): string | undefined {
  const value = fields?.[key];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A finite number. */
export function numberOf(fields: Fields | undefined, key: string): number | undefined {
  const value = fields?.[key];
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

export function listOf(fields: Fields | undefined, key: string): readonly unknown[] {
  const value = fields?.[key];
  return Array.isArray(value) ? value : [];
}

/** An ISO time as epoch milliseconds. */
export function timeOf(fields: Fields | undefined, key: string): number | undefined {
  const text = textOf(fields, key);
  const at = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(at) ? undefined : at;
}

/** JSON text as an object; `undefined` for anything else. */
export function parseFields(text: string): Fields | undefined {
  try {
    return asFields(JSON.parse(text));
  } catch {
    // Text that a model or a torn write produced; the caller does without the details.
    return undefined;
  }
}
