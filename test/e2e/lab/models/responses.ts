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
  title: '{"title":"A task"}',
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
  const prompt = wordsOf(input[spoken] ?? {});
  return {
    prompt,
    round: input.slice(spoken).filter((item) => String(item['type']).endsWith('_call_output')).length,
    tools: prompt.startsWith(SIDE_JOB)
      ? []
      : [...namesOf(body['tools']), ...(hasCodeMode(body) ? ['exec'] : [])],
    model: String(body['model']),
  };
}

/** What a person wrote, or a parent its sub-agent; the harness's own notes have the same role and stand in tags. */
function isPrompt(item: Body): boolean {
  const words = wordsOf(item).trimStart();
  if (item['type'] === 'agent_message') return words.startsWith('Message Type: NEW_TASK');
  if (item['type'] !== 'message' || item['role'] !== 'user') return false;
  return words !== '' && !words.startsWith('<') && !words.startsWith('# AGENTS.md');
}

/** A message between agents has its words in a block that a real service encrypts. */
function wordsOf(item: Body): string {
  const sealed = objectsOf(item['content']).map((block) => block['encrypted_content'] ?? '');
  return [textOf(item['content']), ...sealed].join('');
}

async function* stream(reply: Reply & { kind: 'steps' }, body: Body): AsyncIterable<string> {
  const response = { id: nextId('resp'), object: 'response', output: [] };
  yield event('response.created', { response: { ...response, status: 'in_progress' } });
  const seen = { parts: 0 };
  for await (const part of partsOf(reply.steps)) {
    yield* itemOf(part, seen.parts, body);
    seen.parts += 1;
  }
  const usage = { input_tokens: 10, output_tokens: 20, total_tokens: 30 };
  yield reply.stop === 'limit'
    ? event('response.incomplete', {
        response: { ...response, status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } },
      })
    : event('response.completed', { response: { ...response, status: 'completed', usage } });
}

async function* itemOf(part: Part, output_index: number, body: Body): AsyncIterable<string> {
  if (part.kind !== 'text') {
    const item = callOf(part, body);
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

/** A tool may lie in a namespace: `collaboration/spawn_agent`. */
function callOf(call: Call, body: Body) {
  const id = nextId('call');
  if (call.kind === 'shell' && hasCodeMode(body)) {
    const input = `text((await tools.exec_command(${JSON.stringify(command(call))})).output);`;
    return { id, type: 'custom_tool_call', call_id: id, name: 'exec', input };
  }
  const [path, input] = call.kind === 'tool' ? [call.name, call.input] : ['exec_command', command(call)];
  const [name, namespace] = path.split('/').reverse();
  const place = namespace === undefined ? {} : { namespace };
  return { id, type: 'function_call', call_id: id, name, ...place, arguments: JSON.stringify(input) };
}

/** Newer models get their tools in the conversation, and the shell as a function of a script that they write. */
function hasCodeMode(body: Body): boolean {
  return objectsOf(body['input']).some((item) => item['type'] === 'additional_tools');
}

function command(call: Call & { kind: 'shell' }) {
  if (call.askFor === undefined) return { cmd: call.command };
  return { cmd: call.command, sandbox_permissions: 'require_escalated', justification: call.askFor };
}

function event(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}
