import type { Report } from '../../../runtime/daemon/reporter.ts';
import { WRAP } from '../../../runtime/limits.ts';
import type { Rpc } from '../control/rpc.ts';
import type { Linked } from '../control/socket.ts';
import { listOf, objectOf, textOf } from '../fields.ts';
import { endOf, type Look, reportLook } from './threads.ts';

/**
 * Looks at the wrapper's own server once a second, and reports (S-762 … S-766). It only ever calls
 * `thread/loaded/list` and `thread/read`, and answers nothing that the server asks (S-902).
 */
export interface CodexObserver {
  /** Ends all that was reported, and stops looking. */
  end(): void;
  /** Resolves when nothing more is looked at. */
  readonly stopped: Promise<void>;
}

export interface CodexObserverOptions {
  /** Whether the terminal has been the server's first client, so that we may be its second. */
  mayConnect(): boolean;
  connect(): Promise<Linked>;
  send(report: Report): void;
  readonly pollMs?: number;
}

const MAX_PAGES = 20;

export function observeServer(options: CodexObserverOptions): CodexObserver {
  const stop = Promise.withResolvers<void>();
  const state = { known: new Set<string>() as ReadonlySet<string>, ended: false };
  const pollMs = options.pollMs ?? WRAP.pollMs;

  /** False when it is over. */
  async function nextLook(): Promise<boolean> {
    const timer = Promise.withResolvers<void>();
    const handle = setTimeout(timer.resolve, pollMs);
    await Promise.race([timer.promise, stop.promise]);
    clearTimeout(handle);
    return !state.ended;
  }

  async function watch(): Promise<void> {
    while (!options.mayConnect()) if (!(await nextLook())) return;
    const link = await options.connect();
    if (link.kind !== 'linked') return;
    let failed = 0;
    while (!state.ended && failed < WRAP.failedPolls) {
      const look = await lookAt(link.rpc);
      failed = look ? 0 : failed + 1;
      if (look && !state.ended) report(look);
      await nextLook();
    }
    link.close();
  }

  function report(look: Look): void {
    const { reports, known } = reportLook(state.known, look);
    state.known = known;
    for (const one of reports) options.send(one);
  }

  return {
    stopped: watch(),
    end() {
      if (state.ended) return;
      state.ended = true;
      for (const id of state.known) options.send(endOf(id));
      stop.resolve();
    },
  };
}

/** `undefined` when the server did not say what it has loaded. */
async function lookAt(rpc: Rpc): Promise<Look | undefined> {
  const ids: string[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const answer = await rpc.call('thread/loaded/list', cursor ? { cursor } : {}, WRAP.answerMs);
    if (answer.kind !== 'result') return undefined;
    ids.push(...listOf(answer.result, 'data').filter((id) => typeof id === 'string'));
    cursor = textOf(answer.result, 'nextCursor');
    if (!cursor) break;
  }
  const threads = await Promise.all(
    ids.map(async (threadId) => {
      const answer = await rpc.call('thread/read', { threadId }, WRAP.answerMs);
      return [threadId, answer.kind === 'result' ? objectOf(answer.result, 'thread') : undefined] as const;
    }),
  );
  return new Map(threads);
}
