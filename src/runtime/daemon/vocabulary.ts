/**
 * The words of the `sessions` service as they cross the socket and lie in journals. Types and plain checks only:
 * the hook sink imports this file.
 */

/** The agents that this service knows (S-002); any other value on the wire is a payload error (S-308). */
export const AGENTS = ['claude', 'codex', 'pi'] as const;
export type Agent = (typeof AGENTS)[number];

/** States on the socket (S-003). */
export const WIRE_STATES = [
  'starting',
  'working',
  'idle',
  'waiting_for_input',
  'waiting_for_permission',
  'ended',
] as const;
export type WireState = (typeof WIRE_STATES)[number];

/** Events that are a plain word (S-007). */
export const PLAIN_EVENTS = [
  'session_start',
  'user_prompt_submit',
  'pre_tool_use',
  'post_tool_use',
  'stop',
  'transcript_grew',
  'transcript_discovered',
] as const;
export type PlainEvent = (typeof PLAIN_EVENTS)[number];

/** Kinds of `{"notification": …}` (S-007). */
export const NOTIFICATIONS = ['permission_prompt', 'idle_prompt', 'agent_needs_input', 'other'] as const;
export type NotificationKind = (typeof NOTIFICATIONS)[number];

/** An event on the wire and in a journal (S-007). The vocabulary is closed: each agent's feed maps onto it. */
export type WireEvent =
  | PlainEvent
  | { readonly notification: NotificationKind }
  | { readonly stream_state: WireState };

/**
 * What a `stop` was, when it was not the good end of a turn: it failed, met an output limit, was
 * stopped by its user, or ended something that was no turn of the user's. Absent for a good end.
 */
export const STOP_OUTCOMES = ['failed', 'limited', 'stopped', 'none'] as const;
export type StopOutcome = (typeof STOP_OUTCOMES)[number];

/** When an event fired and which it was (S-009). */
export interface Stamp {
  /** RFC 3339, UTC; ours has nine decimals. */
  readonly ts: string;
  /** Unique across processes: `<hook pid>-<unix nanoseconds>`. */
  readonly seq: string;
}

/** Payload of `observe` (S-312). `outcome` and `background` belong to a `stop`. */
export interface Observe {
  readonly session_id: string;
  readonly event: WireEvent;
  readonly agent?: Agent | undefined;
  readonly agent_id?: string | undefined;
  readonly pid?: number | undefined;
  readonly cwd?: string | undefined;
  readonly transcript_path?: string | undefined;
  readonly model?: string | undefined;
  readonly repo?: string | undefined;
  readonly outcome?: StopOutcome | undefined;
  /** Background shells and jobs that still ran at a `stop`. */
  readonly background?: number | undefined;
  readonly stamp?: Stamp | undefined;
}

/** Payload of `end` (S-313). */
export interface End {
  readonly session_id: string;
  readonly reason?: string | undefined;
  readonly pid?: number | undefined;
  readonly stamp?: Stamp | undefined;
}

/** Payload of `window` (S-008, S-314). */
export interface WindowReport {
  readonly key: string;
  readonly folders: readonly string[];
  readonly tabs: number;
  readonly terminals: number;
}

/** Where a session is shown (S-002); resolved on read. */
export type Source =
  | { readonly kind: 'terminal' }
  | { readonly kind: 'vs_code'; readonly window_key: string };

/** One session as `list`, `subscribe` and `status` show it; absent optionals are left out (S-002). */
export interface Row {
  readonly session_id: string;
  readonly agent: Agent;
  readonly state: WireState;
  readonly cwd?: string;
  readonly repo?: string;
  readonly transcript_path?: string;
  readonly model?: string;
  readonly source: Source;
  readonly last_event: WireEvent;
  /** RFC 3339, UTC, whole seconds. */
  readonly started_at: string;
  readonly last_seen: string;
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Whether an id has the hyphenated form in which it may name a file (S-504, S-906). */
export function isUuid(id: string): boolean {
  return UUID.test(id);
}

/** Whether two events are the same word. */
export function sameEvent(a: WireEvent, b: WireEvent): boolean {
  if (typeof a === 'string' || typeof b === 'string') return a === b;
  if ('notification' in a) return 'notification' in b && a.notification === b.notification;
  return 'stream_state' in b && a.stream_state === b.stream_state;
}

function member<T extends string>(words: readonly T[], value: unknown): T | undefined {
  return words.find((word) => word === value);
}

/** A hand-checked reader of an event, for journals; `undefined` if it is none of S-007. */
export function readEvent(value: unknown): WireEvent | undefined {
  if (typeof value === 'string') return member(PLAIN_EVENTS, value);
  if (typeof value !== 'object' || value === null) return undefined;
  if ('notification' in value) {
    const notification = member(NOTIFICATIONS, value.notification);
    return notification && { notification };
  }
  const state = 'stream_state' in value ? member(WIRE_STATES, value.stream_state) : undefined;
  return state && { stream_state: state };
}
