import { describe, expect, test } from 'bun:test';
import { detectStyle } from '../../../src/commands/output/style.ts';
import { openTalk } from '../../../src/commands/output/talk.ts';
import type { Question } from '../../../src/commands/setup/step.ts';

const STYLE = detectStyle({}, {}, 'linux');
const QUESTION: Question = { text: 'Do it?', reason: 'It helps.', fallback: true, diff: '+one line' };

/** A conversation with somebody who types these chunks and then is gone, or never types again. */
function typed(chunks: readonly string[], how: { readonly ends: boolean } = { ends: true }) {
  const written: string[] = [];
  const stop = new AbortController();
  const input = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(new TextEncoder().encode(chunk));
      if (how.ends) controller.close();
    },
  });
  const talk = openTalk(STYLE, { input, write: (text) => void written.push(text), signal: stop.signal });
  return { talk, stop, text: () => written.join('') };
}

describe('questions by lines', () => {
  test('an empty line is the default, and the capital letter says which that is', async () => {
    const yes = typed(['\n']);
    expect(await yes.talk.ask(QUESTION)).toBe('yes');
    expect(yes.text()).toContain('\nDo it?\n  It helps.\n  [Y/n/d to see the change] ');
    const no = typed(['\n']);
    expect(await no.talk.ask({ text: 'Do it?', reason: 'It helps.', fallback: false })).toBe('no');
    expect(no.text()).toContain('[y/N] ');
  });

  test('d shows the change and asks again; what is no answer is said, and asked again', async () => {
    const { talk, text } = typed(['d\n', 'perhaps\n', ' YES \r\n']);
    expect(await talk.ask({ ...QUESTION, fallback: false })).toBe('yes');
    expect(text()).toContain('+one line\n  [');
    expect(text()).toContain('Please answer y or n.');
  });

  test('what was typed ahead, and in pieces, is not lost between two questions', async () => {
    const { talk } = typed(['y\nn', 'o\n\n']);
    expect([await talk.ask(QUESTION), await talk.ask(QUESTION), await talk.ask(QUESTION)]).toEqual([
      'yes',
      'no',
      'yes',
    ]);
  });

  test('the end of the input and Ctrl-C are a stop, never a yes', async () => {
    expect(await typed(['y']).talk.ask(QUESTION)).toBe('stop');
    const { talk, stop } = typed([], { ends: false });
    const reply = talk.ask(QUESTION);
    stop.abort();
    expect(await reply).toBe('stop');
    expect(await talk.ask(QUESTION)).toBe('stop');
    talk.close();
  });
});
