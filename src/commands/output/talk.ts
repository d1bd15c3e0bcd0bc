import type { Question, Reply, Talk } from '../setup/step.ts';
import { printErr } from './print.ts';
import { paint, type Style } from './style.ts';
import { isTerminal } from './terminal.ts';

/** Longest answer that is read, characters. */
const ANSWER_CHARS = 256;

/** Whether somebody can be asked: questions go to stderr, answers come from stdin. */
export function canTalk(): boolean {
  return isTerminal(0) && isTerminal(2);
}

/** Where lines come from and words go; the terminal, unless a test brings its own. */
export interface TalkEnds {
  readonly input: ReadableStream<Uint8Array>;
  write(text: string): void;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
}

/**
 * A conversation by lines, so that it works on every terminal, with a screen reader, and through a recording; the
 * terminal stays as it is, and Ctrl-C is a signal like anywhere else. One reader holds the input to the end: what was
 * typed ahead is not lost between two questions.
 */
export function openTalk(style: Style, ends: TalkEnds): Talk {
  const reader = ends.input.getReader();
  const lines = lineReader(() => reader.read(), ends.signal);
  return {
    say: (text) => ends.write(`${text}\n`),
    ask: (question) => ask(question, style, ends, lines),
    close() {
      // Nobody waits for the rest of the input; a terminal has no end to wait for.
      reader.cancel().catch(() => undefined);
    },
  };
}

/** The talk of this process: stderr, since stdout is the answer of the command. */
export function terminalTalk(style: Style, signal: AbortSignal): Talk {
  return openTalk(style, { input: Bun.stdin.stream(), write: printErr, signal });
}

async function ask(
  question: Question,
  style: Style,
  ends: TalkEnds,
  next: () => Promise<string | undefined>,
): Promise<Reply> {
  const { text, reason, fallback, diff } = question;
  const hint = `${fallback ? 'Y/n' : 'y/N'}${diff === undefined ? '' : '/d to see the change'}`;
  ends.write(`\n${paint(style, 'bold', text)}\n  ${paint(style, 'dim', reason)}\n`);
  for (;;) {
    ends.write(`  [${hint}] `);
    const line = await next();
    if (line === undefined) {
      ends.write('\n');
      return 'stop';
    }
    const word = line.trim().toLowerCase().slice(0, ANSWER_CHARS);
    if (word === '') return fallback ? 'yes' : 'no';
    if (word === 'y' || word === 'yes') return 'yes';
    if (word === 'n' || word === 'no') return 'no';
    if (diff !== undefined && (word === 'd' || word === 'diff')) ends.write(`${diff}\n`);
    else ends.write('  Please answer y or n.\n');
  }
}

/** Line by line; undefined at the end of the input and once the signal is aborted. */
function lineReader(
  read: () => Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>,
  signal: AbortSignal,
): () => Promise<string | undefined> {
  const decoder = new TextDecoder();
  const held = { text: '' };
  const aborted = new Promise<undefined>((resolve) => {
    if (signal.aborted) resolve(undefined);
    signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
  return async () => {
    while (!held.text.includes('\n')) {
      const chunk = await Promise.race([read(), aborted]);
      if (signal.aborted || chunk === undefined || chunk.done) return undefined;
      held.text += decoder.decode(chunk.value, { stream: true });
    }
    const end = held.text.indexOf('\n');
    const line = held.text.slice(0, end);
    held.text = held.text.slice(end + 1);
    return line;
  };
}
