import type { ModelRequest, Reply } from './script.ts';
import {
  type Body,
  type Call,
  type Dialect,
  type Model,
  namesOf,
  nextId,
  objectsOf,
  type Part,
  partsOf,
  startModel,
  textOf,
} from './server.ts';

/** Anthropic Messages, as Claude Code 2.1.332 speaks it (`ANTHROPIC_BASE_URL`). */
export function startAnthropic(): Model {
  return startModel(dialect);
}

const dialect: Dialect = {
  route: '/v1/messages',
  title: '{"title":"A task"}',
  read,
  stream,
  error: (reply) => ({ type: 'error', error: { type: reply.type, message: reply.message } }),
};

function read(body: Body): ModelRequest | undefined {
  const messages = objectsOf(body['messages']);
  const spoken = messages.findLastIndex((one) => one['role'] === 'user' && words(one).trim() !== '');
  if (spoken < 0) return undefined;
  const after = messages.slice(spoken + 1);
  return {
    prompt: words(messages[spoken] ?? {}),
    round: after.filter((one) => one['role'] === 'user' && hasToolResult(one)).length,
    tools: namesOf(body['tools']),
    model: String(body['model']),
  };
}

/** What a person wrote, or a task that ended; the program's other notes stand in blocks of their own. */
function words(message: Body): string {
  const content = message['content'];
  // A prompt that follows a refused call stands in one message with its result.
  const said = objectsOf(content).filter((one) => one['type'] !== 'tool_result');
  const blocks = typeof content === 'string' ? [content] : said.map((one) => textOf([one]));
  return blocks.filter((one) => !isNote(one) && !one.startsWith('[Request interrupted')).join('\n');
}

function isNote(block: string): boolean {
  return block.trimStart().startsWith('<system-reminder>') && !block.includes('<task-notification>');
}

function hasToolResult(message: Body): boolean {
  return objectsOf(message['content']).some((block) => block['type'] === 'tool_result');
}

async function* stream(reply: Reply & { kind: 'steps' }, body: Body): AsyncIterable<string> {
  const message = {
    id: nextId('msg'),
    type: 'message',
    role: 'assistant',
    model: body['model'],
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 1 },
  };
  yield event('message_start', { message });
  const seen = { parts: 0, calls: 0 };
  for await (const part of partsOf(reply.steps)) {
    const index = seen.parts;
    const start = part.kind === 'text' ? { type: 'text', text: '' } : toolUse(part);
    yield event('content_block_start', { index, content_block: start });
    for await (const delta of deltasOf(part)) yield event('content_block_delta', { index, delta });
    yield event('content_block_stop', { index });
    seen.parts += 1;
    if (part.kind !== 'text') seen.calls += 1;
  }
  const stop = reply.stop === 'limit' ? 'max_tokens' : seen.calls > 0 ? 'tool_use' : 'end_turn';
  yield event('message_delta', {
    delta: { stop_reason: stop, stop_sequence: null },
    usage: { output_tokens: 20 },
  });
  yield event('message_stop', {});
}

function toolUse(call: Call) {
  return {
    type: 'tool_use',
    id: nextId('toolu'),
    name: call.kind === 'tool' ? call.name : 'Bash',
    input: {},
  };
}

async function* deltasOf(part: Part): AsyncIterable<unknown> {
  if (part.kind === 'text') {
    for await (const piece of part.flow) yield { type: 'text_delta', text: piece };
    return;
  }
  const input = part.kind === 'tool' ? part.input : { command: part.command, description: 'Run it' };
  yield { type: 'input_json_delta', partial_json: JSON.stringify(input) };
}

function event(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}
