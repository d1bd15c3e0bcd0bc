import type { TurnSink } from '../../../../src/runtime/control/driver.ts';
import type { PendingRequest } from '../../../../src/runtime/control.ts';

/** A sink that keeps what it is told. */
export interface KeptSink extends TurnSink {
  readonly told: readonly string[];
  readonly requests: readonly PendingRequest[];
  /** Resolves with the first request that is told. */
  readonly firstRequest: Promise<PendingRequest>;
}

export function keptSink(room = 32): KeptSink {
  const told: string[] = [];
  const requests: PendingRequest[] = [];
  const first = Promise.withResolvers<PendingRequest>();
  return {
    told,
    requests,
    firstRequest: first.promise,
    accepted: (detail, mode) => void told.push(`accepted ${mode}: ${detail}`),
    progress: (doing, text, tool) =>
      void told.push(['progress', doing, tool ?? text].filter(Boolean).join(' ')),
    note: (text) => void told.push(`note ${text}`),
    request(request) {
      if (requests.length >= room) return false;
      requests.push(request);
      first.resolve(request);
      return true;
    },
    withdrawn: (id) => void told.push(`withdrawn ${id}`),
    child: (identity) => void told.push(identity ? 'child' : 'no child'),
  };
}
