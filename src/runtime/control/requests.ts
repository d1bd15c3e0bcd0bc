import type { ApprovalAnswer, Decision, PendingRequest, Refusal } from '../control.ts';
import { CONTROL } from '../limits.ts';

/** How a request ended. */
export type Settled = Decision | 'expired' | 'withdrawn';

/**
 * The requests of one session that wait for an answer. They live in memory only: what would be allowed is content
 * . An answer is bound to the id, and the id to the exact action; what is settled stays settled (A2).
 */
export interface RequestStore {
  /** Takes a request; one over the limit is refused, so that the runtime is told no and doesn't wait for ever. */
  add(request: PendingRequest): boolean;
  list(): readonly PendingRequest[];
  /**
   * Takes the request of an answer out of the list, or says why it can't be answered: unknown, settled already, being
   * answered by somebody else at this moment, or an answer that the runtime doesn't take.
   */
  claim(answer: ApprovalAnswer): PendingRequest | Refusal;
  /** Gives back a claimed request whose answer did not reach the runtime. */
  restore(request: PendingRequest): void;
  /** Notes how a request ended; false when that was known. */
  settle(requestId: string, how: Settled): boolean;
}

const LIST = 'See what waits: shadowob-connector session-approve';

/** An empty store. */
export function createRequestStore(limit: number = CONTROL.requests): RequestStore {
  const waiting = new Map<string, PendingRequest>();
  const claimed = new Set<string>();
  const settled = new Map<string, Settled>();
  return {
    add(request) {
      if (waiting.size >= limit) return false;
      waiting.set(request.requestId, request);
      return true;
    },
    list: () => [...waiting.values()],
    claim(answer) {
      const request = waiting.get(answer.requestId);
      if (!request) return refusalFor(answer.requestId, settled, claimed);
      const wrong = wrongAnswer(request, answer);
      if (wrong) return wrong;
      waiting.delete(request.requestId);
      claimed.add(request.requestId);
      return request;
    },
    restore(request) {
      claimed.delete(request.requestId);
      waiting.set(request.requestId, request);
    },
    settle(requestId, how) {
      waiting.delete(requestId);
      claimed.delete(requestId);
      if (settled.has(requestId)) return false;
      settled.set(requestId, how);
      const oldest = settled.size > CONTROL.settled ? settled.keys().next() : undefined;
      if (oldest && !oldest.done) settled.delete(oldest.value);
      return true;
    },
  };
}

function refusalFor(
  id: string,
  settled: ReadonlyMap<string, Settled>,
  claimed: ReadonlySet<string>,
): Refusal {
  const how = settled.get(id);
  if (how !== undefined) return { reason: `request ${id} is settled: ${how}`, kind: 'refused', next: LIST };
  if (claimed.has(id)) {
    return { reason: `request ${id} is being answered already`, kind: 'refused', next: LIST };
  }
  return { reason: `no request ${id} waits for an answer`, kind: 'notFound', next: LIST };
}

function wrongAnswer(request: PendingRequest, { decision, answers }: ApprovalAnswer): Refusal | undefined {
  if (!request.allows.includes(decision)) {
    return {
      reason: `this ${request.kind} takes ${request.allows.join(', ')}, not ${decision}`,
      kind: 'refused',
      next: `shadowob-connector session-approve ${request.requestId} --help`,
    };
  }
  if (decision !== 'answer') return undefined;
  const missing = request.questions?.find(({ id }) => (answers?.[id] ?? []).length === 0);
  if (!missing) return undefined;
  return {
    reason: `question ${missing.id} has no answer: ${missing.text}`,
    kind: 'refused',
    next: `shadowob-connector session-approve ${request.requestId} --answers '{"1":["…"]}'`,
  };
}
