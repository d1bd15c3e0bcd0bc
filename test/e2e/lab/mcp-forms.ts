/**
 * A tool server (MCP on stdio) with one tool, `ask`, that asks its user to fill in a form and gives back what came. Run
 * by Codex.
 */
import { stdout } from 'node:process';

const write = (value: unknown) => stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...Object(value) })}\n`);

const FORM = {
  type: 'object',
  properties: { key: { type: 'string', title: 'Key' }, count: { type: 'integer', title: 'Count' } },
  required: ['key'],
};

const state: { call?: unknown } = {};
for await (const line of console) {
  const { id, method, params, result } = JSON.parse(line);
  switch (method) {
    case 'initialize':
      write({
        id,
        result: {
          protocolVersion: params.protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: 'tickets', version: '1' },
        },
      });
      break;
    case 'tools/list':
      write({
        id,
        result: {
          tools: [{ name: 'ask', description: 'Asks', inputSchema: { type: 'object', properties: {} } }],
        },
      });
      break;
    case 'tools/call':
      state.call = id;
      write({
        id: 'form',
        method: 'elicitation/create',
        params: { message: 'Which ticket?', requestedSchema: FORM },
      });
      break;
    case undefined:
      if (id === 'form')
        write({ id: state.call, result: { content: [{ type: 'text', text: JSON.stringify(result) }] } });
      break;
    default:
      if (id !== undefined) write({ id, result: {} });
  }
}
