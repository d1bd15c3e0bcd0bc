import type { ToolCall } from '../../runtime/session/state.ts';
import { listOf, objectOf, textOf, timeOf } from './values.ts';

/** One line of a session file (pi 1.6.0, file version 3), reduced to what a state or a row needs. */
export type Entry =
  | {
      readonly kind: 'session';
      readonly id: string;
      readonly at?: number;
      readonly cwd?: string;
      /** The file that this one was forked from, as pi wrote it. */
      readonly parentSession?: string;
    }
  | (Node & { readonly kind: 'user'; readonly text: string })
  | (Node & { readonly kind: 'tool-result' })
  | (Node & {
      readonly kind: 'assistant';
      /** `stop`, `length`, `toolUse`, `error`, `aborted`; other words of later versions as they are. */
      readonly stop?: string;
      readonly error?: string;
      readonly model?: string;
      readonly usedTokens?: number;
      readonly tool?: ToolCall;
      readonly text: string;
    })
  /** Takes an entry back: behind a failed answer it says that pi tries again. */
  | (Node & { readonly kind: 'context-edit'; readonly targetId?: string })
  | (Node & { readonly kind: 'name'; readonly name?: string })
  | (Node & { readonly kind: 'model'; readonly model: string })
  | (Node & { readonly kind: 'other' });

interface Node {
  readonly id?: string;
  readonly parentId?: string;
  /** Epoch milliseconds. */
  readonly at?: number;
}

/** Reads one parsed line; `undefined` for what is no entry at all. */
export function readEntry(record: unknown): Entry | undefined {
  const raw = objectOf(record);
  const type = textOf(raw?.['type']);
  if (!raw || type === undefined) return undefined;
  const at = timeOf(raw['timestamp']);
  const id = textOf(raw['id']);
  if (type === 'session') return id === undefined ? undefined : header(raw, id, at);
  const parentId = textOf(raw['parentId']);
  const node: Node = {
    ...(id === undefined ? {} : { id }),
    ...(parentId === undefined ? {} : { parentId }),
    ...(at === undefined ? {} : { at }),
  };
  switch (type) {
    case 'message':
      return message(node, objectOf(raw['message']));
    case 'context_edit':
      return { ...node, kind: 'context-edit', ...optional('targetId', textOf(raw['targetId'])) };
    case 'session_info':
      return { ...node, kind: 'name', ...optional('name', textOf(raw['name'])) };
    case 'model_change': {
      const model = textOf(raw['modelId']);
      return model === undefined ? { ...node, kind: 'other' } : { ...node, kind: 'model', model };
    }
    default:
      return { ...node, kind: 'other' };
  }
}

function header(raw: Readonly<Record<string, unknown>>, id: string, at: number | undefined): Entry {
  return {
    kind: 'session',
    id,
    ...optional('at', at),
    ...optional('cwd', textOf(raw['cwd'])),
    ...optional('parentSession', textOf(raw['parentSession'])),
  };
}

function message(node: Node, raw: Readonly<Record<string, unknown>> | undefined): Entry {
  switch (raw?.['role']) {
    case 'user':
      return { ...node, kind: 'user', text: textIn(raw['content']) };
    case 'toolResult':
      return { ...node, kind: 'tool-result' };
    case 'assistant':
      return {
        ...node,
        kind: 'assistant',
        text: textIn(raw['content']),
        ...optional('stop', textOf(raw['stopReason'])),
        ...optional('error', textOf(raw['errorMessage'])),
        ...optional('model', textOf(raw['model'])),
        ...optional('usedTokens', usedTokens(raw['usage'])),
        ...optional('tool', lastCall(raw['content'])),
      };
    default:
      // The system prompt is a message too, of several kilobytes (tricky case 8).
      return { ...node, kind: 'other' };
  }
}

function optional<Name extends string, T>(name: Name, value: T | undefined): { readonly [K in Name]?: T } {
  return (value === undefined ? {} : { [name]: value }) as { readonly [K in Name]?: T };
}

/** The text of a message: a plain string, or its text blocks. */
function textIn(content: unknown): string {
  if (typeof content === 'string') return content;
  const texts = listOf(content).flatMap((value) => {
    const block = objectOf(value);
    return block?.['type'] === 'text' ? (textOf(block['text']) ?? []) : [];
  });
  return texts.join('\n');
}

function usedTokens(usage: unknown): number | undefined {
  const total = objectOf(usage)?.['totalTokens'];
  return typeof total === 'number' && total > 0 ? total : undefined;
}

/** The newest tool call of an answer. */
function lastCall(content: unknown): ToolCall | undefined {
  const block = listOf(content)
    .map(objectOf)
    .findLast((one) => one?.['type'] === 'toolCall');
  const name = textOf(block?.['name']);
  if (name === undefined) return undefined;
  const input = objectOf(block?.['arguments']);
  return {
    name,
    ...optional('command', textOf(input?.['command'])),
    ...optional('path', textOf(input?.['path'])),
    ...optional('pattern', textOf(input?.['pattern'])),
  };
}
