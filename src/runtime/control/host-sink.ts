import type { ApprovalAnswer, ApprovalResult, ControlEvent, PendingRequest, Refusal } from '../control.ts';
import type { Scheduler } from '../daemon/clock.ts';
import { reasonOf } from '../errors.ts';
import { CONTROL } from '../limits.ts';
import type { SessionRef } from '../session/session.ts';
import type { TurnResult, TurnSink } from './driver.ts';
import type { RequestStore, Settled } from './requests.ts';
import type { Ticket } from './ticket.ts';

/** Turns what a driver tells into the events of the message that is being worked on. */
export interface HostSink extends TurnSink {
  queued(ticket: Ticket, reason: string): void;
  tell(ticket: Ticket, text: string): void;
  refused(ticket: Ticket, refusal: Refusal): void;
  ended(ticket: Ticket, result: TurnResult): void;
  /** A defect of ours in the middle of a turn. */
  broke(ticket: Ticket, thrown: unknown): void;
  answered(requestId: string, how: Settled): void;
  /** An answer did not reach the runtime: nobody waits for it any more. */
  lost(request: PendingRequest): void;
}

export interface HostSinkOptions {
  readonly session: SessionRef;
  readonly approvalMs: number;
  readonly requests: RequestStore;
  readonly scheduler: Scheduler;
  now(): number;
  /** The message that is being worked on. */
  ticket(): Ticket | undefined;
  onAccepted(): void;
  /** Denies a request that nobody has answered. */
  expire(answer: ApprovalAnswer): Promise<ApprovalResult>;
  readonly onChild: TurnSink['child'];
}

/** Makes the sink of one host. */
export function createHostSink(options: HostSinkOptions): HostSink {
  const { requests, session, now } = options;
  const timers = new Map<string, () => void>();
  const accepted = new WeakSet<Ticket>();
  const emit = (event: ControlEvent): void => options.ticket()?.emit(event);

  const settle = (requestId: string, decision: Settled): void => {
    timers.get(requestId)?.();
    timers.delete(requestId);
    if (requests.settle(requestId, decision)) emit({ type: 'resolved', at: now(), requestId, decision });
  };

  /** A8: an unattended run must not wait for ever, and its denial says why. */
  const expire = async (request: PendingRequest): Promise<void> => {
    const minutes = Math.round(options.approvalMs / 60_000);
    const note = `Nobody answered within ${minutes} minute${minutes === 1 ? '' : 's'}.`;
    const result = await options.expire({ session, requestId: request.requestId, decision: 'deny', note });
    if (result.kind !== 'refused')
      emit({ type: 'note', at: now(), text: `${request.subject}: ${note} Denied.` });
  };

  return {
    accepted(detail, mode, resume) {
      const ticket = options.ticket();
      if (ticket) accepted.add(ticket);
      options.onAccepted();
      emit({ type: 'accepted', at: now(), session, mode, detail, ...(resume ? { resume } : {}) });
    },
    progress(doing, text, tool) {
      emit({
        type: 'progress',
        at: now(),
        doing,
        ...(text ? { text: cut(text, CONTROL.progressBytes) } : {}),
        ...(tool ? { tool } : {}),
      });
    },
    note: (text) => emit({ type: 'note', at: now(), text }),
    request(request) {
      const bounded: PendingRequest = {
        ...request,
        detail: cut(request.detail, CONTROL.detailBytes),
        ...(Buffer.byteLength(request.detail) > CONTROL.detailBytes ? { detailCut: true } : {}),
        expiresAt: now() + options.approvalMs,
      };
      if (!requests.add(bounded)) return false;
      emit({ type: 'request', at: now(), request: bounded });
      timers.set(
        request.requestId,
        options.scheduler.after(options.approvalMs, () => void expire(bounded)),
      );
      return true;
    },
    withdrawn: (requestId) => settle(requestId, 'withdrawn'),
    child: options.onChild,
    queued(ticket, reason) {
      const [first] = requests.list();
      const behind = first ? { behind: { requestId: first.requestId, subject: first.subject } } : {};
      const why = first ? `${reason}, which waits for an approval: ${first.subject}` : reason;
      ticket.emit({ type: 'queued', at: now(), reason: why, ...behind });
    },
    tell: (ticket, text) => ticket.emit({ type: 'note', at: now(), text }),
    refused: (ticket, refusal) => ticket.emit({ type: 'refused', at: now(), ...refusal }),
    ended(ticket, result) {
      if (result.kind === 'refused') {
        ticket.emit({ type: 'refused', at: now(), ...result.refusal });
        return;
      }
      const { kind: _, text, ...end } = result;
      const whole = text === undefined ? {} : { text: cut(text, CONTROL.finalBytes) };
      ticket.emit({ type: 'done', at: now(), ...end, ...whole });
    },
    broke(ticket, thrown) {
      const error = `a defect of the connector: ${reasonOf(thrown)}`;
      if (accepted.has(ticket)) ticket.emit({ type: 'done', at: now(), outcome: 'failed', error });
      else ticket.emit({ type: 'refused', at: now(), reason: error, kind: 'refused', next: 'Report it.' });
    },
    answered: (requestId, decision) => settle(requestId, decision),
    lost: (request) => settle(request.requestId, 'expired'),
  };
}

const MARK = '…';

/** At most this many bytes of UTF-8, never with half a character at the end. */
export function cut(text: string, bytes: number): string {
  if (Buffer.byteLength(text) <= bytes) return text;
  const part = Buffer.from(text).subarray(0, bytes - Buffer.byteLength(MARK));
  return new TextDecoder('utf-8').decode(part).replace(/\ufffd$/, '') + MARK;
}
