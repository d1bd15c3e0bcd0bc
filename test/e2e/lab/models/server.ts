import { until } from '../until.ts';
import {
  createScript,
  type Gate,
  type ModelRequest,
  pieces,
  type Reply,
  type Script,
  type Step,
} from './script.ts';

/** A running stand-in for a model, on loopback. */
export interface Model extends Script {
  /** Without a path and without a slash at its end. */
  readonly url: string;
  /** Everything that was asked, oldest first. */
  readonly requests: readonly ModelRequest[];
  /** Waits until a request has come whose prompt contains these words, at this round of tool results. */
  asked(words: string, round?: number): Promise<ModelRequest>;
  close(): Promise<void>;
}

/** One wire format: how a request is read and how a reply is written. */
export interface Dialect {
  /** The path of the one route that answers, without the query. */
  readonly route: string;
  /** What answers a request for a title. */
  readonly title: string;
  /** Reads a request; `undefined` when it is none. */
  read(body: Body, headers: Headers): ModelRequest | undefined;
  /** Server-sent events, each a whole block that ends with an empty line. */
  stream(reply: Reply & { kind: 'steps' }, body: Body): AsyncIterable<string>;
  /** The body of an HTTP error. */
  error(reply: Reply & { kind: 'error' }): unknown;
}

/** JSON from outside: every look into it is checked. */
export type Body = Readonly<Record<string, unknown>>;

export function startModel(dialect: Dialect): Model {
  const script = createScript(dialect.title);
  const requests: ModelRequest[] = [];
  const answer = async (http: Request): Promise<Response> => {
    if (http.method !== 'POST' || new URL(http.url).pathname !== dialect.route) {
      return new Response('', { status: 404 });
    }
    const body = asObject(await readJson(http));
    const request = body && dialect.read(body, http.headers);
    if (!body || !request) return new Response('', { status: 400 });
    requests.push(request);
    const reply = script.replyTo(request);
    if (reply.kind === 'error') return errorOf(dialect, reply);
    return new Response(bytes(dialect.stream(reply, body)), {
      headers: { 'content-type': 'text/event-stream' },
    });
  };
  // A held stream is silent on purpose: the server must not take it for a dead one.
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, idleTimeout: 0, fetch: answer });
  return {
    ...script,
    url: `http://127.0.0.1:${server.port}`,
    requests,
    asked: (words, round = 0) =>
      until(
        `a request about "${words}", round ${round}`,
        () => requests.find((one) => one.prompt.includes(words) && one.round >= round),
        { explain: () => JSON.stringify(requests) },
      ),
    close: () => server.stop(true),
  };
}

/** Clients of these services ask a header whether to try again; only an overload is worth it here. */
function errorOf(dialect: Dialect, reply: Reply & { kind: 'error' }): Response {
  const headers = { 'x-should-retry': String(reply.status >= 500) };
  return Response.json(dialect.error(reply), { status: reply.status, headers });
}

async function readJson(http: Request): Promise<unknown> {
  try {
    const raw = new Uint8Array(await http.arrayBuffer());
    const plain = http.headers.get('content-encoding') === 'zstd' ? await Bun.zstdDecompress(raw) : raw;
    return JSON.parse(new TextDecoder().decode(plain));
  } catch {
    // Not for us: answered with 400.
    return undefined;
  }
}

function bytes(blocks: AsyncIterable<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const reader = blocks[Symbol.asyncIterator]();
  return new ReadableStream({
    async pull(controller) {
      const next = await reader.next();
      if (next.done) controller.close();
      else controller.enqueue(encoder.encode(next.value));
    },
  });
}

export type Call = Exclude<Step, Gate | { kind: 'text' }>;

/** A part of a reply that the wire formats name: text with the places where it is held, or a call of a tool. */
export type Part = { readonly kind: 'text'; readonly flow: AsyncIterable<string> } | Call;

/**
 * The parts of a reply, in order. A gate after text holds it inside its part, so that what a watcher sees is a text
 * that is not finished; a gate at the start holds before anything of the reply has come.
 */
export async function* partsOf(steps: readonly Step[]): AsyncIterable<Part> {
  const rest = [...steps];
  while (rest.length > 0) {
    const [step] = rest;
    if (step?.kind === 'text') {
      const end = rest.findIndex((one) => one.kind !== 'text' && one.kind !== 'gate');
      const own = rest.splice(0, end < 0 ? rest.length : end);
      yield { kind: 'text', flow: flowOf(own) };
      continue;
    }
    rest.shift();
    if (step?.kind === 'gate') await pass(step);
    else if (step) yield step;
  }
}

async function* flowOf(steps: readonly Step[]): AsyncIterable<string> {
  for (const step of steps) {
    if (step.kind === 'gate') await pass(step);
    if (step.kind === 'text') yield* pieces(step.text);
  }
}

async function pass(gate: Gate): Promise<void> {
  gate.arrive();
  await gate.opened;
}

export function asObject(value: unknown): Body | undefined {
  return isObject(value) ? value : undefined;
}

function isObject(value: unknown): value is Body {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The objects of a list; nothing when it is none. */
export function objectsOf(value: unknown): readonly Body[] {
  const items: readonly unknown[] = Array.isArray(value) ? value : [];
  return items.filter(isObject);
}

/** All text of a message's content, whichever of its forms it has. */
export function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  return objectsOf(content)
    .flatMap((block) => (typeof block['text'] === 'string' ? [block['text']] : []))
    .join('\n');
}

/** The names of the offered tools. */
export function namesOf(tools: unknown): readonly string[] {
  return objectsOf(tools).flatMap((one) => {
    const name = one['name'] ?? asObject(one['function'])?.['name'];
    return typeof name === 'string' ? [name] : [];
  });
}

const ids = { next: 1 };

/** An id that no other reply of this process has. */
export function nextId(prefix: string): string {
  ids.next += 1;
  return `${prefix}_${String(ids.next).padStart(12, '0')}`;
}
