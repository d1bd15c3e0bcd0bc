import { listOf, numberOf, objectOf, textOf } from '../values.ts';
import { readResult, type TurnResultLine } from './result.ts';

/** What Claude Code asks before it uses a tool (`control_request` of subtype `can_use_tool`). */
export interface ToolQuestion {
  readonly requestId: string;
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** Rules and modes that would make it not ask again; as it wrote them. */
  readonly suggestions: readonly Readonly<Record<string, unknown>>[];
  readonly toolUseId?: string;
}

/**
 * One line of `--output-format stream-json`, reduced to what it means for a turn (2.1.197 and 2.1.332). Lines of
 * sub-agents are `other`: they neither open nor end the turn. `type` is not always the first key (2.1.332), so lines
 * are parsed, never matched by their beginning.
 */
export type StreamEvent =
  /** What became of a message of ours, by its uuid (2.1.332). */
  | { readonly kind: 'lifecycle'; readonly uuid: string; readonly state: string }
  /** A message of ours, given back (`--replay-user-messages`). */
  | { readonly kind: 'replay'; readonly uuid: string }
  | { readonly kind: 'init'; readonly sessionId: string }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'tool'; readonly name: string; readonly id: string }
  | { readonly kind: 'tool-result'; readonly id: string }
  /** A reply of the program's own in place of the model's: what went wrong, by its code. */
  | { readonly kind: 'error'; readonly code: string; readonly text: string }
  | { readonly kind: 'streaming' }
  | { readonly kind: 'retry'; readonly attempt?: number; readonly of?: number }
  | { readonly kind: 'question'; readonly question: ToolQuestion }
  /** It asks for something that we don't know: it must have an answer, or it waits for ever. */
  | { readonly kind: 'unknown-question'; readonly requestId: string; readonly subtype: string }
  | { readonly kind: 'withdrawn'; readonly requestId: string }
  /** Our own answer given back, or the reply to a request of ours: it has arrived. */
  | { readonly kind: 'reply'; readonly requestId: string; readonly ok: boolean }
  /** Work that outlives the turn (2.1.332). */
  | { readonly kind: 'background'; readonly agents: number; readonly shells: number }
  | { readonly kind: 'result'; readonly result: TurnResultLine }
  | { readonly kind: 'other' };

type Fields = Readonly<Record<string, unknown>>;

/** Reads one line; several events for a message of several blocks. `undefined`: the line is no JSON object. */
export function readStreamLine(line: string): readonly StreamEvent[] | undefined {
  const value = objectOf(parse(line));
  const type = textOf(value?.['type']);
  if (!value || !type) return undefined;
  switch (type) {
    case 'command_lifecycle':
      return lifecycle(value);
    case 'user':
      return userEvents(value);
    case 'assistant':
      return assistantEvents(value);
    case 'system':
      return [systemEvent(value)];
    case 'stream_event':
      return [streamEvent(value)];
    case 'control_request':
      return [questionEvent(value)];
    case 'control_cancel_request':
      return withId(value, 'request_id', (requestId) => ({ kind: 'withdrawn', requestId }));
    case 'control_response':
      return replyEvent(objectOf(value['response']));
    case 'result':
      return [{ kind: 'result', result: readResult(value) }];
    default:
      return [{ kind: 'other' }];
  }
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    // Something that was printed between the lines: it is counted, and means nothing.
    return undefined;
  }
}

function withId(value: Fields, key: string, make: (id: string) => StreamEvent): readonly StreamEvent[] {
  const id = textOf(value[key]);
  return [id ? make(id) : { kind: 'other' }];
}

function lifecycle(value: Fields): readonly StreamEvent[] {
  return withId(value, 'command_uuid', (uuid) => ({
    kind: 'lifecycle',
    uuid,
    state: textOf(value['state']) ?? '',
  }));
}

function isSubAgent(value: Fields): boolean {
  return textOf(value['parent_tool_use_id']) !== undefined;
}

function blocksOf(value: Fields): readonly Fields[] {
  return objectsOf(objectOf(value['message'])?.['content']);
}

function objectsOf(list: unknown): readonly Fields[] {
  return listOf(list)
    .map(objectOf)
    .filter((one) => one !== undefined);
}

function userEvents(value: Fields): readonly StreamEvent[] {
  if (value['isReplay'] === true) return withId(value, 'uuid', (uuid) => ({ kind: 'replay', uuid }));
  if (isSubAgent(value)) return [{ kind: 'other' }];
  const results = blocksOf(value).flatMap((block): StreamEvent[] => {
    const id = block['type'] === 'tool_result' ? textOf(block['tool_use_id']) : undefined;
    return id ? [{ kind: 'tool-result', id }] : [];
  });
  return results.length > 0 ? results : [{ kind: 'other' }];
}

function assistantEvents(value: Fields): readonly StreamEvent[] {
  if (isSubAgent(value)) return [{ kind: 'other' }];
  const code = textOf(value['error']);
  if (code) {
    const texts = blocksOf(value).flatMap((block) => textOf(block['text']) ?? []);
    return [{ kind: 'error', code, text: texts.join('\n') }];
  }
  const events = blocksOf(value).flatMap(blockEvent);
  return events.length > 0 ? events : [{ kind: 'other' }];
}

function blockEvent(block: Fields): readonly StreamEvent[] {
  if (block['type'] === 'text') {
    const text = textOf(block['text']);
    return text ? [{ kind: 'text', text }] : [];
  }
  const name = textOf(block['name']);
  const id = textOf(block['id']);
  return block['type'] === 'tool_use' && name && id ? [{ kind: 'tool', name, id }] : [];
}

function systemEvent(value: Fields): StreamEvent {
  switch (value['subtype']) {
    case 'init': {
      const sessionId = textOf(value['session_id']);
      return sessionId ? { kind: 'init', sessionId } : { kind: 'other' };
    }
    case 'api_retry': {
      const attempt = numberOf(value['attempt']);
      const of = numberOf(value['max_retries']);
      return {
        kind: 'retry',
        ...(attempt === undefined ? {} : { attempt }),
        ...(of === undefined ? {} : { of }),
      };
    }
    case 'background_tasks_changed': {
      const kinds = listOf(value['tasks']).map((task) => objectOf(task)?.['task_type']);
      const agents = kinds.filter((kind) => kind === 'local_agent').length;
      return { kind: 'background', agents, shells: kinds.length - agents };
    }
    default:
      return { kind: 'other' };
  }
}

/** Only with `--include-partial-messages`, which we don't ask for; a setting may. */
function streamEvent(value: Fields): StreamEvent {
  const type = objectOf(value['event'])?.['type'];
  return type === 'content_block_delta' && !isSubAgent(value) ? { kind: 'streaming' } : { kind: 'other' };
}

function questionEvent(value: Fields): StreamEvent {
  const requestId = textOf(value['request_id']);
  const request = objectOf(value['request']);
  if (!requestId || !request) return { kind: 'other' };
  const tool = textOf(request['tool_name']);
  const subtype = textOf(request['subtype']) ?? '';
  if (subtype !== 'can_use_tool' || !tool) return { kind: 'unknown-question', requestId, subtype };
  const toolUseId = textOf(request['tool_use_id']);
  return {
    kind: 'question',
    question: {
      requestId,
      tool,
      input: objectOf(request['input']) ?? {},
      suggestions: objectsOf(request['permission_suggestions']),
      ...(toolUseId ? { toolUseId } : {}),
    },
  };
}

function replyEvent(response: Fields | undefined): readonly StreamEvent[] {
  return withId(response ?? {}, 'request_id', (requestId) => ({
    kind: 'reply',
    requestId,
    ok: response?.['subtype'] === 'success',
  }));
}
