/** Seeded chance, so that two runs measure the same bytes. */

/** A generator of numbers in [0, 1): mulberry32. */
export type Random = () => number;

export function createRandom(seed: number): Random {
  const state = { value: seed >>> 0 };
  return () => {
    state.value = (state.value + 0x6d2b79f5) >>> 0;
    const a = Math.imul(state.value ^ (state.value >>> 15), 1 | state.value);
    const b = (a + Math.imul(a ^ (a >>> 7), 61 | a)) ^ a;
    return ((b ^ (b >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** A version 4 UUID. */
export function uuid(random: Random): string {
  const hex = Array.from({ length: 32 }, () => Math.floor(random() * 16).toString(16)).join('');
  const variant = '89ab'[Math.floor(random() * 4)];
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
}

/** One of a list. The list must not be empty. */
export function pick<T>(random: Random, list: readonly [T, ...T[]]): T {
  return list[Math.floor(random() * list.length)] ?? list[0];
}

const WORDS =
  'the parser keeps one pending line and returns it when more bytes arrive so that nothing is lost or read twice while files grow'.split(
    ' ',
  );

/** Text of about so many characters that looks like prose and does not compress to nothing. */
export function prose(random: Random, length: number): string {
  const parts: string[] = [];
  for (let size = 0; size < length; ) {
    const word = WORDS[Math.floor(random() * WORDS.length)] ?? '';
    parts.push(word);
    size += word.length + 1;
  }
  return parts.join(' ').slice(0, length);
}
