import { afterAll, describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { prompt } from '../../../../src/adapters/opencode/control/server-calls.ts';
import { readPrompt } from '../../../../src/adapters/opencode/control/tail.ts';
import { createServerApi } from '../../../../src/adapters/opencode/server-api.ts';

/** A server that keeps what it was sent, and gives it back as a message. */
const got: { path: string; text: string }[] = [];
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  maxRequestBodySize: 64 * 1024 * 1024,
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (request.method === 'POST') {
      const body = (await request.json()) as { parts: [{ text: string }] };
      got.push({ path: pathname, text: body.parts[0].text });
      return new Response(null, { status: 204 });
    }
    const text = got.at(-1)?.text;
    const info = { id: 'msg_2', role: 'user', time: { created: 1 } };
    return Response.json([{ info, parts: [{ id: 'prt_1', type: 'text', text }] }]);
  },
});
afterAll(() => server.stop(true));

const endpoint = { url: `http://127.0.0.1:${server.port}`, named: true };
const place = { endpoint, sessionId: 'ses_a', directory: '/work/app & "more"' };

async function arrives(text: string): Promise<void> {
  const posted = await prompt(place, text, undefined);
  expect(posted).toEqual({ kind: 'answer', status: 204, value: undefined });
  expect(got.at(-1)?.text === text).toBe(true);
  expect(got.at(-1)?.path).toBe('/session/ses_a/prompt_async');
}

describe('a message over a real connection', () => {
  test('any Unicode arrives whole, and is found again as the message that it is', async () => {
    const api = createServerApi(endpoint, () => 0);
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary', minLength: 1, maxLength: 400 }), async (text) => {
        await arrives(text);
        expect(await readPrompt(api, 'ses_a', text, 'msg_1')).toBe('msg_2');
        expect(await readPrompt(api, 'ses_a', text, 'msg_2')).toBeUndefined();
        expect(await readPrompt(api, 'ses_a', `${text}!`, 'msg_1')).toBeUndefined();
      }),
      { numRuns: 60 },
    );
  });

  test.each([
    ['a leading dash', '--session ses_b -x'],
    ['a slash', '/help'],
    ['NUL and line separators', 'a\0b\u2028c\u2029d\r\ne'],
    ['a lone quote and a backslash', '"\\'],
    ['1 MB', 'é☃🎉-'.repeat(110_000)],
    ['the largest', `-${'x'.repeat(4 * 1024 * 1024 - 1)}`],
  ])('%s', async (_name, text) => {
    await arrives(text);
  });
});
