/**
 * JSON that we wrote for ourselves, with a checksum in front: an entry of the index is believed as a whole, to the
 * byte, or not at all. Thousands of entries are read for every list, and a look at each of their fields took half of
 * that time. Their shape is that of the index's scope, whose number moves with it.
 */

/** Hexadecimal digits of the checksum (CRC-32). */
const SEAL_LENGTH = 8;

/** The value as one line of text. */
export function seal(value: unknown): string {
  const text = JSON.stringify(value);
  return sealOf(text) + text;
}

/**
 * What {@link seal} was given; `undefined` if the text isn't that of a seal.
 *
 * @typeParam T what the scope's number stands for; it is not looked at
 */
export function unseal<T>(sealed: string): T | undefined {
  const text = sealed.slice(SEAL_LENGTH);
  if (!sealed.startsWith(sealOf(text))) return undefined;
  return JSON.parse(text) as T;
}

function sealOf(text: string): string {
  return Bun.hash.crc32(text).toString(16).padStart(SEAL_LENGTH, '0');
}
