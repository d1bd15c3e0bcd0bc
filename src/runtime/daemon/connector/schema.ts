import { z } from 'zod';
import { FIELD } from '../../limits.ts';
import { RequestError } from '../protocol.ts';

/** Version of every payload of the `connector` service; a client that names another one is refused. */
export const CONNECTOR_VERSION = 1;

const version = z.literal(CONNECTOR_VERSION).nullish();
const text = z.string().max(FIELD.pathChars);
const words = z.array(z.string().max(FIELD.nameChars)).max(FIELD.folders).nullish();

const list = z.object({
  version,
  runtimes: words,
  states: words,
  /** Epoch milliseconds. */
  since: z.number().int().min(0).nullish(),
  dir: text.nullish(),
  limit: z.number().int().positive().nullish(),
  all: z.boolean().nullish(),
  redact: z.boolean().nullish(),
});

const subscribe = list.extend({
  /** `false`: frames hold only the revision, for a client that asks for the rest itself. */
  rows: z.boolean().nullish(),
});

const why = z.object({ version, session: z.string().min(1).max(FIELD.pathChars) });

const glance = z.object({
  version,
  /** Titles too; whoever asks shows them to the owner alone. */
  titles: z.boolean().nullish(),
});

/** A session by its id, or by a beginning that only it has. */
const focus = z.object({ version, session: z.string().min(1).max(FIELD.pathChars) });

const look = z.object({ version, cursor: z.string().max(FIELD.idChars).nullish() });

const whole = z.object({
  version,
  runtimeId: z.string().min(1).max(FIELD.nameChars),
  instanceId: z.string().min(1).max(FIELD.nameChars),
  sessionId: z.string().min(1).max(FIELD.nameChars),
});

/** A listing's filter as it comes over the socket. */
export type ListQuery = z.infer<typeof list>;
export type SubscribeQuery = z.infer<typeof subscribe>;
export type GlanceQuery = z.infer<typeof glance>;

/** A reader of one operation's payload; what doesn't fit throws `RequestError` naming the operation (S-318). */
export function reader<T>(op: string, schema: z.ZodType<T>): (payload: unknown) => T {
  return (payload) => {
    const parsed = schema.safeParse(payload ?? {});
    if (parsed.success) return parsed.data;
    // Field and reason, never the value that was sent (S-307).
    const issues = parsed.error.issues.slice(0, 3).map((one) => `${one.path.join('.')}: ${one.message}`);
    throw new RequestError(`invalid \`${op}\` payload: ${issues.join('; ')}`);
  };
}

/** Readers of the payloads of the `connector` service; each throws `RequestError` naming its operation (S-318). */
export const readConnector = {
  list: reader('list', list),
  subscribe: reader('subscribe', subscribe),
  why: reader('why', why),
  glance: reader('glance', glance),
  focus: reader('focus', focus),
  look: reader('look', look),
  whole: reader('whole', whole),
} as const;
