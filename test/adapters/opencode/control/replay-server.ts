import { type Exchange, isGlobal, type Json, lines, type StreamLine } from '../recordings.ts';

/** What a replaying server is to do otherwise than the recorded one. */
export interface ReplayOptions {
  /** Which prompt of the recording; the first when absent. */
  readonly prompt?: number;
  /** How a reply to a request ends: `cut` takes it and goes away, `unheard` takes it and tells nobody. */
  readonly reply?: 'cut' | 'unheard';
  /** Events that are left out, as if they had been missed. */
  readonly misses?: (payload: Json) => boolean;
  /** The stream is cut, once, before this event. */
  readonly cutBefore?: (payload: Json) => boolean;
}

export interface ReplayServer {
  readonly url: string;
  readonly sessionId: string;
  readonly directory: string;
  readonly text: string;
  /** Everything that was posted. */
  readonly posted: readonly { readonly path: string; readonly body: unknown }[];
  stop(): Promise<void>;
}

type Sink = ReadableStreamDefaultController<Uint8Array>;

/** Events that follow only when somebody has done something. */
const ACTS = /^(?:permission\.replied|question\.(?:replied|rejected))$/;

/**
 * A real server on loopback that gives a recording's answers and events again, from one of its prompts on: events wait
 * where the recorded server waited for a reply or an abort.
 */
export function replayServer(scenario: string, options: ReplayOptions = {}): ReplayServer {
  const http = lines<Exchange>(scenario, 'http.jsonl');
  const prompts = http.filter(({ req, res }) => /prompt_async/.test(req.path) && res.status === 204);
  const prompt = prompts[options.prompt ?? 0];
  if (!prompt) throw new Error(`${scenario} has no such prompt`);
  const [, sessionId = ''] = /\/session\/(ses_[^/]+)\//.exec(prompt.req.path) ?? [];
  const parts = ((prompt.req.body as Json)['parts'] ?? []) as readonly Json[];
  const text = String(parts[0]?.['text'] ?? '');
  const events = lines<StreamLine>(scenario, 'sse.jsonl').filter((line) => isGlobal(line) && line.data);
  const queue = events.filter(({ t }) => t >= prompt.t).map(({ data }) => data as Json);
  const directory = String(queue.find((data) => typeof data['directory'] === 'string')?.['directory']);

  const sinks = new Set<Sink>();
  const encoder = new TextEncoder();
  const posted: { path: string; body: unknown }[] = [];
  const asked = new Map<string, Json>();
  const messages = new Map<string, { info: Json; parts: Map<string, Json> }>();
  const state = { busy: false, acts: 0, started: false, cut: false, after: 0 };

  const note = (payload: Json): void => {
    const properties = (payload['properties'] ?? {}) as Json;
    const info = (properties['info'] ?? {}) as Json;
    const part = (properties['part'] ?? {}) as Json;
    const own = properties['sessionID'] === sessionId;
    if (payload['type'] === 'session.status' && own) {
      state.busy = (properties['status'] as Json)['type'] !== 'idle';
    }
    if (payload['type'] === 'message.updated' && own) {
      const known = messages.get(String(info['id']));
      messages.set(String(info['id']), { info, parts: known?.parts ?? new Map() });
    }
    if (payload['type'] === 'message.part.updated' && own) {
      messages.get(String(part['messageID']))?.parts.set(String(part['id']), part);
    }
    if (/^(?:permission|question)\.asked$/.test(String(payload['type']))) {
      asked.set(String(properties['id']), properties);
    }
    if (ACTS.test(String(payload['type']))) asked.delete(String(properties['requestID']));
  };

  const isAct = (payload: Json): boolean => {
    const error = ((payload['properties'] as Json | undefined)?.['error'] ?? {}) as Json;
    return ACTS.test(String(payload['type'])) || error['name'] === 'MessageAbortedError';
  };

  const pump = (): void => {
    for (let next = queue[0]; next && state.started; next = queue[0]) {
      const payload = next['payload'] as Json;
      if (isAct(payload) && state.acts === 0) return;
      if (!state.cut && options.cutBefore?.(payload)) {
        state.cut = true;
        for (const sink of sinks) sink.close();
        sinks.clear();
        return;
      }
      if (sinks.size === 0) return;
      // One reply lets a request's twin events through, until the next request is asked.
      if (/\.asked$/.test(String(payload['type']))) state.acts = 0;
      queue.shift();
      note(payload);
      if (options.misses?.(payload)) continue;
      for (const sink of sinks) sink.enqueue(encoder.encode(`data: ${JSON.stringify(next)}\n\n`));
    }
  };

  const act = (): void => {
    state.acts += 1;
    pump();
  };

  const stream = (): Response => {
    const own: { sink?: Sink } = {};
    const body = new ReadableStream<Uint8Array>({
      start(sink) {
        own.sink = sink;
        sinks.add(sink);
        sink.enqueue(encoder.encode('data: {"payload":{"type":"server.connected","properties":{}}}\n\n'));
        if (state.started) setTimeout(pump, 1);
      },
      cancel() {
        if (own.sink) sinks.delete(own.sink);
      },
    });
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  };

  const answerPost = async (request: Request, pathname: string): Promise<Response> => {
    const raw = await request.text();
    posted.push({ path: pathname, body: raw === '' ? undefined : JSON.parse(raw) });
    if (pathname.endsWith('/prompt_async')) {
      state.started = true;
      setTimeout(pump, 1);
      return new Response(null, { status: 204 });
    }
    if (pathname.endsWith('/abort') || pathname === '/instance/dispose') {
      setTimeout(act, 1);
      return Response.json(true);
    }
    const [, kind, id = ''] = /^\/(permission|question)\/([^/]+)\/(?:reply|reject)$/.exec(pathname) ?? [];
    if (!kind) return new Response('<!doctype html>', { headers: { 'content-type': 'text/html' } });
    if (!asked.has(id))
      return Response.json(
        { _tag: 'PermissionNotFoundError', requestID: id, message: `Permission request not found: ${id}` },
        { status: 404 },
      );
    if (options.reply === 'cut') {
      setTimeout(() => void server.stop(true), 1);
      return Promise.withResolvers<Response>().promise;
    }
    if (options.reply === 'unheard') return Response.json(true);
    setTimeout(act, 1);
    return Response.json(true);
  };

  const answerGet = (pathname: string): Response => {
    if (pathname === '/global/health') return Response.json({ healthy: true, version: '1.18.33' });
    if (pathname === '/global/event') return stream();
    if (pathname === '/session/status') {
      return Response.json(state.busy ? { [sessionId]: { type: 'busy' } } : {});
    }
    if (pathname === '/permission') return Response.json(listed('permission'));
    if (pathname === '/question') return Response.json(listed('questions'));
    if (pathname === `/session/${sessionId}/message`) {
      return Response.json(
        [...messages.values()].map((one) => ({ info: one.info, parts: [...one.parts.values()] })),
      );
    }
    return new Response('<!doctype html>', { headers: { 'content-type': 'text/html' } });
  };

  const listed = (key: string): readonly Json[] => [...asked.values()].filter((one) => key in one);

  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    fetch(request) {
      const { pathname } = new URL(request.url);
      return request.method === 'POST' ? answerPost(request, pathname) : answerGet(pathname);
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    sessionId,
    directory,
    text,
    posted,
    async stop() {
      await server.stop(true);
    },
  };
}
