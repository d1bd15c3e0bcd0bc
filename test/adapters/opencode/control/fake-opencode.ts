/**
 * A program that speaks as much of OpenCode 1.18.33 as acting on sessions needs, over the recorded schema: `serve`,
 * and `run --format json`. Run by tests in place of `opencode`; what it was given goes to the file that
 * `FAKE_OPENCODE_LOG` names, one JSON line each.
 *
 * Messages: `ask` asks for a permission, `choose` asks a question, `hang` works until it is aborted, `fail` fails, `long`
 * is cut at the length limit, `die` ends the program; anything else is answered with its length.
 */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Json } from '../recordings.ts';
import { createStore } from '../world.ts';

const [mode, ...args] = process.argv.slice(2);
const env = process.env;
const after = (flag: string): string | undefined =>
  args.includes(flag) ? args[args.indexOf(flag) + 1] : undefined;
const log = (entry: object): void => {
  const file = env['FAKE_OPENCODE_LOG'];
  if (file) appendFileSync(file, `${JSON.stringify(entry)}\n`);
};
const password = env['OPENCODE_SERVER_PASSWORD'];
log({ start: [mode, ...args], pid: process.pid, cwd: process.cwd(), secret: password !== undefined });

const store = createStore(join(env['HOME'] ?? '/', '.local', 'share', 'opencode'));
const counter = { at: 0 };
/** Ids ascend with time, as OpenCode's own do. */
const newId = (kind: string): string =>
  `${kind}_${Date.now().toString(16).padStart(12, '0')}${String(counter.at++).padStart(6, '0')}`;
const query = (sql: string, ...values: string[]): Json[] =>
  store.database.query(sql).all(...values) as Json[];
const sessionRow = (id: string): Json | undefined => query('SELECT * FROM session WHERE id = ?', id)[0];
const infoOf = (row: Json): Json => ({
  id: row['id'],
  title: row['title'],
  directory: row['directory'],
  version: '1.18.33',
  ...(row['parent_id'] ? { parentID: row['parent_id'] } : {}),
  time: { created: row['time_created'], updated: row['time_updated'] },
});

type Sink = ReadableStreamDefaultController<Uint8Array>;
const sinks = new Set<Sink>();
const encoder = new TextEncoder();

function emit(type: string, properties: Json, directory: string): void {
  const payload = { id: newId('evt'), type, properties };
  store.event(payload, Date.now());
  const line = `data: ${JSON.stringify({ directory, project: 'p', payload })}\n\n`;
  for (const sink of sinks) sink.enqueue(encoder.encode(line));
}

interface Turn {
  readonly abort: PromiseWithResolvers<'aborted'>;
}
interface Ask {
  readonly raw: Json;
  readonly kind: 'permission' | 'question';
  readonly directory: string;
  readonly replied: PromiseWithResolvers<Json>;
}
const turns = new Map<string, Turn>();
const queues = new Map<string, Json[]>();
/** As in OpenCode, an abort leaves them behind. */
const asks = new Map<string, Ask>();

function beginSession(directory: string, about: Json): Json {
  const now = Date.now();
  const info = {
    id: newId('ses'),
    title: about['title'] ?? 'New session - 2026-01-01T00:00:00.000Z',
    directory,
    version: '1.18.33',
    ...(about['model'] ? { model: about['model'] } : {}),
    time: { created: now, updated: now },
  };
  emit('session.created', { sessionID: info.id, info }, directory);
  return info;
}

function fork(id: string): Json | undefined {
  const row = sessionRow(id);
  if (!row) return undefined;
  const copy = beginSession(String(row['directory']), { title: `${String(row['title'])} (fork #1)` });
  for (const message of query('SELECT * FROM message WHERE session_id = ? ORDER BY id', id)) {
    const messageId = newId('msg');
    store.message(String(copy['id']), { ...message, id: messageId });
    for (const part of query('SELECT * FROM part WHERE message_id = ?', String(message['id']))) {
      store.part(String(copy['id']), { ...part, id: newId('prt'), message_id: messageId });
    }
  }
  return copy;
}

function take(id: string, body: Json): void {
  const row = sessionRow(id);
  const directory = String(row?.['directory']);
  const text = String((body['parts'] as Json[])[0]?.['text']);
  log({ message: text, session: id, keys: Object.keys(body).sort(), model: body['model'] ?? null });
  const user = {
    id: newId('msg'),
    sessionID: id,
    role: 'user',
    time: { created: Date.now() },
    agent: 'build',
    model: body['model'] ?? { providerID: 'mock', modelID: 'mock-1' },
  };
  emit('message.updated', { sessionID: id, info: user }, directory);
  const part = { id: newId('prt'), sessionID: id, messageID: user.id, type: 'text', text };
  emit('message.part.updated', { sessionID: id, part }, directory);
  const waiting = queues.get(id);
  if (waiting) waiting.push({ user, text });
  else void work(id, directory, [{ user, text }]);
}

async function work(id: string, directory: string, queue: Json[]): Promise<void> {
  queues.set(id, queue);
  const turn: Turn = { abort: Promise.withResolvers() };
  turns.set(id, turn);
  emit('session.status', { sessionID: id, status: { type: 'busy' } }, directory);
  for (let next = queue.shift(); next; next = queue.shift()) {
    const ended = await answer(id, directory, next['user'] as Json, String(next['text']), turn);
    if (ended === 'stop') break;
  }
  turns.delete(id);
  queues.delete(id);
  emit('session.status', { sessionID: id, status: { type: 'idle' } }, directory);
  emit('session.idle', { sessionID: id }, directory);
}

async function answer(
  id: string,
  directory: string,
  user: Json,
  text: string,
  turn: Turn,
): Promise<'on' | 'stop'> {
  const message = {
    id: newId('msg'),
    sessionID: id,
    role: 'assistant',
    parentID: user['id'],
    providerID: 'mock',
    modelID: 'mock-1',
    time: { created: Date.now() },
  };
  const update = (more: Json): void =>
    emit('message.updated', { sessionID: id, info: { ...message, ...more } }, directory);
  const close = (more: Json): void => update({ ...more, time: { ...message.time, completed: Date.now() } });
  const say = (words: string): void => {
    const part = { id: newId('prt'), sessionID: id, messageID: message.id, type: 'text', text: words };
    emit(
      'message.part.updated',
      { sessionID: id, part: { ...part, time: { start: 1, end: Date.now() } } },
      directory,
    );
  };
  const aborted = (): 'stop' => {
    const error = { name: 'MessageAbortedError', data: { message: 'Aborted' } };
    emit('session.error', { sessionID: id, error }, directory);
    close({ error });
    return 'stop';
  };
  update({});
  switch (text) {
    case 'die':
      // What was said before must have left.
      await Bun.sleep(50);
      return process.exit(1);
    case 'hang':
      await turn.abort.promise;
      return aborted();
    case 'fail': {
      const error = { name: 'APIError', data: { message: 'Incorrect API key provided' } };
      emit('session.error', { sessionID: id, error }, directory);
      close({ error });
      return 'stop';
    }
    case 'long':
      say('This answer is cut');
      close({ finish: 'length' });
      return 'on';
    case 'ask':
    case 'choose': {
      const kind = text === 'ask' ? 'permission' : 'question';
      const requestId = newId(kind === 'permission' ? 'per' : 'que');
      const call = { messageID: message.id, callID: 'call_1' };
      const raw =
        kind === 'permission'
          ? {
              permission: 'bash',
              patterns: ['echo hi'],
              metadata: { command: 'echo hi' },
              always: ['echo *'],
            }
          : { questions: [{ question: 'Which?', options: [{ label: 'A' }, { label: 'B' }] }] };
      const ask: Ask = {
        kind,
        directory,
        raw: { id: requestId, sessionID: id, ...raw, tool: call },
        replied: Promise.withResolvers(),
      };
      asks.set(requestId, ask);
      emit(`${kind}.asked`, ask.raw, directory);
      const reply = await Promise.race([ask.replied.promise, turn.abort.promise]);
      if (reply === 'aborted') return aborted();
      log({ reply, session: id });
      const refused = reply['reply'] === 'reject' && reply['message'] === undefined;
      if (refused || reply['rejected'] === true) {
        close({ finish: 'tool-calls' });
        return 'stop';
      }
      say(`after ${JSON.stringify(reply)}`);
      close({ finish: 'stop' });
      return 'on';
    }
    default:
      say(`got ${Buffer.byteLength(text)} bytes`);
      close({ finish: 'stop' });
      return 'on';
  }
}

const html = () => new Response('<!doctype html>', { headers: { 'content-type': 'text/html' } });
const missing = (id: string) =>
  Response.json({ name: 'NotFoundError', data: { message: `Session not found: ${id}` } }, { status: 404 });

function get(pathname: string, directory: string): Response {
  const [, sessionId, rest] = /^\/session\/(ses_[^/]+)(\/message(?:\/[^/]+)?)?$/.exec(pathname) ?? [];
  if (sessionId !== undefined) return sessionAnswer(sessionId, rest);
  switch (pathname) {
    case '/global/health':
      return Response.json({ healthy: true, version: '1.18.33' });
    case '/global/event':
      return stream();
    case '/session/status': {
      const busy = [...turns.keys()].filter((id) => sessionRow(id)?.['directory'] === directory);
      return Response.json(Object.fromEntries(busy.map((id) => [id, { type: 'busy' }])));
    }
    case '/permission':
    case '/question':
      return Response.json(
        [...asks.values()]
          .filter((ask) => `/${ask.kind}` === pathname && ask.directory === directory)
          .map(({ raw }) => raw),
      );
    case '/experimental/session':
      return Response.json(query('SELECT * FROM session ORDER BY time_updated DESC LIMIT 100').map(infoOf));
    case '/api/session/active':
      return Response.json({ data: {} });
    case '/config/providers':
      return Response.json({ providers: [{ id: 'mock', models: { 'mock-1': {} } }] });
    default:
      return html();
  }
}

function sessionAnswer(id: string, rest: string | undefined): Response {
  const row = sessionRow(id);
  if (!row) return missing(id);
  if (rest === undefined) return Response.json(infoOf(row));
  const messages = query('SELECT * FROM message WHERE session_id = ? ORDER BY id', id).map((message) => ({
    info: { ...JSON.parse(String(message['data'])), id: message['id'], sessionID: id },
    parts: query('SELECT * FROM part WHERE message_id = ? ORDER BY id', String(message['id'])).map(
      (part) => ({
        ...JSON.parse(String(part['data'])),
        id: part['id'],
      }),
    ),
  }));
  const one = rest.split('/')[2];
  if (one === undefined) return Response.json(messages.slice(-4));
  const found = messages.find(({ info }) => info.id === one);
  return found ? Response.json(found) : missing(one);
}

function stream(): Response {
  const own: { sink?: Sink } = {};
  const body = new ReadableStream<Uint8Array>({
    start(sink) {
      own.sink = sink;
      sinks.add(sink);
      sink.enqueue(encoder.encode('data: {"payload":{"type":"server.connected","properties":{}}}\n\n'));
    },
    cancel() {
      if (own.sink) sinks.delete(own.sink);
    },
  });
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
}

async function act(request: Request, pathname: string, directory: string): Promise<Response> {
  const raw = await request.text();
  const body = raw === '' ? {} : (JSON.parse(raw) as Json);
  if (pathname === '/session') return Response.json(beginSession(directory, body));
  const [, id = '', what] = /^\/session\/(ses_[^/]+)\/(prompt_async|abort|fork)$/.exec(pathname) ?? [];
  if (what === 'abort') {
    turns.get(id)?.abort.resolve('aborted');
    return Response.json(true);
  }
  if (what === 'fork') {
    const copy = fork(id);
    return copy ? Response.json(copy) : missing(id);
  }
  if (what === 'prompt_async') {
    if (!sessionRow(id)) return missing(id);
    setTimeout(() => take(id, body), 1);
    return new Response(null, { status: 204 });
  }
  const [, kind, requestId = '', how] =
    /^\/(permission|question)\/([^/]+)\/(reply|reject)$/.exec(pathname) ?? [];
  const ask = asks.get(requestId);
  if (!kind) return html();
  if (!ask || ask.directory !== directory) {
    return Response.json({ _tag: 'PermissionNotFoundError', requestID: requestId }, { status: 404 });
  }
  asks.delete(requestId);
  const { sessionID } = ask.raw;
  const type =
    kind === 'permission' ? 'permission.replied' : how === 'reply' ? 'question.replied' : 'question.rejected';
  emit(type, { sessionID, requestID: requestId }, directory);
  ask.replied.resolve(how === 'reject' ? { rejected: true } : body);
  return Response.json(true);
}

function serve(): void {
  // Loads for as long as a test likes, as a cold start does for seconds.
  if (env['FAKE_OPENCODE_MUTE']) return void setInterval(() => {}, 1_000);
  const token = `Basic ${Buffer.from(`${env['OPENCODE_SERVER_USERNAME'] ?? 'opencode'}:${password}`).toString('base64')}`;
  const server = Bun.serve({
    hostname: after('--hostname') ?? '127.0.0.1',
    port: Number(after('--port')),
    idleTimeout: 0,
    maxRequestBodySize: 64 * 1024 * 1024,
    fetch(request) {
      const { pathname, searchParams } = new URL(request.url);
      if (password !== undefined && request.headers.get('authorization') !== token) {
        return new Response(null, { status: 401 });
      }
      const directory = searchParams.get('directory') ?? process.cwd();
      return request.method === 'POST' ? act(request, pathname, directory) : get(pathname, directory);
    },
  });
  if (password === undefined)
    console.log('Warning: OPENCODE_SERVER_PASSWORD is not set; server is unsecured.');
  console.log(`opencode server listening on http://127.0.0.1:${server.port}`);
  if (env['FAKE_OPENCODE_STUBBORN']) process.on('SIGTERM', () => log({ ignored: 'SIGTERM' }));
}

async function runOnce(): Promise<void> {
  const id = after('--session') ?? '';
  const text = await Bun.stdin.text();
  log({ message: text, session: id, run: true });
  if (!sessionRow(id)) {
    console.error('\u001b[91m\u001b[1mError: \u001b[0mSession not found');
    process.exit(1);
  }
  const row = (type: string, more: Json): void =>
    void process.stdout.write(`${JSON.stringify({ type, timestamp: Date.now(), sessionID: id, ...more })}\n`);
  if (text === 'fail') {
    row('error', { error: { name: 'APIError', data: { message: 'Incorrect API key provided' } } });
    process.exit(1);
  }
  row('step_start', { part: { type: 'step-start' } });
  if (text === 'hang') await Promise.withResolvers<void>().promise;
  row('text', { part: { type: 'text', text: `got ${Buffer.byteLength(text)} bytes` } });
  if (text === 'ask') {
    console.error('\u001b[93m! \u001b[0mpermission requested: bash (echo hi); auto-rejecting');
    row('tool_use', { part: { type: 'tool', tool: 'bash' } });
  }
  row('step_finish', { part: { type: 'step-finish', reason: text === 'ask' ? 'tool-calls' : 'stop' } });
  process.exit(0);
}

if (mode === 'serve') serve();
else if (mode === 'run') await runOnce();
else process.exit(2);
