import type { TurnEnd } from '../../../runtime/control.ts';
import { type BusEvent, sessionOf } from '../bus.ts';
import {
  type Answer,
  errorLine,
  outcomeOf,
  outcomeOfError,
  readTurnError,
  type TurnError,
} from '../outcome.ts';
import { numberOf, objectOf, textOf } from '../values.ts';
import { type AskedRequest, readAsked } from './requests.ts';
import { endWith } from './turn-end.ts';

/** What an event means for one message of ours. */
export type TurnStep =
  | { readonly kind: 'accepted' }
  | {
      readonly kind: 'progress';
      readonly doing: 'running' | 'streaming' | 'tool' | 'retrying';
      readonly text?: string;
      readonly tool?: string;
    }
  | { readonly kind: 'asked'; readonly request: AskedRequest }
  | { readonly kind: 'answered'; readonly requestId: string }
  /** The session rests after our message was taken; how the turn ended may come a moment later (tricky case 4). */
  | { readonly kind: 'rest' }
  /** The server said no before it took the message. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** The session was deleted. */
  | { readonly kind: 'removed' };

export interface TurnReaderOptions {
  readonly sessionId: string;
  readonly directory: string | undefined;
  readonly text: string;
  /** The newest user message before ours; ids of messages ascend. */
  readonly lastPromptId: string | undefined;
  /** A turn runs already: OpenCode takes the message now and works on it within the same busy span. */
  readonly busy: boolean;
}

/** Follows one message of ours through the events of a server. Pure. */
export interface TurnReader {
  read(event: BusEvent): readonly TurnStep[];
  /** The message was found in the session although its event was missed. */
  found(promptId: string): readonly TurnStep[];
  readonly accepted: boolean;
  /** Whether the turn is known to have begun. */
  readonly begun: boolean;
  readonly promptId: string | undefined;
  /** The session and its sub-agents. */
  readonly family: ReadonlySet<string>;
  /** Whether a request belongs to what our message started, and not to the turn before it. */
  owns(request: AskedRequest): boolean;
  /** How the turn ended, once its last answer is closed or an error tells; undefined: not known yet. */
  end(): TurnEnd | undefined;
  /** Whether every text that has begun has ended: the end of one may be told after `idle` (seen under load). */
  readonly whole: boolean;
}

interface StreamAnswer extends Answer {
  readonly id: string;
  readonly closed: boolean;
}

/** A reader for one message. */
export function createTurnReader(options: TurnReaderOptions): TurnReader {
  return new Reader(options);
}

class Reader implements TurnReader {
  readonly #options: TurnReaderOptions;
  readonly #family: Set<string>;
  #busy: boolean;
  #promptId: string | undefined;
  #accepted = false;
  #begun = false;
  #over = false;
  /** The next turn has begun: what comes now is not of ours. */
  #sealed = false;
  #failure: TurnError | undefined;
  #answer: StreamAnswer | undefined;
  #texts = new Map<string, string>();
  #openTexts = new Set<string>();
  #doing: 'running' | 'streaming' | 'tool' | 'retrying' | undefined;
  /** Messages that may be ours, and all that are the user's. */
  readonly #candidates = new Set<string>();
  readonly #users = new Set<string>();
  readonly #tools = new Set<string>();

  constructor(options: TurnReaderOptions) {
    this.#options = options;
    this.#family = new Set([options.sessionId]);
    this.#busy = options.busy;
  }

  get accepted(): boolean {
    return this.#accepted;
  }

  get begun(): boolean {
    return this.#begun;
  }

  get promptId(): string | undefined {
    return this.#promptId;
  }

  get family(): ReadonlySet<string> {
    return this.#family;
  }

  get whole(): boolean {
    return this.#openTexts.size === 0;
  }

  owns({ messageId }: AskedRequest): boolean {
    if (!this.#promptId) return false;
    return messageId === undefined || messageId > this.#promptId;
  }

  read(event: BusEvent): readonly TurnStep[] {
    const { type, properties } = event;
    if (type === 'server.instance.disposed') return this.#disposed(event);
    const id = sessionOf(event);
    if (id === undefined) return [];
    if (type === 'session.created' || type === 'session.updated') this.#learn(id, properties);
    if (!this.#family.has(id)) return [];
    if (type === 'permission.asked' || type === 'question.asked') return this.#asked(event);
    if (/^(?:permission|question)\.(?:replied|rejected)$/.test(type)) {
      const requestId = textOf(properties['requestID']);
      return requestId === undefined ? [] : [{ kind: 'answered', requestId }];
    }
    return id === this.#options.sessionId ? this.#own(event) : [];
  }

  found(promptId: string): readonly TurnStep[] {
    return this.#accept(promptId);
  }

  /** A sub-agent works in a session of its own, and what it asks carries that one's id (tricky case 8). */
  #learn(id: string, properties: BusEvent['properties']): void {
    const parent = textOf(objectOf(properties['info'])?.['parentID']);
    if (parent !== undefined && this.#family.has(parent)) this.#family.add(id);
  }

  #asked({ type, properties, directory }: BusEvent): readonly TurnStep[] {
    const kind = type === 'permission.asked' ? 'permission' : 'question';
    const request = readAsked(kind, properties, directory ?? this.#options.directory);
    return request ? [{ kind: 'asked', request }] : [];
  }

  #own({ type, properties }: BusEvent): readonly TurnStep[] {
    if (this.#sealed) return [];
    switch (type) {
      case 'message.updated':
        return this.#message(objectOf(properties['info']));
      case 'message.part.updated':
        return this.#part(objectOf(properties['part']));
      case 'message.part.delta':
        return this.#does('streaming');
      case 'session.status':
        return this.#status(objectOf(properties['status']));
      case 'session.idle':
        return this.#rest();
      case 'session.error':
        return this.#error(readTurnError(properties['error']));
      case 'session.deleted':
        return [{ kind: 'removed' }];
      default:
        return [];
    }
  }

  #message(info: Readonly<Record<string, unknown>> | undefined): readonly TurnStep[] {
    const id = textOf(info?.['id']);
    if (!info || id === undefined) return [];
    if (info['role'] === 'user') {
      const { lastPromptId } = this.#options;
      this.#users.add(id);
      this.#sealed ||= this.#over && this.#promptId !== undefined && id > this.#promptId;
      // The summary of a turn comes as an update of its user message, after the turn (tricky case 5).
      if (this.#accepted || (lastPromptId !== undefined && id <= lastPromptId)) return [];
      this.#candidates.add(id);
      // With a turn running another client's message may come first: then only the text tells.
      return this.#busy ? [] : this.#accept(id);
    }
    if (info['role'] !== 'assistant' || (this.#answer && this.#answer.id > id)) return [];
    const before = this.#answer?.id === id ? this.#answer : undefined;
    if (!before) this.#begins(id);
    const finish = textOf(info['finish']);
    const error = readTurnError(info['error']);
    const completed = numberOf(objectOf(info['time'])?.['completed']);
    this.#answer = {
      id,
      hasParts: before?.hasParts === true,
      closed: completed !== undefined || error !== undefined,
      ...(finish ? { finish } : {}),
      ...(error ? { error } : {}),
    };
    return [];
  }

  #begins(id: string): void {
    this.#texts = new Map();
    this.#openTexts = new Set();
    this.#answer = { id, closed: false, hasParts: false };
  }

  #part(part: Readonly<Record<string, unknown>> | undefined): readonly TurnStep[] {
    const messageId = textOf(part?.['messageID']);
    if (!part || messageId === undefined) return [];
    if (this.#candidates.has(messageId)) {
      const isOurs = part['type'] === 'text' && part['text'] === this.#options.text;
      return isOurs ? this.#accept(messageId) : [];
    }
    if (this.#users.has(messageId) || messageId === this.#promptId) return [];
    if (this.#answer && this.#answer.id > messageId) return [];
    if (this.#answer?.id !== messageId) this.#begins(messageId);
    this.#answer = { id: messageId, closed: false, ...this.#answer, hasParts: true };
    switch (part['type']) {
      case 'text':
        return this.#text(part);
      case 'tool':
        return this.#tool(part);
      case 'step-start':
        return this.#does('running');
      default:
        return [];
    }
  }

  #text(part: Readonly<Record<string, unknown>>): readonly TurnStep[] {
    const id = textOf(part['id']) ?? '';
    const text = textOf(part['text']);
    const isWhole = numberOf(objectOf(part['time'])?.['end']) !== undefined;
    if (!isWhole) {
      this.#openTexts.add(id);
      return [];
    }
    this.#openTexts.delete(id);
    if (text === undefined || this.#texts.get(id) === text) return [];
    this.#texts.set(id, text);
    this.#doing = 'running';
    return this.#accepted ? [{ kind: 'progress', doing: 'running', text }] : [];
  }

  #tool(part: Readonly<Record<string, unknown>>): readonly TurnStep[] {
    const call = textOf(part['callID']) ?? textOf(part['id']) ?? '';
    const tool = textOf(part['tool']);
    const status = objectOf(part['state'])?.['status'];
    if (status === 'completed' || status === 'error') return this.#does('running');
    if (status !== 'running' || tool === undefined || this.#tools.has(call)) return [];
    this.#tools.add(call);
    this.#doing = 'tool';
    return this.#accepted ? [{ kind: 'progress', doing: 'tool', tool }] : [];
  }

  #status(status: Readonly<Record<string, unknown>> | undefined): readonly TurnStep[] {
    const type = textOf(status?.['type']);
    if (type === 'idle') return this.#rest();
    if (type !== 'busy' && type !== 'retry') return [];
    if (this.#accepted) this.#begun = true;
    if (type === 'busy') return this.#does('running');
    const words = errorLine(status?.['message']);
    this.#doing = 'retrying';
    return this.#accepted ? [{ kind: 'progress', doing: 'retrying', ...(words ? { text: words } : {}) }] : [];
  }

  #error(failure: TurnError | undefined): readonly TurnStep[] {
    if (!failure) return [];
    if (this.#accepted) {
      // The first one says it best; the same error follows with a stack.
      this.#failure ??= failure;
      // An error that comes before any turn has begun is followed by none.
      return this.#begun ? [] : this.#finish();
    }
    // Of a turn that runs already, an error is that turn's.
    return this.#busy ? [] : this.#refuse(failure.text ?? failure.name);
  }

  #refuse(reason: string): readonly TurnStep[] {
    if (this.#over) return [];
    this.#over = true;
    return [{ kind: 'refused', reason }];
  }

  #rest(): readonly TurnStep[] {
    if (this.#accepted) return this.#begun ? this.#finish() : [];
    // The turn before ours has ended: whatever user message comes now is ours.
    this.#busy = false;
    return [];
  }

  /** The directory's instance is closed: no idle follows (tricky case 13). */
  #disposed({ properties, directory }: BusEvent): readonly TurnStep[] {
    const where = textOf(properties['directory']) ?? directory;
    return this.#accepted && where === this.#options.directory ? this.#finish() : [];
  }

  #accept(promptId: string): readonly TurnStep[] {
    if (this.#accepted) return [];
    this.#accepted = true;
    this.#promptId = promptId;
    this.#begun = this.#busy;
    return [{ kind: 'accepted' }];
  }

  #finish(): readonly TurnStep[] {
    if (this.#over) return [];
    this.#over = true;
    return [{ kind: 'rest' }];
  }

  #does(doing: 'running' | 'streaming'): readonly TurnStep[] {
    if (!this.#accepted || this.#doing === doing) return [];
    this.#doing = doing;
    return [{ kind: 'progress', doing }];
  }

  end(): TurnEnd | undefined {
    const answer = this.#answer;
    const isOurs = answer !== undefined && this.#promptId !== undefined && answer.id > this.#promptId;
    if (isOurs && answer.closed) {
      const error = answer.error ?? this.#failure;
      return endWith(outcomeOf(answer), error, [...this.#texts.values()].join('\n'), answer.finish);
    }
    // An abort tells before the answer is closed; any other error may have no answer at all.
    const failed = this.#failure && this.#failure.name !== 'MessageAbortedError';
    return failed && !isOurs && this.#failure
      ? endWith(outcomeOfError(this.#failure), this.#failure, '')
      : undefined;
  }
}
