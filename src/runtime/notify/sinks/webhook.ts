import { webhookProblem } from '../../config/webhook-url.ts';
import type { Scheduler } from '../../daemon/clock.ts';
import { NOTIFY } from '../../limits.ts';
import { eventOf } from '../notice.ts';
import { DELIVERED, failed, type Sink, type SinkResult } from './sink.ts';

export interface WebhookOptions {
  readonly url: string;
  readonly timeoutMs: number;
  readonly details: boolean;
  readonly scheduler: Scheduler;
  /** How we name ourselves to the server. */
  readonly agent: string;
}

/**
 * A webhook: the event as a JSON POST to https, or to this computer. `node:http` and not `fetch`: Bun 1.4.5's `fetch`
 * sends loopback requests to the proxy that the environment names. Redirects are not followed, and nothing of the answer is kept.
 * A server that is not there, busy (429) or broken (5xx) is tried three times in all; one that refuses is not.
 */
export function webhookSink(options: WebhookOptions): Sink {
  const { url, details, scheduler } = options;
  return {
    name: 'webhook',
    words: URL.canParse(url) ? new URL(url).host : 'no address',
    async send(notice, signal) {
      const problem = webhookProblem(url);
      if (problem !== undefined) return failed(problem);
      const body = JSON.stringify(eventOf(notice, details));
      let result = await post(options, body, signal);
      for (const pauseMs of NOTIFY.webhookPausesMs) {
        if (!result.again || signal.aborted) break;
        await pause(scheduler, pauseMs, signal);
        result = await post(options, body, signal);
      }
      return result.result;
    },
  };
}

interface Attempt {
  readonly result: SinkResult;
  /** Whether another attempt makes sense. */
  readonly again: boolean;
}

async function post(
  { url: text, timeoutMs, agent }: WebhookOptions,
  body: string,
  signal: AbortSignal,
): Promise<Attempt> {
  const url = new URL(text);
  const { request } = url.protocol === 'https:' ? await import('node:https') : await import('node:http');
  const { promise, resolve } = Promise.withResolvers<Attempt>();
  const give = (reason: string, again: boolean) => resolve({ result: failed(reason), again });
  // A time of its own: `timeout` of `node:http` counts idle time only, and a slow drip is not idle.
  const timer = setTimeout(() => give(`no answer within ${timeoutMs} ms`, true), timeoutMs);
  const stop = () => give('stopped', false);
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  const headers = {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    'user-agent': agent,
    connection: 'close',
  };
  // An agent keeps connections; one notice needs one.
  const sent = request(url, { method: 'POST', headers, agent: false }, (response) => {
    response.resume();
    const status = response.statusCode ?? 0;
    if (status >= 200 && status < 300) resolve({ result: DELIVERED, again: false });
    else give(`answered ${status}`, status === 429 || status >= 500);
  });
  sent.on('error', (error) =>
    give(`not reached: ${'code' in error ? String(error.code) : error.name}`, true),
  );
  sent.end(body);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
    sent.destroy();
  }
}

function pause(scheduler: Scheduler, ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const cancel = scheduler.after(ms, resolve);
  const abort = (): void => {
    cancel();
    resolve();
  };
  signal.addEventListener('abort', abort, { once: true });
  return promise.finally(() => signal.removeEventListener('abort', abort));
}
