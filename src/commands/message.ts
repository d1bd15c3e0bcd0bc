import { resolve } from 'node:path';
import { ConnectorError } from '../runtime/errors.ts';
import { readBounded } from '../runtime/files/read-bounded.ts';
import { TEXT } from '../runtime/limits.ts';
import type { World } from './world.ts';

interface MessageArgs {
  readonly message?: string | undefined;
  readonly 'message-file'?: string | undefined;
}

/**
 * The text of a message: `--message`, a file, or stdin (`--message -`, or nothing and no terminal). Whole, exactly as
 * it is given: no end of line is taken away.
 *
 * @throws ConnectorError `usage` without any; `badValue` for one that is empty, too long, or no UTF-8; `notFound` for
 *   a file that can't be read
 */
export async function readMessage(args: MessageArgs, world: World): Promise<string> {
  const file = args['message-file'];
  if (args.message !== undefined && file !== undefined) {
    throw new ConnectorError('usage', '--message and --message-file are both given', 'Give one of them.');
  }
  if (file !== undefined) return checked(readFile(resolve(world.cwd, file)), file);
  if (args.message !== undefined && args.message !== '-') {
    return checked(Buffer.from(intact('--message', args.message), 'utf8'), '--message');
  }
  if (args.message === undefined && world.stdin.isTerminal) {
    throw new ConnectorError(
      'usage',
      'there is no message',
      'Give --message "…", --message-file <path>, or pipe it in: --message -',
    );
  }
  return checked(await world.stdin.read(TEXT.messageBytes), 'stdin');
}

/**
 * A word that goes along with an answer, as it was given.
 *
 * @throws ConnectorError `badValue` for one that is over `TEXT.noteChars`, or that did not arrive whole
 */
export function readWords(flag: string, text: string): string {
  if (text.length <= TEXT.noteChars) return intact(flag, text);
  throw new ConnectorError(
    'badValue',
    `${flag} has ${text.length} characters, and ${TEXT.noteChars} is the limit`,
    'Say it shorter, or send the rest as a message: session-send',
  );
}

/**
 * An argument that is no Unicode reaches us with U+FFFD in the place of what was there; whoever means that character
 * itself has another way.
 */
function intact(flag: string, text: string): string {
  if (text.isWellFormed() && !text.includes('\ufffd')) return text;
  throw new ConnectorError(
    'badValue',
    `${flag} holds U+FFFD, which stands for bytes that are not UTF-8`,
    flag === '--message'
      ? 'Convert it to UTF-8; to send that very character: --message-file, or stdin.'
      : 'Convert it to UTF-8 first.',
  );
}

function readFile(path: string): Uint8Array {
  const read = readBounded(path, TEXT.messageBytes);
  if (read.kind === 'read') return read.bytes;
  if (read.kind === 'too-large') throw tooLong(path, read.size);
  throw new ConnectorError(
    'notFound',
    `--message-file: ${path} can’t be read (${read.kind === 'unreadable' ? read.code : read.kind})`,
    'Name a file that is there.',
  );
}

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function checked(bytes: Uint8Array, where: string): string {
  if (bytes.byteLength > TEXT.messageBytes) throw tooLong(where, bytes.byteLength);
  const text = decoded(bytes, where);
  if (text.trim() !== '') return text;
  throw new ConnectorError('badValue', `the message is empty (${where})`, 'Say something.');
}

function decoded(bytes: Uint8Array, where: string): string {
  try {
    return strict.decode(bytes);
  } catch {
    // A fatal decoder throws for nothing else than bytes that are not UTF-8.
    throw new ConnectorError('badValue', `the message is not UTF-8 (${where})`, 'Convert it to UTF-8 first.');
  }
}

function tooLong(where: string, size: number): ConnectorError {
  const limit = TEXT.messageBytes;
  const more = size > limit + 1 ? `${size} bytes` : `more than ${limit} bytes`;
  return new ConnectorError(
    'badValue',
    `the message has ${more}, and ${limit} is the limit (${where})`,
    'Put it into a file in the session’s folder, and send a message that names the file.',
  );
}
