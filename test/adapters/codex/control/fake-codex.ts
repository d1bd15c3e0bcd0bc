/**
 * A stand-in for the `codex` of 0.171: an app-server on stdio or on a unix socket that says what the real one was
 * recorded to say, `codex exec`, and a terminal without a server. Holds thread locks as the real one does.
 *
 *   app-server [--listen unix://PATH --hold ID…]     exec --hold ID      tui --hold ID
 */
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { Glob } from 'bun';
import { openLibc } from '../../../../src/runtime/daemon/libc.ts';
import { Lines } from '../home.ts';
import { type Json, RECORDED_THREAD, type RecordedTurn, recordedAnswer, turnsWith } from './recorded.ts';

const HOME = join(process.env['HOME'] ?? '', '.codex');
const LOCKS = join(HOME, 'thread-writer-locks');
const QUEUE = join(HOME, 'fake-queue.json');
const args = process.argv.slice(2);
const libc = openLibc({ flock: { args: ['i32', 'i32'], returns: 'i32' } } as const);
const LOCK_EX_NB = 6;

function log(entry: Json): void {
  const path = process.env['FAKE_CODEX_LOG'];
  if (path) appendFileSync(path, `${JSON.stringify({ pid: process.pid, ...entry })}\n`);
}

const mine = new Set<string>();

/** Takes a thread's lock; false when another process writes it. */
function hold(id: string): boolean {
  if (mine.has(id)) return true;
  mkdirSync(LOCKS, { recursive: true });
  const path = join(LOCKS, `${id}.lock`);
  const fd = openSync(path, 'w');
  if (libc?.flock(fd, LOCK_EX_NB) !== 0) return false;
  mine.add(id);
  return true;
}

function release(): void {
  for (const id of mine) rmSync(join(LOCKS, `${id}.lock`), { force: true });
}

function rolloutOf(id: string): string | undefined {
  const [found] = [...new Glob(`sessions/**/rollout-*-${id}.jsonl`).scanSync({ cwd: HOME, absolute: true })];
  return found;
}

function layRollout(id: string, cwd: string): void {
  const folder = join(HOME, 'sessions', '2026', '12', '01');
  mkdirSync(folder, { recursive: true });
  const lines = new Lines(Date.now()).meta(id, { cwd, originator: 'shadowob-connector' });
  writeFileSync(join(folder, `rollout-2026-12-01T00-00-00-${id}.jsonl`), lines.text);
}

interface Thread {
  readonly id: string;
  cwd: string;
  policy: string;
  turn?: { id: string; waits?: 'waitingOnApproval' | 'waitingOnUserInput'; items: unknown[] };
}

/** A client that is connected. */
interface Client {
  send(line: string): void;
  readonly joined: Set<string>;
  experimental?: boolean;
}

class AppServer {
  readonly clients = new Set<Client>();
  readonly threads = new Map<string, Thread>();
  /** Requests that wait: each with its recorded line, and what happens on an answer. */
  readonly pending = new Map<number, { thread: Thread; line: string; settle: (result: Json) => void }>();
  #nextRequest = 0;

  load(id: string, cwd: string): Thread {
    const thread = this.threads.get(id) ?? { id, cwd, policy: process.env['FAKE_POLICY'] ?? 'on-request' };
    this.threads.set(id, thread);
    return thread;
  }

  tell(thread: Thread, line: string): void {
    for (const client of this.clients) if (client.joined.has(thread.id)) client.send(line);
  }

  take(client: Client, line: string): void {
    const message = JSON.parse(line) as Json;
    const { id, method } = message;
    if (typeof method !== 'string') {
      log({ answered: id, result: message['result'] ?? null, error: message['error'] ?? null });
      const waiting = this.pending.get(Number(id));
      if (!waiting) return;
      this.pending.delete(Number(id));
      const threadId = waiting.thread.id;
      this.tell(
        waiting.thread,
        JSON.stringify({ method: 'serverRequest/resolved', params: { threadId, requestId: id } }),
      );
      waiting.settle((message['result'] ?? { decision: 'decline' }) as Json);
      return;
    }
    const params = (message['params'] ?? {}) as Json;
    log({ method, params: clipped(params) });
    if (method === 'initialized') return;
    const answer = this.answer(client, method, params);
    if (answer === undefined) return;
    const recorded = typeof answer === 'string' ? JSON.parse(answer) : answer;
    client.send(JSON.stringify({ ...recorded, id }));
    if (method === 'thread/resume' && !('error' in recorded)) this.replay(client, String(params['threadId']));
    if (method === 'turn/start' && !('error' in recorded)) this.begin(String(params['threadId']), params);
  }

  /** A6: what waits is sent again to whoever joins. */
  replay(client: Client, threadId: string): void {
    for (const { thread, line } of this.pending.values()) if (thread.id === threadId) client.send(line);
  }

  answer(client: Client, method: string, params: Json): Json | string | undefined {
    const id = String(params['threadId'] ?? '');
    const thread = this.threads.get(id);
    switch (method) {
      case 'initialize':
        return recordedAnswer(1);
      case 'thread/start': {
        const made = `01a22e1c-f00f-7a80-b439-${Math.random().toString(16).slice(2, 14).padEnd(12, '0')}`;
        hold(made);
        const begun = this.load(made, String(params['cwd']));
        client.joined.add(made);
        return { result: { thread: this.shown(begun), approvalPolicy: begun.policy, cwd: begun.cwd } };
      }
      case 'thread/name/set':
      case 'thread/read': {
        if (!thread) return refusal(`thread not loaded: ${id}`);
        if (!rolloutOf(id) && (method === 'thread/name/set' || params['includeTurns'] === true))
          layRollout(id, thread.cwd);
        return { result: { thread: this.shown(thread) } };
      }
      case 'thread/fork': {
        const copy = crypto.randomUUID();
        layRollout(copy, process.cwd());
        return { result: { thread: { id: copy } } };
      }
      case 'thread/resume': {
        const file = rolloutOf(id);
        if (!thread && !file) return JSON.stringify({ ...JSON.parse(recordedAnswer(44)) });
        if (!hold(id)) return refusal(`thread ${id} already has an active writer`);
        const joined = this.load(id, process.cwd());
        client.joined.add(id);
        const recorded = JSON.parse(recordedAnswer(42)) as { result: Json & { thread: Json } };
        const { result } = recorded;
        return {
          result: {
            ...result,
            thread: { ...result.thread, ...this.shown(joined) },
            approvalPolicy: joined.policy,
            cwd: joined.cwd,
          },
        };
      }
      case 'thread/loaded/list':
        return { result: { data: [...this.threads.keys()], nextCursor: null } };
      case 'thread/turns/list': {
        const turn = thread?.turn;
        const data = turn ? [{ id: turn.id, status: 'inProgress', items: turn.items, error: null }] : [];
        return { result: { data, nextCursor: null } };
      }
      case 'turn/start':
        if (!thread) return refusal(`thread not found: ${id}`);
        if (params['approvalPolicy']) thread.policy = String(params['approvalPolicy']);
        thread.turn = { id: crypto.randomUUID(), items: [] };
        return { result: { turn: { id: thread.turn.id, status: 'inProgress', items: [], error: null } } };
      case 'turn/steer': {
        if (!thread?.turn) return recordedAnswer(20);
        if (params['expectedTurnId'] !== thread.turn.id)
          return refusal(
            `expected active turn id \`${params['expectedTurnId']}\` but found \`${thread.turn.id}\``,
          );
        const { turn } = thread;
        const [said] = params['input'] as { text: string }[];
        // Any other text only goes in: the turn stays open, or waits.
        if (said?.text === 'And subtract?') queueMicrotask(() => this.play(thread, turn.id, steeredEnd()));
        return { result: { turnId: turn.id } };
      }
      case 'turn/interrupt': {
        if (!thread?.turn) return recordedAnswer(16);
        if (params['turnId'] !== thread.turn.id) return refusal('expected active turn id');
        const { turn } = thread;
        for (const [key, one] of this.pending) if (one.thread === thread) this.pending.delete(key);
        queueMicrotask(() => this.play(thread, turn.id, endOf(turnsWith('Write a long answer')[0])));
        return { result: {} };
      }
      case 'thread/queue/add': {
        const entry = { id: crypto.randomUUID(), input: params['input'], threadId: id };
        writeFileSync(QUEUE, JSON.stringify([...queue(), entry]));
        return { result: { queuedSubmission: entry } };
      }
      case 'thread/queue/list':
        return { result: { data: queue(), nextCursor: null } };
      case 'thread/queue/delete': {
        const left = queue().filter((one) => one['id'] !== params['queuedSubmissionId']);
        const deleted = left.length < queue().length;
        writeFileSync(QUEUE, JSON.stringify(left));
        return { result: { deleted } };
      }
      default:
        return recordedAnswer(43);
    }
  }

  shown(thread: Thread): Json {
    const flags = thread.turn?.waits ? [thread.turn.waits] : [];
    const status = thread.turn ? { type: 'active', activeFlags: flags } : { type: 'idle' };
    const parent = process.env['FAKE_PARENT'];
    return { id: thread.id, status, cwd: thread.cwd, parentThreadId: parent ?? null };
  }

  begin(threadId: string, params: Json): void {
    const thread = this.threads.get(threadId);
    const turn = thread?.turn;
    if (!thread || !turn) return;
    const prompt = String((params['input'] as { text: string }[])[0]?.text);
    if (prompt === 'Die') process.exit(9);
    const special = SPECIAL[prompt];
    if (special) {
      this.askSpecial(thread, turn.id, special);
      return;
    }
    const recorded = turnsWith(prompt)[0] ?? turnsWith('What does add do?')[0];
    if (!recorded) throw new Error('no recording');
    this.playTurn(thread, turn.id, recorded, prompt);
  }

  /** Plays a recorded turn up to its request, and after an answer the recorded turn that was answered so. */
  playTurn(thread: Thread, turnId: string, recorded: RecordedTurn, prompt: string): void {
    const lines: { line: string; of: RecordedTurn }[] = [];
    for (const [index, message] of recorded.messages.entries()) {
      if (message.out) continue;
      if (message.value['id'] === undefined) {
        // A turn that is never answered stays open where its text was still coming.
        if (
          prompt === 'Write a long answer' &&
          message.value['method'] === 'thread/status/changed' &&
          index > 3
        )
          break;
        lines.push({ line: message.line, of: recorded });
        continue;
      }
      this.play(thread, turnId, lines.splice(0));
      this.ask(thread, turnId, recorded, message.line, String(message.value['method']), (result) => {
        const answered =
          turnsWith(prompt).find((turn) => decisionIn(turn) === result['decision']) ?? recorded;
        this.play(thread, turnId, afterAnswer(answered));
      });
      return;
    }
    this.play(thread, turnId, lines);
  }

  ask(
    thread: Thread,
    turnId: string,
    of: RecordedTurn | undefined,
    line: string,
    method: string,
    settle: (result: Json) => void,
  ): void {
    const rpcId = this.#nextRequest;
    this.#nextRequest += 1;
    const own = JSON.stringify({ ...JSON.parse(this.own(thread, turnId, line, of)), id: rpcId });
    if (thread.turn)
      thread.turn.waits =
        method === 'item/tool/requestUserInput' ? 'waitingOnUserInput' : 'waitingOnApproval';
    this.pending.set(rpcId, {
      thread,
      line: own,
      settle: (result) => {
        if (thread.turn) delete thread.turn.waits;
        settle(result);
      },
    });
    this.tell(thread, own);
  }

  askSpecial(thread: Thread, turnId: string, { method, params }: { method: string; params: Json }): void {
    this.play(thread, turnId, [
      {
        line: JSON.stringify({
          method: 'turn/started',
          params: { threadId: RECORDED_THREAD, turn: { id: 'T' } },
        }),
        of: FAKE_TURN,
      },
    ]);
    const line = JSON.stringify({
      method,
      params: { threadId: RECORDED_THREAD, turnId: 'T', itemId: 'I', ...params },
    });
    this.ask(thread, turnId, FAKE_TURN, line, method, () =>
      this.play(thread, turnId, endOf(turnsWith('What does add do?')[0])),
    );
  }

  own(thread: Thread, turnId: string, line: string, of: RecordedTurn | undefined): string {
    const named = line.replaceAll(RECORDED_THREAD, thread.id);
    return of
      ? named.replaceAll(of === FAKE_TURN ? '"T"' : of.turnId, of === FAKE_TURN ? `"${turnId}"` : turnId)
      : named;
  }

  play(thread: Thread, turnId: string, lines: readonly { line: string; of: RecordedTurn }[]): void {
    for (const { line, of } of lines) {
      const own = this.own(thread, turnId, line, of);
      const value = JSON.parse(own) as { method?: string; params?: { item?: unknown } };
      if (value.method === 'item/started' && thread.turn) thread.turn.items.push(value.params?.item);
      if (value.method === 'turn/completed') delete thread.turn;
      if (value.method !== 'serverRequest/resolved') this.tell(thread, own);
    }
  }
}

const FAKE_TURN: RecordedTurn = { turnId: 'T', prompt: '', messages: [] };

/** Not recorded: shapes of the schema of 0.171. */
const SPECIAL: Record<string, { method: string; params: Json }> = {
  'Ask me': {
    method: 'item/tool/requestUserInput',
    params: {
      questions: [
        {
          id: 'db',
          header: 'Database',
          question: 'Which one?',
          isOther: true,
          isSecret: false,
          options: [
            { label: 'SQLite', description: 'A file.' },
            { label: 'Postgres', description: 'A server.' },
          ],
        },
        { id: 'why', header: 'Why', question: 'Why?', isOther: true, isSecret: false, options: null },
      ],
      isBlocking: true,
      autoResolutionMs: null,
    },
  },
  'Fill in': {
    method: 'mcpServer/elicitation/request',
    params: {
      serverName: 'tickets',
      environmentId: null,
      mode: 'form',
      _meta: null,
      message: 'Which ticket?',
      requestedSchema: {
        type: 'object',
        properties: {
          key: { type: 'string' },
          count: { type: 'integer' },
          urgent: { type: 'boolean' },
          kind: { type: 'string', enum: ['bug', 'task'], enumNames: ['A bug', 'A task'] },
        },
        required: ['key'],
      },
    },
  },
  'Prove it': {
    method: 'mcpServer/elicitation/request',
    params: {
      serverName: 'bank',
      environmentId: null,
      mode: 'openai/userVerification',
      _meta: null,
      title: 'Verify',
      description: 'Prove it',
      challenge: 'x',
    },
  },
  // As 0.171 asks whether a tool of a tool server may run.
  'Run it': {
    method: 'mcpServer/elicitation/request',
    params: {
      serverName: 'tickets',
      environmentId: null,
      mode: 'form',
      _meta: {
        codex_approval_kind: 'mcp_tool_call',
        persist: ['session', 'always'],
        tool_name: 'close',
        tool_params: { key: 'T-1' },
      },
      message: 'Allow the tickets MCP server to run tool "close"?',
      requestedSchema: { type: 'object', properties: {} },
    },
  },
  'Use a tool': { method: 'item/tool/call', params: { callId: 'c', tool: 'mine', arguments: {} } },
};

function endOf(turn: RecordedTurn | undefined): { line: string; of: RecordedTurn }[] {
  const last = turn?.messages.at(-1);
  return turn && last ? [{ line: last.line, of: turn }] : [];
}

/** What the recorded server said after a message was steered into its turn. */
function steeredEnd(): { line: string; of: RecordedTurn }[] {
  const turn = turnsWith('Write a long answer').find(({ messages }) =>
    messages.some(({ line }) => line.includes('There is no subtract() yet.')),
  );
  return turn
    ? turn.messages
        .filter(({ out }) => !out)
        .slice(-6)
        .map(({ line }) => ({ line, of: turn }))
    : [];
}

function decisionIn(turn: RecordedTurn): unknown {
  const reply = turn.messages.find(({ out }) => out)?.value['result'] as Json | undefined;
  return reply?.['decision'];
}

function afterAnswer(turn: RecordedTurn): { line: string; of: RecordedTurn }[] {
  const at = turn.messages.findIndex(({ out }) => out);
  return turn.messages
    .slice(at + 1)
    .filter(({ out }) => !out)
    .map(({ line }) => ({ line, of: turn }));
}

function refusal(message: string): Json {
  return { error: { code: -32600, message } };
}

function queue(): Json[] {
  return existsSync(QUEUE) ? (JSON.parse(readFileSync(QUEUE, 'utf8')) as Json[]) : [];
}

/** Long texts are logged by their size. */
function clipped(params: Json): Json {
  const [first] = (params['input'] ?? []) as { text?: string }[];
  if (first?.text === undefined) return params;
  const hash = new Bun.CryptoHasher('sha256').update(first.text).digest('hex');
  return { ...params, input: first.text.slice(0, 80), bytes: Buffer.byteLength(first.text), hash };
}

function serveStdio(): void {
  const server = new AppServer();
  const client: Client = { joined: new Set(), send: (line) => void process.stdout.write(`${line}\n`) };
  server.clients.add(client);
  const state = { rest: '' };
  // Whole characters, wherever the pipe cuts.
  process.stdin.setEncoding('utf8');
  process.stdin.on('data', (chunk: string) => {
    const lines = (state.rest + chunk).split('\n');
    state.rest = lines.pop() ?? '';
    for (const line of lines) server.take(client, line);
  });
  process.stdin.on('end', () => {
    release();
    process.exit(0);
  });
}

function serveSocket(path: string, held: readonly string[]): void {
  const server = new AppServer();
  for (const id of held) {
    hold(id);
    const thread = server.load(id, process.cwd());
    const prompt = process.env['FAKE_RUNS'];
    if (!prompt) continue;
    thread.turn = { id: crypto.randomUUID(), items: [] };
    server.begin(id, { input: [{ text: prompt }] });
  }
  const clients = new WeakMap<object, Client>();
  Bun.serve({
    unix: path,
    fetch: (request, self) =>
      self.upgrade(request, { data: undefined }) ? undefined : new Response('no', { status: 400 }),
    websocket: {
      open(socket) {
        const client: Client = { joined: new Set(), send: (line) => void socket.send(line) };
        clients.set(socket, client);
        server.clients.add(client);
      },
      message(socket, text) {
        const client = clients.get(socket);
        if (client) server.take(client, String(text));
      },
      close(socket) {
        const client = clients.get(socket);
        if (client) server.clients.delete(client);
      },
    },
  });
  log({ listens: path });
}

/** A terminal without a server: it looks into the queue, and runs what it finds. */
function runTerminal(id: string): void {
  hold(id);
  log({ holds: id });
  const file = rolloutOf(id) ?? '';
  setInterval(() => {
    const [first, ...rest] = queue();
    if (!first || process.env['FAKE_DEAF']) return;
    writeFileSync(QUEUE, JSON.stringify(rest));
    const turn = crypto.randomUUID();
    const lines = new Lines(Date.now())
      .event('task_started', { turn_id: turn })
      .event('item_completed', {
        turn_id: turn,
        item: { type: 'AgentMessage', content: [{ type: 'Text', text: 'From the queue.' }] },
      })
      .event('task_complete', { turn_id: turn, last_agent_message: 'From the queue.' });
    appendFileSync(file, lines.text);
    log({ took: first['input'] });
  }, 50);
}

function runExec(id: string): void {
  hold(id);
  log({ holds: id });
  process.on('SIGINT', () => {
    release();
    process.exit(1);
  });
  setInterval(() => {}, 1_000);
}

/** The one-shot form, for a Codex without an app-server. */
async function runResume(): Promise<void> {
  const text = await Bun.stdin.text();
  log({ exec: args, message: text });
  const say = (value: Json) => process.stdout.write(`${JSON.stringify(value)}\n`);
  say({ type: 'thread.started', thread_id: args.at(-2) });
  say({ type: 'turn.started' });
  say({
    type: 'item.completed',
    item: { id: 'item_0', type: 'agent_message', text: `got ${Buffer.byteLength(text)} bytes` },
  });
  say({ type: 'turn.completed', usage: {} });
}

const held = args.flatMap((word, index) => (args[index - 1] === '--hold' ? [word] : []));
const listen = args[args.indexOf('--listen') + 1] ?? '';
log({ start: args });
if (args[0] === 'app-server' && process.env['FAKE_OLD']) {
  process.stderr.write("error: unrecognized subcommand 'app-server'\n");
  process.exit(2);
}
if (args[0] === 'app-server' && args.includes('--listen')) serveSocket(listen.replace('unix://', ''), held);
else if (args[0] === 'app-server' && held.length === 0) serveStdio();
else if (args[1] === 'resume') await runResume();
else if (args[0] === 'exec') runExec(held[0] ?? '');
else runTerminal(held[0] ?? '');
