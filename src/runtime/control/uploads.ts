import { RequestError } from '../daemon/protocol.ts';
import { TEXT } from '../limits.ts';

/** Texts that come in parts, because one line of a socket holds no more than 1 MiB. */
export interface Uploads {
  /** Takes the next part. Throws `RequestError` for one out of order, or when the text is too long. */
  add(id: string, index: number, bytes: Buffer): void;
  /** The whole text, once. Throws `RequestError` when a part is missing or the bytes are no UTF-8. */
  take(id: string, parts: number): string;
}

/** Texts that are being sent at one time; a further one drops the oldest. */
const UPLOADS = 8;
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Holds the parts of a few texts. */
export function createUploads(): Uploads {
  const parts = new Map<string, Buffer[]>();
  return {
    add(id, index, bytes) {
      const own = parts.get(id) ?? [];
      if (index !== own.length) throw new RequestError('parts must come in order');
      const size = own.reduce((sum, one) => sum + one.length, bytes.length);
      if (size > TEXT.messageBytes) throw new RequestError(`the message is over ${TEXT.messageBytes} bytes`);
      own.push(bytes);
      parts.set(id, own);
      const oldest = parts.size > UPLOADS ? parts.keys().next() : undefined;
      if (oldest && !oldest.done) parts.delete(oldest.value);
    },
    take(id, count) {
      const own = parts.get(id) ?? [];
      if (own.length !== count) throw new RequestError('a part of the message is missing');
      parts.delete(id);
      try {
        return strict.decode(Buffer.concat(own));
      } catch {
        // A fatal decoder throws for nothing else than bytes that are not UTF-8.
        throw new RequestError('the message is not UTF-8');
      }
    },
  };
}
