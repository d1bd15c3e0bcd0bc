import type { Fields } from './mapping.ts';

/**
 * The fields of a JSON object that stand whole in the beginning of it: for payloads over the bound, whose
 * rest was read and dropped. Checked by hand, character by character; stops at the first value that is not whole
 * and at the first thing that is not JSON. Only the wanted fields are kept.
 */
export function fieldsOfPrefix(text: string, wanted: ReadonlySet<string>): Fields {
  const fields: Record<string, unknown> = Object.create(null);
  let at = skipBlanks(text, text.startsWith('\ufeff') ? 1 : 0);
  if (text[at] !== '{') return fields;
  at = skipBlanks(text, at + 1);
  while (at < text.length && text[at] === '"') {
    const keyEnd = endOfString(text, at);
    if (keyEnd === undefined) return fields;
    const colon = skipBlanks(text, keyEnd);
    const start = skipBlanks(text, colon + 1);
    const end = text[colon] === ':' ? endOfValue(text, start) : undefined;
    if (end === undefined) return fields;
    const key = parse(text.slice(at, keyEnd));
    if (typeof key === 'string' && wanted.has(key)) {
      const value = parse(text.slice(start, end));
      if (value === undefined) return fields;
      fields[key] = value;
    }
    const next = skipBlanks(text, end);
    if (text[next] !== ',') return fields;
    at = skipBlanks(text, next + 1);
  }
  return fields;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // No JSON after all: the caller stops here.
    return undefined;
  }
}

function skipBlanks(text: string, from: number): number {
  let at = from;
  while (' \t\n\r'.includes(text[at] ?? 'x')) at += 1;
  return at;
}

/** Just past the closing quote; `undefined` when it is not there. */
function endOfString(text: string, from: number): number | undefined {
  for (let at = from + 1; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === '"') return at + 1;
  }
  return undefined;
}

/** Just past a value; a number or word counts only when something follows it, else it may go on. */
function endOfValue(text: string, from: number): number | undefined {
  const first = text[from];
  if (first === '"') return endOfString(text, from);
  if (first === '{' || first === '[') return endOfNested(text, from);
  let at = from;
  while (at < text.length && !',}] \t\n\r'.includes(text[at] ?? '')) at += 1;
  return at < text.length && at > from ? at : undefined;
}

function endOfNested(text: string, from: number): number | undefined {
  let depth = 0;
  for (let at = from; at < text.length; at += 1) {
    const character = text[at];
    if (character === '"') {
      const end = endOfString(text, at);
      if (end === undefined) return undefined;
      at = end - 1;
    } else if (character === '{' || character === '[') depth += 1;
    else if (character === '}' || character === ']') {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return undefined;
}
