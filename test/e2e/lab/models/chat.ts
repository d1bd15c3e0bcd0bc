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

/** OpenAI chat completions, as OpenCode 1.18.33 speaks it through `@ai-sdk/openai-compatible`. */
export function startChat(): Model {
  return startModel(dialect);
}

const dialect: Dialect = {
  route: '/v1/chat/completions',
  title: 'A task',
  read,
  stream,
  error: (reply) => ({ error: { type: reply.type, code: reply.type, message: reply.message } }),
};

function read(body: Body): ModelRequest | undefined {
  const messages = objectsOf(body['messages']);
  const spoken = messages.findLastIndex((one) => one['role'] === 'user');
  if (spoken < 0) return undefined;
  const results = messages.slice(spoken).filter((one) => one['role'] === 'tool');
  return {
    prompt: textOf(messages[spoken]?.['content']),
    round: results.length,
    results: results.map((one) => textOf(one['content'])),
    tools: namesOf(body['tools']),
    model: String(body['model']),
  };
}

async function* stream(reply: Reply & { kind: 'steps' }, body: Body): AsyncIterable<string> {
  const head = { id: nextId('chat'), object: 'chat.completion.chunk', created: 1, model: body['model'] };
  const chunk = (delta: object, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
  yield chunk({ role: 'assistant', content: '' });
  const seen = { calls: 0 };
  for await (const part of partsOf(reply.steps)) {
    for await (const delta of deltasOf(part, seen.calls)) yield chunk(delta);
    if (part.kind !== 'text') seen.calls += 1;
  }
  yield chunk({}, reply.stop === 'limit' ? 'length' : seen.calls > 0 ? 'tool_calls' : 'stop');
  const usage = { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 };
  yield `data: ${JSON.stringify({ ...head, choices: [], usage })}\n\n`;
  yield 'data: [DONE]\n\n';
}

async function* deltasOf(part: Part, index: number): AsyncIterable<object> {
  if (part.kind !== 'text') {
    yield { tool_calls: [{ index, id: nextId('call'), type: 'function', function: functionOf(part) }] };
    return;
  }
  for await (const content of part.flow) yield { content };
}

function functionOf(call: Call) {
  const [name, input] =
    call.kind === 'tool'
      ? [call.name, call.input]
      : ['bash', { command: call.command, description: 'Run it' }];
  return { name, arguments: JSON.stringify(input) };
}
