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

/** OpenAI Responses, as Codex 0.171.0 speaks it to a provider with `wire_api = "responses"`. */
export function startResponses(): Model {
  return startModel(dialect);
}

const dialect: Dialect = {
  route: '/v1/responses',
  read,
  stream,
  error: (reply) => ({ error: { type: reply.type, code: reply.type, message: reply.message } }),
};

/** Codex finds a title in a request of its own, which offers all tools like any other. */
const SIDE_JOB = 'Generate a concise, single-line task title';

function read(body: Body): ModelRequest | undefined {
  const input = objectsOf(body['input']);
  const spoken = input.findLastIndex(isPrompt);
  if (spoken < 0) return undefined;
  const prompt = textOf(input[spoken]?.['content']);
  return {
    prompt,
    round: input.slice(spoken).filter((item) => String(item['type']).endsWith('_call_output')).length,
    tools: prompt.startsWith(SIDE_JOB) ? [] : namesOf(body['tools']),
    model: String(body['model']),
  };
}

/** What a person or a parent wrote; the harness's own notes have the same role and stand in tags. */
function isPrompt(item: Body): boolean {
  if (item['type'] !== 'message' || item['role'] !== 'user') return false;
  const words = textOf(item['content']).trimStart();
  return words !== '' && !words.startsWith('<') && !words.startsWith('# AGENTS.md');
}

async function* stream(reply: Reply & { kind: 'steps' }): AsyncIterable<string> {
  const response = { id: nextId('resp'), object: 'response', output: [] };
  yield event('response.created', { response: { ...response, status: 'in_progress' } });
  const seen = { parts: 0 };
  for await (const part of partsOf(reply.steps)) {
    yield* itemOf(part, seen.parts);
    seen.parts += 1;
  }
  const usage = { input_tokens: 10, output_tokens: 20, total_tokens: 30 };
  yield reply.stop === 'limit'
    ? event('response.incomplete', {
        response: { ...response, status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } },
      })
    : event('response.completed', { response: { ...response, status: 'completed', usage } });
}

async function* itemOf(part: Part, output_index: number): AsyncIterable<string> {
  if (part.kind !== 'text') {
    const item = functionCall(part);
    yield event('response.output_item.added', { output_index, item });
    yield event('response.output_item.done', { output_index, item });
    return;
  }
  const item = { id: nextId('msg'), type: 'message', role: 'assistant' };
  const place = { output_index, content_index: 0, item_id: item.id };
  yield event('response.output_item.added', {
    output_index,
    item: { ...item, status: 'in_progress', content: [] },
  });
  const said: string[] = [];
  for await (const delta of part.flow) {
    said.push(delta);
    yield event('response.output_text.delta', { ...place, delta });
  }
  const content = [{ type: 'output_text', text: said.join(''), annotations: [] }];
  yield event('response.output_item.done', { output_index, item: { ...item, status: 'completed', content } });
}

function functionCall(call: Call) {
  const id = nextId('call');
  const [name, input] = call.kind === 'tool' ? [call.name, call.input] : ['exec_command', command(call)];
  return { id, type: 'function_call', call_id: id, name, arguments: JSON.stringify(input) };
}

function command(call: Call & { kind: 'shell' }) {
  if (call.askFor === undefined) return { cmd: call.command };
  return { cmd: call.command, sandbox_permissions: 'require_escalated', justification: call.askFor };
}

function event(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}
