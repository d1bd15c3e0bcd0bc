/** What a test's OpenCode server answers; every part may be changed while it runs. */
export interface FakeServer {
  readonly url: string;
  readonly port: number;
  password?: string;
  version: string;
  /** By directory; `''` is the server's own. */
  statuses: Record<string, Record<string, unknown>>;
  permissions: readonly unknown[];
  questions: readonly unknown[];
  sessions: readonly unknown[];
  messages: Record<string, readonly unknown[]>;
  active: Record<string, unknown>;
  /** Accepts and never answers. */
  mute: boolean;
  /** Everything that was asked, with its query. */
  readonly asked: string[];
  /** Open event streams. */
  readonly streams: number;
  /** Sends one event to every open stream. */
  send(payload: unknown, directory?: string): void;
  /** Sends raw text. */
  sendRaw(text: string): void;
  /** Cuts every open stream. */
  cut(): void;
  stop(): Promise<void>;
}

type Sink = ReadableStreamDefaultController<Uint8Array>;

/** A real server on loopback that speaks as much of OpenCode's API as the adapter reads. */
export function startServer(port = 0): FakeServer {
  const sinks = new Set<Sink>();
  const encoder = new TextEncoder();
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port,
    idleTimeout: 0,
    fetch: (request) => answer(request),
  });

  const state: FakeServer = {
    url: `http://127.0.0.1:${server.port}`,
    port: server.port ?? 0,
    version: '1.18.33',
    statuses: {},
    permissions: [],
    questions: [],
    sessions: [],
    messages: {},
    active: {},
    mute: false,
    asked: [],
    get streams() {
      return sinks.size;
    },
    send(payload, directory = '/work/app') {
      state.sendRaw(`data: ${JSON.stringify({ directory, project: 'p', payload })}\n\n`);
    },
    sendRaw(text) {
      for (const sink of sinks) sink.enqueue(encoder.encode(text));
    },
    cut() {
      for (const sink of sinks) sink.close();
      sinks.clear();
    },
    async stop() {
      state.cut();
      await server.stop(true);
    },
  };

  function answer(request: Request): Response | Promise<Response> {
    const { pathname, searchParams, search } = new URL(request.url);
    state.asked.push(`${pathname}${search}`);
    if (state.mute) return new Promise<Response>(() => {});
    const token = `Basic ${Buffer.from(`opencode:${state.password}`).toString('base64')}`;
    if (state.password !== undefined && request.headers.get('authorization') !== token) {
      return new Response(null, {
        status: 401,
        headers: { 'www-authenticate': 'Basic realm="Secure Area"' },
      });
    }
    const [, id] = /^\/session\/(ses_[^/]+)\/message$/.exec(pathname) ?? [];
    if (id !== undefined) return Response.json(state.messages[id] ?? []);
    switch (pathname) {
      case '/global/health':
        return Response.json({ healthy: true, version: state.version });
      case '/session/status':
        return Response.json(state.statuses[searchParams.get('directory') ?? ''] ?? {});
      case '/permission':
        return Response.json(state.permissions);
      case '/question':
        return Response.json(state.questions);
      case '/experimental/session':
        return Response.json(state.sessions);
      case '/api/session/active':
        return Response.json({ data: state.active });
      case '/global/event':
        return stream();
      default:
        return new Response('<!doctype html>', { headers: { 'content-type': 'text/html' } });
    }
  }

  function stream(): Response {
    const own: { sink?: Sink } = {};
    const body = new ReadableStream<Uint8Array>({
      start(sink) {
        own.sink = sink;
        sinks.add(sink);
        sink.enqueue(
          encoder.encode('data: {"payload":{"id":"evt_1","type":"server.connected","properties":{}}}\n\n'),
        );
      },
      cancel() {
        if (own.sink) sinks.delete(own.sink);
      },
    });
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  }

  return state;
}
