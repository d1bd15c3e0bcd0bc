/**
 * What a stand-in for a model says, independent of the wire format. A test describes replies as steps; the three
 * servers of this folder put them into their protocol.
 */

import { inTime } from '../until.ts';

/** A point in a reply where the stream stays open until the test lets it go on. */
export interface Gate {
  readonly kind: 'gate';
  /** Waits until a reply has arrived here: everything before it has been sent. */
  reached(): Promise<void>;
  /** Resolves when the test has let it go on. */
  readonly opened: Promise<void>;
  arrive(): void;
  release(): void;
}

export type Step =
  | { readonly kind: 'text'; readonly text: string }
  /** A shell command, by the name and arguments that the program's own tool has. */
  | { readonly kind: 'shell'; readonly command: string; readonly askFor?: string }
  | { readonly kind: 'tool'; readonly name: string; readonly input: Readonly<Record<string, unknown>> }
  | Gate;

/** One answer of the model: a stream of steps, or an HTTP error. */
export type Reply =
  | { readonly kind: 'steps'; readonly steps: readonly Step[]; readonly stop: 'natural' | 'limit' }
  | { readonly kind: 'error'; readonly status: number; readonly type: string; readonly message: string };

/** A request as a test may ask about it. */
export interface ModelRequest {
  /** The person's words that the program works on. */
  readonly prompt: string;
  /** How many rounds of tool results follow these words. */
  readonly round: number;
  /** What the tools of these rounds gave, where the protocol's reader here keeps it. */
  readonly results?: readonly string[];
  /** Names of the tools that the program offers; none for side jobs like finding a title. */
  readonly tools: readonly string[];
  readonly model: string;
}

/** Text, streamed in pieces. */
export const text = (words: string): Step => ({ kind: 'text', text: words });

/** A shell command; `askFor` makes Codex ask for leave to run it outside the sandbox, with these words. */
export const shell = (command: string, askFor?: string): Step => ({
  kind: 'shell',
  command,
  ...(askFor === undefined ? {} : { askFor }),
});

/** Any other tool of the program, by its own name. */
export const tool = (name: string, input: Readonly<Record<string, unknown>>): Step => ({
  kind: 'tool',
  name,
  input,
});

/** A whole answer. */
export const say = (...steps: readonly Step[]): Reply => ({ kind: 'steps', steps, stop: 'natural' });

/** An answer that ends because no more tokens were allowed. */
export const sayUntilLimit = (...steps: readonly Step[]): Reply => ({ kind: 'steps', steps, stop: 'limit' });

/** An HTTP error in place of an answer. */
export const refuse = (status: number, type: string, message: string): Reply => ({
  kind: 'error',
  status,
  type,
  message,
});

export function gate(): Gate {
  const reached = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  return {
    kind: 'gate',
    reached: () => inTime('a reply of the model to be under way', reached.promise),
    opened: opened.promise,
    arrive: () => reached.resolve(),
    release: () => opened.resolve(),
  };
}

interface Rule {
  readonly words: string;
  readonly rounds: readonly Reply[];
}

/** The replies of one model; rules may be added while it runs, and the newest that fits answers. */
export interface Script {
  /**
   * To a prompt that contains these words: the first reply, then one for each round of tool results; past the end the
   * last one again.
   */
  on(words: string, ...rounds: readonly Reply[]): void;
  /** The answer to requests for a title from now on, in the form that the program wants. */
  titleIs(answer: string): void;
  replyTo(request: ModelRequest): Reply;
}

/** A script whose answer to unknown prompts is "Done.", and to side jobs a title, in the form that the program wants. */
export function createScript(title: string): Script {
  const rules: Rule[] = [];
  const side = { title };
  return {
    titleIs(answer) {
      side.title = answer;
    },
    on(words, ...rounds) {
      rules.unshift({ words, rounds });
    },
    replyTo(request) {
      if (request.tools.length === 0) return say(text(side.title));
      const rule = rules.find((one) => request.prompt.includes(one.words));
      return rule?.rounds[Math.min(request.round, rule.rounds.length - 1)] ?? say(text('Done.'));
    },
  };
}

/** Cuts text into the pieces of a stream. */
export function pieces(words: string, size = 12): readonly string[] {
  return words.match(new RegExp(`[^]{1,${size}}`, 'gu')) ?? [];
}
