import { z } from 'zod';
import { FIELD } from '../limits.ts';
import { parseNanos } from './stamp.ts';
import {
  AGENTS,
  type End,
  NOTIFICATIONS,
  type Observe,
  PLAIN_EVENTS,
  STOP_OUTCOMES,
  WIRE_STATES,
  type WindowReport,
} from './vocabulary.ts';

/**
 * What may stand on a line (S-302 … S-318), checked where it enters. Unknown fields are ignored, absent optionals
 * defaulted, `null` counts as absent, and an unknown word of a closed vocabulary is an error (S-308).
 */

/** A request that can't be answered; its text goes to the client, with the texts of its causes (S-307). */
export class RequestError extends Error {
  override readonly name = 'RequestError';
}

const optional = <T extends z.ZodType>(schema: T) =>
  schema.nullish().transform((value) => value ?? undefined);
const text = (chars: number) => z.string().max(chars);
const filled = (chars: number) =>
  text(chars).refine((value) => value.trim() !== '', { message: 'must not be blank' });

/** A best-effort text: blank says nothing, so it never replaces what is known (S-006). */
const bestEffort = (chars: number) =>
  optional(text(chars)).transform((value) => (value?.trim() ? value : undefined));

/** Pids up to 1 are no owner: 1 is what an orphan's parent is, 0 is "my own group" (S-109). */
const pid = optional(z.number().int()).transform((value) =>
  value !== undefined && value > 1 ? value : undefined,
);

const event = z.union([
  z.enum(PLAIN_EVENTS),
  z.object({ notification: z.enum(NOTIFICATIONS) }),
  z.object({ stream_state: z.enum(WIRE_STATES) }),
]);

const stamp = z.object({
  ts: text(64).refine((value) => parseNanos(value) !== undefined, { message: 'must be an RFC 3339 time' }),
  seq: filled(FIELD.idChars),
});

const envelope = z.object({
  service: optional(z.string()),
  op: z.string(),
  payload: z.unknown().optional(),
});

const observe = z.object({
  session_id: filled(FIELD.idChars),
  event,
  agent: optional(z.enum(AGENTS)),
  agent_id: bestEffort(FIELD.idChars),
  pid,
  cwd: bestEffort(FIELD.pathChars),
  transcript_path: bestEffort(FIELD.pathChars),
  model: bestEffort(FIELD.nameChars),
  repo: bestEffort(FIELD.nameChars),
  outcome: optional(z.enum(STOP_OUTCOMES)),
  background: optional(z.number().int().min(0)),
  stamp: optional(stamp),
});

const end = z.object({
  session_id: filled(FIELD.idChars),
  reason: bestEffort(FIELD.nameChars),
  pid,
  stamp: optional(stamp),
});

const count = optional(z.number().int().min(0)).transform((value) => value ?? 0);

const windowReport = z.object({
  key: filled(FIELD.idChars),
  folders: optional(z.array(text(FIELD.pathChars)).max(FIELD.folders)).transform((value) => value ?? []),
  tabs: count,
  terminals: count,
});

const windowKey = z.object({ key: filled(FIELD.idChars) });

/** One request line (S-302). `service` is `daemon` when the line names none. */
export interface Envelope {
  readonly service: string;
  readonly op: string;
  readonly payload: unknown;
}

/** Reads one line. Throws `RequestError` for malformed JSON, for no object, and for a missing `op` (S-305). */
export function parseEnvelope(line: string): Envelope {
  const parsed = envelope.safeParse(parseJson(line));
  if (!parsed.success) throw new RequestError(`invalid request: ${issuesOf(parsed.error)}`);
  return { service: parsed.data.service ?? 'daemon', op: parsed.data.op, payload: parsed.data.payload };
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    // The parser's own words may quote the line, and error texts never hold payloads (S-307).
    throw new RequestError('malformed JSON');
  }
}

/** Field and reason, never the value that was sent (S-307). */
function issuesOf(error: z.ZodError): string {
  return error.issues
    .slice(0, 3)
    .map((issue) => [...(issue.path.length > 0 ? [issue.path.join('.')] : []), issue.message].join(': '))
    .join('; ');
}

function payloadReader<T>(op: string, schema: z.ZodType<T>): (payload: unknown) => T {
  return (payload) => {
    const parsed = schema.safeParse(payload ?? {});
    if (parsed.success) return parsed.data;
    throw new RequestError(`invalid \`${op}\` payload: ${issuesOf(parsed.error)}`);
  };
}

/** Readers of the payloads of the `sessions` service; each throws `RequestError` naming its op (S-318). */
export const readPayload = {
  observe: payloadReader<Observe>('observe', observe),
  end: payloadReader<End>('end', end),
  window: payloadReader<WindowReport>('window', windowReport),
  windowUnregister: payloadReader<{ key: string }>('window-unregister', windowKey),
} as const;

/** A reply as it is sent (S-303). */
export type Reply =
  | { readonly ok: true; readonly payload?: unknown }
  | { readonly ok: false; readonly error: string };

/** A good reply; `payload` is left out when there is none (S-303). */
export function success(payload: unknown): Reply {
  return payload === undefined || payload === null ? { ok: true } : { ok: true, payload };
}

/** A bad reply with the texts of the whole chain of causes (S-307). */
export function failure(thrown: unknown): Reply {
  return { ok: false, error: chainOf(thrown) };
}

/** The messages of an error and its causes, joined; at most eight, in case a cause refers to itself. */
export function chainOf(thrown: unknown): string {
  const texts: string[] = [];
  let current: unknown = thrown;
  while (texts.length < 8 && current !== undefined && current !== null) {
    texts.push(current instanceof Error ? current.message : String(current));
    current = current instanceof Error ? current.cause : undefined;
  }
  return texts.filter((part) => part !== '').join(': ') || 'unknown error';
}
