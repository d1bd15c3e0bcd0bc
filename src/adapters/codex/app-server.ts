import { VERSION } from '../../version.ts';
import { asFields, type Fields, listOf, objectOf, parseFields, textOf } from './fields.ts';
import {
  applyNotification,
  applyThread,
  asNotification,
  EMPTY_VIEW,
  keepLoaded,
  type ServerView,
} from './server-view.ts';

/** How long one answer may take; a busy daemon answers in milliseconds. */
export const ANSWER_MS = 1_000;
/** The net under the notifications: how often a kept connection asks for everything again. */
export const RESYNC_MS = 5_000;
/** Messages beyond this are not looked into: statuses are small, items of sub-agents may not be. */
const MESSAGE_CAP = 4 * 1024 * 1024;
const MAX_PAGES = 20;
const MAX_THREADS = 1_000;

export interface ServerOptions {
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly answerMs?: number;
  readonly signal?: AbortSignal | undefined;
}

export type ServerRead =
  | { readonly kind: 'read'; readonly view: ServerView }
  | { readonly kind: 'failed'; readonly reason: string };

/** A connection that only listens. */
export interface ServerConnection {
  readonly view: ServerView;
  /** Asks again for what is loaded and how it stands. */
  sync(): Promise<void>;
  close(): void;
}

/** What a kept connection tells its owner. */
export interface ServerListener {
  changed(view: ServerView): void;
  closed(reason: string): void;
}

/**
 * Reads the state of every thread that a server has loaded, and leaves. Uses `initialize`, `thread/loaded/list`
 * and `thread/read` without turns only (S-762). Never throws; the whole takes at most a few answer times.
 */
export async function readServer(path: string, options: ServerOptions): Promise<ServerRead> {
  try {
    const connection = await connectServer(path, { changed() {}, closed() {} }, options);
    connection.close();
    return { kind: 'read', view: connection.view };
  } catch (error) {
    return {
      kind: 'failed',
      reason: error instanceof Error ? error.message : 'the app-server did not answer',
    };
  }
}

/**
 * Connects as a passive client and stays: status changes come without subscribing to anything. It starts, resumes,
 * steers and answers nothing; requests of the server's are left unanswered, so that the terminal they belong to
 * keeps them.
 *
 * @throws Error in words when the server can't be reached or does not answer in time
 */
export async function connectServer(
  path: string,
  listener: ServerListener,
  options: ServerOptions,
): Promise<ServerConnection> {
  const wire = new Wire(path, listener, options);
  try {
    await wire.open();
    await wire.request('initialize', {
      clientInfo: { name: 'shadowob-connector', title: 'Shadow Connector', version: VERSION },
    });
    wire.notify('initialized');
    await wire.sync();
    wire.announce = true;
    return wire;
  } catch (error) {
    wire.close();
    throw error;
  }
}

interface Waiter {
  readonly resolve: (result: Fields) => void;
  readonly reject: (error: Error) => void;
  readonly timer: ReturnType<typeof setTimeout>;
}

class Wire implements ServerConnection {
  view: ServerView = EMPTY_VIEW;
  /** Set once the first look is complete; before that the owner would see half of it. */
  announce = false;
  readonly #socket: WebSocket;
  readonly #listener: ServerListener;
  readonly #options: ServerOptions;
  readonly #waiting = new Map<number, Waiter>();
  /** Threads that notifications told about since the last look began. */
  readonly #touched = new Set<string>();
  #nextId = 1;
  #closed = false;

  constructor(path: string, listener: ServerListener, options: ServerOptions) {
    this.#listener = listener;
    this.#options = options;
    this.#socket = new WebSocket(`ws+unix://${path}`);
    this.#socket.onmessage = (event) => this.#receive(event.data);
    this.#socket.onclose = () => this.#lose('the app-server closed the connection');
    this.#socket.onerror = () => this.#lose('the app-server cannot be reached');
    options.signal?.addEventListener('abort', () => this.close(), { once: true });
  }

  open(): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error('the app-server does not accept in time')),
        this.#answerMs,
      );
      const settle = (done: () => void) => () => {
        clearTimeout(timer);
        done();
      };
      this.#socket.addEventListener('open', settle(resolve));
      this.#socket.addEventListener(
        'close',
        settle(() => reject(new Error('the app-server cannot be reached'))),
      );
    });
  }

  request(method: string, params: Fields): Promise<Fields> {
    const id = this.#nextId;
    this.#nextId += 1;
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(new Error('the connection to the app-server is closed'));
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        reject(new Error(`the app-server does not answer ${method} in time`));
      }, this.#answerMs);
      this.#waiting.set(id, { resolve, reject, timer });
      this.#socket.send(JSON.stringify({ id, method, params }));
    });
  }

  notify(method: string): void {
    this.#socket.send(JSON.stringify({ method }));
  }

  async sync(): Promise<void> {
    const before = this.view;
    this.#touched.clear();
    const loaded = await this.#loaded();
    const answers = await Promise.allSettled([...loaded].map((threadId) => this.#read(threadId)));
    // A thread that went between the two questions answers with an error; it is simply not there.
    if (answers.length > 0 && answers.every((answer) => answer.status === 'rejected')) {
      throw new Error('the app-server does not answer thread/read');
    }
    // What a notification told since then is newer than the list.
    this.view = keepLoaded(this.view, loaded.union(this.#touched));
    if (this.announce && this.view !== before) this.#listener.changed(this.view);
  }

  async #read(threadId: string): Promise<void> {
    const answer = await this.request('thread/read', { threadId });
    // Taken at once: a notification that follows must not be overwritten by the older answer.
    this.view = applyThread(this.view, objectOf(answer, 'thread'), this.#options.now());
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#rejectAll('the connection to the app-server is closed');
    this.#socket.close();
  }

  get #answerMs(): number {
    return this.#options.answerMs ?? ANSWER_MS;
  }

  async #loaded(): Promise<ReadonlySet<string>> {
    const ids = new Set<string>();
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const answer = await this.request('thread/loaded/list', cursor ? { cursor } : {});
      for (const id of listOf(answer, 'data'))
        if (typeof id === 'string' && ids.size < MAX_THREADS) ids.add(id);
      cursor = textOf(answer, 'nextCursor');
      if (!cursor) break;
    }
    return ids;
  }

  #receive(data: unknown): void {
    if (this.#closed || typeof data !== 'string' || data.length > MESSAGE_CAP) return;
    const message = parseFields(data);
    if (!message) return;
    const id = message['id'];
    if (typeof id === 'number' && message['method'] === undefined) {
      this.#answer(id, message);
      return;
    }
    const notification = asNotification(message);
    if (!notification) return;
    const next = applyNotification(this.view, notification, this.#options.now());
    if (next === this.view) return;
    const before = this.view;
    this.view = next;
    for (const [id, thread] of next) {
      if (before.get(id) === thread) continue;
      this.#touched.add(id);
      if (!before.has(id) && this.announce) void this.#meet(id);
    }
    if (this.announce) this.#listener.changed(next);
  }

  /** A status may be the first that is heard of a thread (sub-agents have no `thread/started`): ask who it is. */
  async #meet(id: string): Promise<void> {
    const before = this.view;
    try {
      await this.#read(id);
    } catch {
      // Gone again already, or too new to be read: the next look at everything settles it.
      return;
    }
    if (this.view !== before) this.#listener.changed(this.view);
  }

  #answer(id: number, message: Fields): void {
    const waiter = this.#waiting.get(id);
    if (!waiter) return;
    this.#waiting.delete(id);
    clearTimeout(waiter.timer);
    const result = asFields(message['result']);
    if (result) waiter.resolve(result);
    else waiter.reject(new Error(textOf(objectOf(message, 'error'), 'message') ?? 'the app-server refuses'));
  }

  #lose(reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#rejectAll(reason);
    // Before the first look is complete, whoever connects is told by the error.
    if (this.announce) this.#listener.closed(reason);
  }

  #rejectAll(reason: string): void {
    for (const waiter of this.#waiting.values()) {
      clearTimeout(waiter.timer);
      waiter.reject(new Error(reason));
    }
    this.#waiting.clear();
  }
}
