import { describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { CASES, ELSEWHERE, RULES } from './service.ts';

const TESTS = resolve(import.meta.dir, '..');
const OWN = import.meta.path;

/** The texts of all test files below a path, recordings and these tables left out. */
function textsBelow(path: string): readonly string[] {
  if (statSync(path).isFile()) return [readFileSync(path, 'utf8')];
  return readdirSync(path, { withFileTypes: true }).flatMap((entry): readonly string[] => {
    const below = join(path, entry.name);
    if (entry.isDirectory()) return entry.name === 'recordings' ? [] : textsBelow(below);
    return /\.(test|e2e)\.ts$/.test(entry.name) && below !== OWN ? [readFileSync(below, 'utf8')] : [];
  });
}

/** Ids that a text cites, `S-521 … S-524` as all four. */
function citedIn(text: string): readonly string[] {
  const ranges = [...text.matchAll(/\b([SC])-(\d{3}) ?…\s?\1-(\d{3})\b/g)].flatMap(([, letter, from, to]) =>
    Array.from(
      { length: Number(to) - Number(from) + 1 },
      (_, n) => `${letter}-${String(Number(from) + n).padStart(3, '0')}`,
    ),
  );
  return [...[...text.matchAll(/\b[SC]-\d{3}\b/g)].map(([id]) => id), ...ranges];
}

function unaccounted(ids: readonly string[], cited: ReadonlySet<string>): readonly string[] {
  return ids.filter((id) => !cited.has(id) && !(id in ELSEWHERE));
}

describe('every rule and case of the sessions service is accounted for (R-45)', () => {
  const cited = new Set(textsBelow(TESTS).flatMap(citedIn));

  test('each has a test that cites it, or stands in the table', () => {
    expect([RULES.length, CASES.length]).toEqual([228, 250]);
    expect(unaccounted([...RULES, ...CASES], cited)).toEqual([]);
  });

  test('one that nobody cites and the table does not know is found', () => {
    expect(unaccounted(['S-000', 'C-000', 'S-101'], cited)).toEqual(['S-000', 'C-000']);
  });

  test('what the table points at is there, and a reason is a sentence', () => {
    const known = new Set([...RULES, ...CASES]);
    const wrong = Object.entries(ELSEWHERE).flatMap(([id, answer]) => {
      if (!known.has(id)) return [`${id}: no such rule`];
      if ('not' in answer) return /^[A-Z].{30,}\.$/.test(answer.not) ? [] : [`${id}: no sentence`];
      const path = join(TESTS, answer.test);
      if (!existsSync(path)) return [`${id}: there is no test/${answer.test}`];
      return textsBelow(path).some((text) => text.includes(answer.name))
        ? []
        : [`${id}: no "${answer.name}"`];
    });
    expect(wrong).toEqual([]);
  });
});
