import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Lab, Started } from './lab.ts';
import { startChat } from './models/chat.ts';
import { asObject, type Body, type Model, objectsOf } from './models/server.ts';
import { VERSIONS } from './programs.ts';
import type { Terminal } from './terminal.ts';
import { until } from './until.ts';

/** OpenCode 1.18.33 in a lab, with a model of its own. */
export interface OpenCode {
  readonly model: Model;
  /** Opens the terminal program, which listens nowhere, and waits for its prompt. */
  open(folder: string, ...args: string[]): Promise<Terminal>;
  run(folder: string, prompt: string): Started;
  /** Starts `opencode serve`, with this password if one is given, and waits until it listens. */
  serve(folder: string, password?: string): Promise<OpenCodeServer>;
}

/** A client of the server's HTTP interface: what another front end does. */
export interface OpenCodeServer {
  readonly url: string;
  readonly pid: number;
  createSession(): Promise<string>;
  prompt(sessionId: string, words: string): Promise<void>;
  /** Waits until a permission is asked for, and returns its id. */
  permission(sessionId: string): Promise<string>;
  reply(permissionId: string, answer: 'once' | 'always' | 'reject'): Promise<void>;
  /** Waits until a question is asked, and returns its id. */
  question(sessionId: string): Promise<string>;
  answer(questionId: string, answers: readonly (readonly string[])[]): Promise<void>;
  abort(sessionId: string): Promise<void>;
}

export async function prepareOpenCode(lab: Lab): Promise<OpenCode> {
  const model = lab.model(startChat);
  const folder = join(lab.home, '.config', 'opencode');
  await mkdir(folder, { recursive: true });
  await Bun.write(join(folder, 'opencode.json'), JSON.stringify(configuration(model.url)));
  lab.set({ OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1' });
  return {
    model,
    async open(cwd, ...args) {
      const terminal = await lab.terminal({ command: ['opencode', ...args], cwd });
      await terminal.shows('Ask anything');
      return terminal;
    },
    run: (cwd, prompt) => lab.start(['opencode', 'run', '--format', 'json', prompt], cwd),
    async serve(cwd, password) {
      const command = ['opencode', 'serve', '--hostname', '127.0.0.1', '--port', '0'];
      const program = lab.start(command, cwd, password ? { OPENCODE_SERVER_PASSWORD: password } : {});
      const url = await until(
        'the server to listen',
        () => /listening on (http:\S+)/.exec(program.output())?.[1],
        { explain: program.output },
      );
      return clientOf(url, password, cwd, program.pid);
    },
  };
}

/**
 * Before it loads any plugin, OpenCode 1.18.33 fetches a package of its own from npm, once for each folder. Here is no
 * network, so the folder looks as it does afterwards.
 */
export async function withPluginFolder(lab: Lab): Promise<void> {
  const folder = join(lab.home, '.config', 'opencode');
  await mkdir(join(folder, 'node_modules'), { recursive: true });
  const dependencies = { '@opencode-ai/plugin': VERSIONS.opencode };
  await Bun.write(join(folder, 'package.json'), JSON.stringify({ dependencies }));
  await Bun.write(join(folder, 'package-lock.json'), JSON.stringify({ packages: { '': { dependencies } } }));
}

function configuration(url: string) {
  return {
    $schema: 'https://opencode.ai/config.json',
    autoupdate: false,
    share: 'disabled',
    model: 'lab/lab-model',
    // What a command waits for lies beside the work folder.
    permission: { bash: 'ask', edit: 'ask', external_directory: 'allow' },
    provider: {
      lab: {
        npm: '@ai-sdk/openai-compatible',
        name: 'Lab',
        options: { baseURL: `${url}/v1`, apiKey: 'lab-key-that-opens-nothing' },
        models: { 'lab-model': { name: 'Lab model', tool_call: true } },
      },
    },
  };
}

function clientOf(url: string, password: string | undefined, folder: string, pid: number): OpenCodeServer {
  const login = password ? { authorization: `Basic ${btoa(`opencode:${password}`)}` } : {};
  const call = async (method: 'GET' | 'POST', path: string, body?: object): Promise<unknown> => {
    const response = await fetch(`${url}${path}?directory=${encodeURIComponent(folder)}`, {
      method,
      headers: { ...login, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const words = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${words}`);
    return words === '' ? undefined : JSON.parse(words);
  };
  const pending = (path: string, sessionId: string) =>
    until(`something in ${path}`, async () => {
      const open = objectsOf(await call('GET', path)).find((one) => one['sessionID'] === sessionId);
      return open && idOf(open);
    });
  return {
    url,
    pid,
    createSession: async () => idOf(asObject(await call('POST', '/session', {})) ?? {}),
    prompt: async (sessionId, words) => {
      await call('POST', `/session/${sessionId}/prompt_async`, { parts: [{ type: 'text', text: words }] });
    },
    permission: (sessionId) => pending('/permission', sessionId),
    reply: async (id, reply) => void (await call('POST', `/permission/${id}/reply`, { reply })),
    question: (sessionId) => pending('/question', sessionId),
    answer: async (id, answers) => void (await call('POST', `/question/${id}/reply`, { answers })),
    abort: async (sessionId) => void (await call('POST', `/session/${sessionId}/abort`)),
  };
}

function idOf(thing: Body): string {
  const { id } = thing;
  if (typeof id !== 'string') throw new Error(`no id in ${JSON.stringify(thing)}`);
  return id;
}
