import { writeSync } from 'node:fs';
import type { ConnectorError } from '../../runtime/errors.ts';
import type { Answer, EventLine } from '../command.ts';
import { jsonDocument, jsonError } from './json.ts';
import { paint, type Style } from './style.ts';

/**
 * The only place that writes to stdout. Writes are synchronous and whole, so that leaving right after can't cut
 * them; a reader that has gone away (`| head`) ends the program quietly.
 */
export function printOut(text: string): void {
  writeAll(1, text);
}

/** Diagnostics, progress and errors for people. */
export function printErr(text: string): void {
  writeAll(2, text);
}

/** The reader of our output has gone. */
export class ReaderGone extends Error {
  override readonly name = 'ReaderGone';
}

const RETRY_PAUSE_MS = 2;

function writeAll(fd: 1 | 2, text: string): void {
  const bytes = Buffer.from(text, 'utf8');
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(fd, bytes, at);
    } catch (thrown) {
      const code = thrown instanceof Error && 'code' in thrown ? thrown.code : '';
      if (code === 'EPIPE' || code === 'EBADF') {
        if (fd === 1) throw new ReaderGone();
        return; // Without a stderr there is nobody to tell.
      }
      if (code !== 'EAGAIN') throw thrown;
      // A full non-blocking pipe: its reader needs a moment, and nothing else waits for us here.
      Bun.sleepSync(RETRY_PAUSE_MS);
    }
  }
}

/** A document and its line end, one after the other: joined, a megabyte would be copied once more. */
function printDocument(data: unknown, style: Style): void {
  printOut(jsonDocument(data, style));
  printOut('\n');
}

/** Prints a finished answer: text for people, one document under `--json`. */
export function printAnswer(
  answer: Extract<Answer, { kind: 'document' | 'verbatim' }>,
  json: boolean,
  style: Style,
): void {
  if (answer.kind === 'verbatim') {
    printOut(answer.text);
    return;
  }
  for (const warning of answer.warnings ?? []) printErr(`${paint(style, 'dim', `note: ${warning}`)}\n`);
  if (json) printDocument(answer.data, style);
  else if (!answer.failure) printOut(endLine(answer.text(style)));
  if (answer.failure) printError(answer.failure, false, style);
}

/** Prints one event of an action: a line of JSON, or what people read of it. */
export function printEvent(line: EventLine, json: boolean, style: Style): void {
  if (json) {
    printOut(`${JSON.stringify(line.data)}\n`);
    return;
  }
  const { out, err } = line.text(style);
  if (err !== undefined) printErr(endLine(err));
  if (out !== undefined) printOut(endLine(out));
}

/**
 * Prints an error: one line on stderr, which is what the desktop app shows (`cli-surface.md` §6), then what to
 * try; under `--json` also the document on stdout.
 */
export function printError(error: ConnectorError, json: boolean, style: Style): void {
  if (json) printDocument(jsonError(error), style);
  printErr(
    `shadowob-connector: ${paint(style, 'red', error.message)}\n${error.next ? `${error.next}\n` : ''}`,
  );
}

function endLine(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
}
