/**
 * Rows of a Claude Code 2.1.332 transcript, with the shapes and sizes that its recordings show: conversation
 * between large bookkeeping rows, metadata rows at the end.
 */
import { pick, prose, type Random, uuid } from './random.ts';

export interface SessionFacts {
  readonly id: string;
  readonly cwd: string;
  readonly prompt: string;
  /** Epoch milliseconds of the first row. */
  readonly startedAt: number;
}

/** How a session ends, and how often among a thousand. */
export type Ending = 'completed' | 'interrupted' | 'failed' | 'tool' | 'question';

type Row = Record<string, unknown>;

const MODEL = 'claude-opus-5-5';
const VERSION = '2.1.332';

/** Makes the rows of one session as text, each with its line end. */
export class RowWriter {
  readonly #facts: SessionFacts;
  readonly #random: Random;
  #parent: string | null = null;
  #at: number;

  constructor(facts: SessionFacts, random: Random) {
    this.#facts = facts;
    this.#random = random;
    this.#at = facts.startedAt;
  }

  /** What stands before the first answer: 100 KB, most of it the system prompt and the tools. */
  opening(): string {
    const { id, prompt } = this.#facts;
    return [
      this.#plain({ type: 'queue-operation', operation: 'enqueue', content: prompt }),
      this.#plain({ type: 'queue-operation', operation: 'dequeue' }),
      this.prompt(prompt),
      this.#attachment({ type: 'environment', snapshot: { platform: 'linux', shell: 'bash' } }),
      this.#attachment({ type: 'model', identity: { modelId: MODEL } }),
      this.#attachment({ type: 'skill_listing', content: prose(this.#random, 6200), skillCount: 13 }),
      this.#attachment({ type: 'date', date: '2026-11-30' }),
      this.#attachment({ type: 'prompt_snapshot', systemPrompt: prose(this.#random, 7133) }),
      this.#plain({ type: 'api-request-shape', shapeHash: id, shape: prose(this.#random, 50_731) }),
      this.blob(24_000),
      this.#plain({ type: 'tools-used', tools: ['Bash'] }),
    ].join('');
  }

  prompt(text: string): string {
    return this.#row({
      type: 'user',
      message: { role: 'user', content: text },
      promptId: uuid(this.#random),
      permissionMode: 'default',
      promptSource: 'typed',
      origin: { kind: 'human' },
    });
  }

  /** One call of a tool and its result of so many bytes. */
  toolRound(resultBytes: number): string {
    const call = `toolu_${uuid(this.#random).slice(0, 18)}`;
    return [
      this.#assistant(
        { type: 'tool_use', id: call, name: 'Bash', input: { command: 'npm test' } },
        'tool_use',
      ),
      this.#bookkeeping(),
      this.#result(call, prose(this.#random, resultBytes)),
    ].join('');
  }

  answer(length: number): string {
    return this.#assistant({ type: 'text', text: prose(this.#random, length) }, 'end_turn');
  }

  /** The last conversation rows; what they say is the state of the session. */
  ending(kind: Ending): string {
    const call = `toolu_${uuid(this.#random).slice(0, 18)}`;
    if (kind === 'completed') return this.answer(400);
    if (kind === 'interrupted') return this.prompt('[Request interrupted by user]');
    if (kind === 'tool') {
      return this.#assistant(
        { type: 'tool_use', id: call, name: 'Bash', input: { command: 'make' } },
        'tool_use',
      );
    }
    if (kind === 'question') {
      const input = {
        questions: [{ question: 'Which one?', header: 'Choice', options: [], multiSelect: false }],
      };
      return this.#assistant({ type: 'tool_use', id: call, name: 'AskUserQuestion', input }, 'tool_use');
    }
    return this.#row({
      type: 'assistant',
      isApiErrorMessage: true,
      error: 'rate_limit',
      apiErrorStatus: 429,
      message: {
        id: uuid(this.#random),
        type: 'message',
        role: 'assistant',
        model: '<synthetic>',
        content: [{ type: 'text', text: 'API Error: 429' }],
        stop_reason: 'stop_sequence',
      },
    });
  }

  /** What follows the last conversation row; with `large`, a row of more than 64 KB is among it. */
  closing(large: boolean): string {
    return [
      large ? this.blob(90_000) : '',
      this.#row({
        type: 'system',
        subtype: 'stop_hook_summary',
        hookCount: 1,
        hookInfos: [],
        level: 'suggestion',
      }),
      this.#bookkeeping(),
      this.#plain({ type: 'cost-state', totalCostUSD: 0.002176, totalAPIDuration: 103, totalDuration: 2277 }),
      this.#plain({ type: 'last-prompt', lastPrompt: this.#facts.prompt, leafUuid: this.#parent }),
    ].join('');
  }

  blob(bytes: number): string {
    const message = { role: 'system', content: prose(this.#random, bytes) };
    return this.#plain({ type: 'api-request-blob', hash: uuid(this.#random), message });
  }

  #assistant(block: Row, stopReason: string): string {
    return this.#row({
      type: 'assistant',
      message: {
        id: `msg_${uuid(this.#random).slice(0, 20)}`,
        type: 'message',
        role: 'assistant',
        model: MODEL,
        content: [block],
        stop_reason: stopReason,
        stop_sequence: null,
        usage: {
          input_tokens: 12,
          cache_read_input_tokens: 1000,
          output_tokens: 42,
          service_tier: 'standard',
        },
      },
    });
  }

  #result(call: string, text: string): string {
    return this.#row({
      type: 'user',
      message: {
        role: 'user',
        content: [{ tool_use_id: call, type: 'tool_result', content: text, is_error: false }],
      },
      toolUseResult: { stdout: text, stderr: '', interrupted: false, isImage: false },
    });
  }

  #attachment(attachment: Row): string {
    return this.#row({ type: 'attachment', attachment, rendered: '', renderedRole: 'system' });
  }

  #bookkeeping(): string {
    return [
      this.#plain({ type: 'last-prompt', lastPrompt: this.#facts.prompt, leafUuid: this.#parent }),
      this.#plain({ type: 'mode', mode: 'normal' }),
      this.#plain({ type: 'permission-mode', permissionMode: 'default' }),
      this.#plain({ type: 'atis-latch', atis: '' }),
    ].join('');
  }

  #row(row: Row): string {
    const id = uuid(this.#random);
    this.#at += 500;
    const { cwd, id: sessionId } = this.#facts;
    const common = {
      uuid: id,
      timestamp: new Date(this.#at).toISOString(),
      userType: 'external',
      entrypoint: 'cli',
    };
    const line = { parentUuid: this.#parent, isSidechain: false, ...row, ...common, cwd, sessionId };
    this.#parent = id;
    return `${JSON.stringify({ ...line, version: VERSION, gitBranch: 'main' })}\n`;
  }

  #plain(row: Row): string {
    return `${JSON.stringify({ ...row, sessionId: this.#facts.id })}\n`;
  }
}

/** Mostly completed, as on a real disk. */
export function chooseEnding(random: Random): Ending {
  const at = random();
  if (at < 0.74) return 'completed';
  if (at < 0.84) return 'interrupted';
  if (at < 0.9) return 'failed';
  return pick(random, ['tool', 'question']);
}
