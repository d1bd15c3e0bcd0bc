import type { ControlEvent, PendingRequest, Refusal } from '../../runtime/control.ts';
import { ConnectorError } from '../../runtime/errors.ts';
import { jsonError } from './json.ts';

const iso = (at: number): string => new Date(at).toISOString();

/** A request as JSON: times are ISO, everything else as it is. */
export function requestData(request: PendingRequest): unknown {
  const { askedAt, expiresAt, session, ...rest } = request;
  return {
    ...session,
    ...rest,
    ...(askedAt === undefined ? {} : { askedAt: iso(askedAt) }),
    ...(expiresAt === undefined ? {} : { expiresAt: iso(expiresAt) }),
  };
}

/** An event as one line of NDJSON. */
export function eventData(event: ControlEvent): unknown {
  const { type, at } = event;
  if (event.type === 'request') return { type, at: iso(at), request: requestData(event.request) };
  if (event.type === 'accepted') {
    const { session, ...rest } = event;
    return { ...rest, at: iso(at), ...session };
  }
  if (event.type === 'refused') {
    const { kind, reason, next } = event;
    return { type, at: iso(at), ...refusalData({ kind, reason, next }) };
  }
  return { ...event, at: iso(at) };
}

/** A refusal in the form that every error document has. */
export function refusalData({ kind, reason, next }: Refusal): Record<string, unknown> {
  return jsonError(new ConnectorError(kind, reason, next)) as Record<string, unknown>;
}
